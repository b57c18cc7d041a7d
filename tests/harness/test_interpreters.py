"""Discovery of interpreters, their names, builds given by path, and programs that are not interpreters."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from zoomgrad.engines.api import UnknownName
from zoomgrad.harness.machine import interpreters
from zoomgrad.harness.machine.interpreters import Interpreter, asked, discover, probe, reference
from zoomgrad.results.files import Unreadable


def fact(version, implementation="cpython", *, free_threaded=False, jit=False):
    name = f"{implementation}-{'.'.join(version.split('.')[:2])}{'t' * free_threaded}"
    return Interpreter(name, Path(), implementation, version, f"{version} (main)", free_threaded, jit)


@pytest.fixture
def machine(monkeypatch):
    """`machine({path: interpreter})`: only these programs exist."""

    def pretend(programs):
        by_path = {Path(path): replace(facts, path=Path(path)) for path, facts in programs.items()}
        monkeypatch.setattr(interpreters, "_candidates", lambda: iter(by_path))
        monkeypatch.setattr(interpreters, "probe", by_path.__getitem__)

    return pretend


@pytest.fixture
def candidates(monkeypatch):
    """`candidates(*paths)`: examine only these programs, and really start them."""
    return lambda *paths: monkeypatch.setattr(interpreters, "_candidates", lambda: iter(paths))


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def base_python():
    return Path(sys._base_executable)


def test_a_virtual_environment_is_passed_over_and_does_not_hide_its_base(tmp_path, candidates):
    subprocess.run([base_python(), "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    python = tmp_path / "env" / "bin" / "python"
    candidates(python)
    assert discover() == []
    # An activated environment comes first on PATH, and its program is a link to its base's.
    candidates(python, base_python())
    assert [interpreter.path for interpreter in discover()] == [base_python()]


def test_a_build_with_a_jit_is_two_interpreters(machine):
    """One with the JIT off, which is the reference, and one with it on; a free-threaded build is a third."""
    machine(
        {
            "/jit/python": fact("3.14.2", jit=True),
            "/free/python": fact("3.14.2", free_threaded=True),
            "/p": fact("3.11.2"),
        }
    )
    installed = discover()
    assert [i.name for i in installed] == ["cpython-3.11", "cpython-3.14", "cpython-3.14-jit", "cpython-3.14t"]
    assert [(i.jit, i.warms_up, i.has_jit) for i in installed if i.name.endswith("jit")] == [(True, True, False)]
    assert not any(i.jit or i.warms_up for i in installed if not i.name.endswith("jit"))
    assert installed[2].path == installed[1].path
    assert reference(installed).name == "cpython-3.14"


# Programs that are not interpreters


def answering(path, text):
    """Make a program that always prints this text."""
    answer = path.with_name(f"{path.name}.answer")
    path.parent.mkdir(parents=True, exist_ok=True)
    answer.write_bytes(text if isinstance(text, bytes) else text.encode())
    return program(path, f'#!/bin/sh\ncat "{answer}"\n')


def test_a_program_that_is_no_interpreter_is_left_out_and_has_a_reason(tmp_path, candidates, monkeypatch):
    monkeypatch.setattr(interpreters, "PROBE_SECONDS", 2.0)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "text").write_text("no program")
    programs = {
        tmp_path / "folder": "is not an executable file",
        tmp_path / "link": "is not an executable file",
        tmp_path / "text": "is not an executable file",
        program(tmp_path / "odd", "#!/no/such/shell\n"): "can't be started (",
        program(tmp_path / "fails", "#!/bin/sh\nexit 3\n"): "ended with exit code 3",
        program(tmp_path / "hangs", "#!/bin/sh\nexec sleep 1000\n"): "took longer than 2 s",
        program(tmp_path / "endless", "#!/bin/sh\nexec yes\n"): "wrote more than 1,048,576 bytes",
        answering(tmp_path / "bytes", b"\xff\xfe\xff"): "does not answer like a Python (",
        answering(tmp_path / "path", "cpython\n../../x\n3.13\nFalse\nFalse\n"): "does not answer like a Python (cpy",
        answering(tmp_path / "more", "cpython\n3.13.0\n\x1b[2J\nFalse\nFalse\n"): "does not answer like a Python (cpy",
    }
    candidates(*programs, base_python())
    assert [i.path for i in discover()] == [base_python()]
    for program_, reason in programs.items():
        answer = str(probe(program_))
        assert answer.startswith(reason)
        assert answer.isprintable() and len(answer) < 500


def test_relative_folders_are_not_searched_even_without_a_home(tmp_path, monkeypatch):
    program(tmp_path / "python3", f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    program(tmp_path / "versions" / "3.13" / "bin" / "python", f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", os.environ["PATH"]]))
    monkeypatch.setenv("PYENV_ROOT", ".")
    assert discover()
    monkeypatch.delenv("PYENV_ROOT")

    def no_home(self):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", no_home)
    assert discover()
    assert not (tmp_path / "ran").exists()


NAMES = {
    "the newest patch, from the best source": (
        [fact("3.11.2"), fact("3.11.10"), fact("3.11.10"), fact("3.11.7"), fact("3.9.18")],
        ["cpython-3.9 3.9.18 /4", "cpython-3.11 3.11.10 /1"],
    ),
    "a free-threaded build takes no other build's name": (
        [fact("3.13.1", free_threaded=True), fact("3.13.0"), fact("3.13.0", free_threaded=True)],
        ["cpython-3.13 3.13.0 /1", "cpython-3.13t 3.13.1 /0"],
    ),
    "a final release is newer": ([fact("3.14.0c2"), fact("3.14.0"), fact("3.14.0a7")], ["cpython-3.14 3.14.0 /1"]),
    "CPython comes first, and others are left out": (
        [fact("3.11.9", "pypy"), fact("3.9.18"), fact("3.9.16", "pypy"), fact("3.8.18"), fact("3.11.2", "graalpy")],
        ["cpython-3.9 3.9.18 /1", "pypy-3.9 3.9.16 /2", "pypy-3.11 3.11.9 /0"],
    ),
}


@pytest.mark.parametrize("case", NAMES)
def test_names_of_interpreters(case, machine):
    facts, expected = NAMES[case]
    machine({f"/{index}": each for index, each in enumerate(facts)})
    installed = discover()
    assert [f"{each.name} {each.version} {each.path}" for each in installed] == expected
    assert all(each.has_jit == each.name.startswith("pypy") for each in installed)


# Builds given by path


def test_a_path_gets_the_users_name_and_its_own_facts():
    everything, chosen = asked([f"mine={base_python()}", "cpython-3.13", "nowhere"], [fact("3.13.0")])
    assert chosen == ["mine", "cpython-3.13", "nowhere"]
    mine = everything[-1]
    assert (mine.name, mine.path, mine.version) == ("mine", base_python(), ".".join(map(str, sys.version_info[:3])))
    assert mine.build()["compiler"]
    assert not mine.canonical


@pytest.mark.parametrize(
    ("names", "answer", "reason"),
    [
        (["/usr/bin/python3"], None, "not NAME=PATH"),
        (["m" * 73 + "=/bin/sh"], None, "not NAME=PATH"),
        (["mine="], None, "not NAME=PATH"),
        (["cpython-3.99=/bin/sh"], None, "not NAME=PATH"),
        (["mine=/nowhere/python"], None, "mine: /nowhere/python is not an executable file"),
        (["mine=/bin/sh"], None, "mine: /bin/sh "),
        (["mine=/some/python"], fact("3.8.18"), "is cpython 3.8.18, which zoomgrad does not support"),
        ([f"mine={sys.prefix}/bin/python"], None, "is the Python of a virtual environment"),
        (["mine=/some/python", "mine=/other/python"], fact("3.13.0"), "two interpreters would have this name"),
    ],
)
def test_what_is_no_interpreter_is_refused_with_a_remedy(names, answer, reason, monkeypatch):
    if answer:
        monkeypatch.setattr(interpreters, "probe", lambda path: answer)
    with pytest.raises(Unreadable) as refused:
        asked(names, [])
    first, second = str(refused.value).splitlines()
    assert reason in first
    assert second.startswith("  ")


def test_the_reference_is_the_newest_cpython_with_a_lock():
    installed = [fact("3.9.18"), fact("3.13.0"), fact("3.14.0", free_threaded=True), fact("3.15.0", "pypy")]
    assert reference(installed).name == "cpython-3.13"
    with pytest.raises(UnknownName, match="uv python install"):
        reference([fact("3.9.16", "pypy")])
