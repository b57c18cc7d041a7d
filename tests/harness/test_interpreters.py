"""Which Pythons are found, what they are called, and the environments made for them."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from engines.api import UnknownName
from harness import interpreters
from harness.interpreters import (
    Facts,
    Interpreter,
    NoEnvironment,
    choose,
    discover,
    environment,
    missing,
    reference,
    survey,
)


def fact(version, implementation="cpython", *, free_threaded=False, virtual=False):
    return Facts(
        implementation=implementation,
        version=version,
        full_version=f"{version} (main)",
        free_threaded=free_threaded,
        virtual=virtual,
        build={"compiler": "GCC 12", "configure": ""},
    )


@pytest.fixture
def machine(monkeypatch):
    """`machine({path: facts})`: only these programs are there; None for one that is no interpreter."""

    def pretend(programs):
        by_path = {Path(path): facts for path, facts in programs.items()}
        monkeypatch.setattr(interpreters, "_candidates", lambda: iter(by_path))
        monkeypatch.setattr(interpreters, "_probe", by_path.__getitem__)

    return pretend


@pytest.fixture
def candidates(monkeypatch):
    """`candidates(paths)`: only these programs are looked at, and really asked."""
    return lambda *paths: monkeypatch.setattr(interpreters, "_candidates", lambda: iter(paths))


def interpreter(name, implementation="cpython", version="3.13.0"):
    return Interpreter(name, Path("/nowhere/python"), implementation, version, version, name.endswith("t"), {})


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def base_python():
    return Path(sys._base_executable)


def names():
    return [found.name for found in discover()]


# What is found


def test_the_python_that_runs_this_is_found():
    version = platform.python_version()
    found = [i for i in discover() if (i.implementation, i.version) == (sys.implementation.name, version)]
    assert len(found) == 1
    assert found[0].path.is_absolute()
    assert found[0].full_version.startswith(version)
    assert found[0].build["compiler"] == " ".join(platform.python_compiler().split())


def test_what_is_found_starts_and_is_what_it_says():
    for found in discover():
        answer = subprocess.run(
            [found.path, "-c", "import platform; print(platform.python_implementation().lower())"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert answer.stdout.strip() == found.implementation


def test_broken_programs_are_passed_over(tmp_path, candidates):
    candidates(
        program(tmp_path / "python3.9", "#!/bin/sh\nexit 3\n"),
        program(tmp_path / "python3.10", "#!/bin/sh\necho I am no Python\n"),
        program(tmp_path / "python3.11", "not even a program"),
        tmp_path / "python3.12",
        base_python(),
    )
    assert len(names()) == 1


def test_a_shim_is_passed_over(tmp_path, candidates):
    candidates(program(tmp_path / "shims" / "python3", f'#!/bin/sh\nexec "{base_python()}" "$@"\n'))
    assert names() == []


def test_a_virtual_environment_is_passed_over_and_does_not_hide_its_base(tmp_path, candidates):
    subprocess.run([base_python(), "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    python = tmp_path / "env" / "bin" / "python"
    candidates(python)
    assert names() == []
    # An activated environment comes first on PATH, and its program is a link to its base's.
    candidates(python, base_python())
    assert [found.path for found in discover()] == [base_python()]


def test_a_link_to_an_interpreter_is_no_second_one(tmp_path, candidates):
    link = tmp_path / "python3"
    link.symlink_to(base_python())
    candidates(base_python(), link)
    assert [found.path for found in discover()] == [base_python()]


def test_versions_that_are_not_supported_are_passed_over(machine):
    machine({"/a": fact("3.8.18"), "/b": fact("2.7.18"), "/c": fact("3.8.16", "pypy"), "/d": fact("3.11.2", "graalpy")})
    assert names() == []


def test_the_first_source_of_a_version_wins(machine):
    machine({"/pyenv/python": fact("3.11.7"), "/usr/python": fact("3.11.7")})
    assert [found.path for found in discover()] == [Path("/pyenv/python")]


# What only looks like one


def answering(path, text):
    """A program that gives that answer to whatever it is asked."""
    answer = path.with_name(f"{path.name}.answer")
    path.parent.mkdir(parents=True, exist_ok=True)
    answer.write_bytes(text if isinstance(text, bytes) else text.encode())
    return program(path, f'#!/bin/sh\ncat "{answer}"\n')


def with_facts(**changes):
    return json.dumps({**fact("3.13.0").model_dump(), **changes})


@pytest.mark.parametrize(
    "answer",
    [
        b"\xff\xfe\xff",
        "[]",
        "null",
        "3",
        "{}",
        with_facts(version="12..3"),
        with_facts(version=3.13),
        with_facts(version="3.13"),
        with_facts(version="3.99999999999999999999.0"),
        with_facts(version="3.13.0\n"),
        with_facts(version="../../x"),
        with_facts(implementation="../cpython"),
        with_facts(implementation=None),
        with_facts(virtual="no"),
        with_facts(free_threaded=[]),
        with_facts(full_version=["3.13"]),
        with_facts(full_version="x" * 100_000),
        with_facts(build=[]),
        with_facts(build={"compiler": 3}),
        with_facts(build={"unheard": "of"}),
        "[" * 100_000,
        "1" * 100_000,
        "x" * (2 << 20),
    ],
)
def test_an_answer_of_another_kind_is_skipped_with_the_reason(tmp_path, candidates, answer):
    odd = answering(tmp_path / "python3.13", answer)
    candidates(odd, base_python())
    found, skipped = survey()
    assert [i.path for i in found] == [base_python()]
    assert [program.path for program in skipped] == [str(odd)]
    assert skipped[0].reason.isprintable()
    assert len(skipped[0].reason) < 500


def test_an_answer_with_markup_and_controls_is_shown_as_text(tmp_path, candidates):
    candidates(answering(tmp_path / "python3.13", with_facts(full_version="3.13 \x1b[2J")))
    (found,) = discover()
    assert found.full_version.isprintable()


def test_what_is_no_program_is_skipped_with_the_reason(tmp_path, candidates, monkeypatch):
    monkeypatch.setattr(interpreters, "PROBE_SECONDS", 0.5)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "text").write_text("no program")
    programs = {
        tmp_path / "folder": "is a folder",
        tmp_path / "link": "is a link to nothing",
        tmp_path / "text": "may not be executed",
        program(tmp_path / "odd", "#!/no/such/shell\n"): "can't be started (",
        program(tmp_path / "fails", "#!/bin/sh\nexit 3\n"): "ended with exit code 3",
        program(tmp_path / "hangs", "#!/bin/sh\nexec sleep 1000\n"): "gave no answer within 0.5 s",
        program(tmp_path / "endless", "#!/bin/sh\nexec yes\n"): "wrote more than 1,048,576 bytes",
    }
    candidates(*programs, base_python())
    found, skipped = survey()
    assert [i.path for i in found] == [base_python()]
    assert [one.path for one in skipped] == [str(path) for path in programs]
    assert all(one.reason.startswith(reason) for one, reason in zip(skipped, programs.values(), strict=True))


def test_without_a_home_and_with_relative_folders_nothing_is_searched_by_surprise(tmp_path, monkeypatch):
    program(tmp_path / "python3", f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    program(tmp_path / "versions" / "3.13" / "bin" / "python", f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", os.environ["PATH"]]))
    monkeypatch.setenv("PYENV_ROOT", ".")
    assert discover()
    monkeypatch.delenv("PYENV_ROOT")

    def nobody(self):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", nobody)
    assert discover()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "text",
    ["exit 1", "exec sleep 1000", "exec yes", r"printf '\377'", "echo '[]'", "echo '[3]'", "echo '[{\"path\": 3}]'",
     "echo '[{\"path\": null}]'", "echo '[{\"path\": \"relative\"}]'", "echo '{}'"],
)  # fmt: skip
def test_a_uv_that_misbehaves_lists_nothing(tmp_path, monkeypatch, text):
    monkeypatch.setattr(interpreters, "UV_SECONDS", 0.5)
    uv = program(tmp_path / "uv", f"#!/bin/sh\n{text}\n")
    monkeypatch.setattr(interpreters, "find_uv_bin", lambda: str(uv))
    assert interpreters._uvs() == []


def test_without_uv(monkeypatch):
    def missing():
        raise FileNotFoundError("uv")

    monkeypatch.setattr(interpreters, "find_uv_bin", missing)
    monkeypatch.setenv("PATH", "")
    assert interpreters._uvs() == []
    assert not interpreters.fetch_pypy()


# What it is called


def test_the_highest_patch_has_the_short_name(machine):
    machine({"/a": fact("3.11.2"), "/b": fact("3.11.10"), "/c": fact("3.11.7"), "/d": fact("3.9.18")})
    assert [(i.name, i.version) for i in discover()] == [
        ("cpython-3.9", "3.9.18"),
        ("cpython-3.11.2", "3.11.2"),
        ("cpython-3.11.7", "3.11.7"),
        ("cpython-3.11", "3.11.10"),
    ]


def test_a_free_threaded_build_is_marked_and_takes_no_name_away(machine):
    machine({"/a": fact("3.13.1", free_threaded=True), "/b": fact("3.13.0"), "/c": fact("3.13.0", free_threaded=True)})
    assert {i.name: i.version for i in discover()} == {
        "cpython-3.13": "3.13.0",
        "cpython-3.13t": "3.13.1",
        "cpython-3.13.0t": "3.13.0",
    }


def test_a_final_release_comes_before_its_candidates(machine):
    machine({"/a": fact("3.14.0c2"), "/b": fact("3.14.0"), "/c": fact("3.14.0a7")})
    assert {i.name: i.version for i in discover()} == {
        "cpython-3.14": "3.14.0",
        "cpython-3.14.0c2": "3.14.0c2",
        "cpython-3.14.0a7": "3.14.0a7",
    }


def test_cpython_comes_before_pypy(machine):
    machine({"/a": fact("3.11.9", "pypy"), "/b": fact("3.9.18"), "/c": fact("3.9.16", "pypy")})
    assert names() == ["cpython-3.9", "pypy-3.9", "pypy-3.11"]
    assert [found.has_jit for found in discover()] == [False, True, True]


def test_only_short_names_stand_for_their_version(machine):
    machine({"/a": fact("3.13.0"), "/b": fact("3.13.1"), "/c": fact("3.13.1", free_threaded=True)})
    assert [found.name for found in discover() if found.canonical] == ["cpython-3.13"]


# What is missing, and which one is meant


def test_what_is_missing_comes_with_its_command():
    lacking = missing([interpreter("cpython-3.9"), interpreter("cpython-3.13"), interpreter("pypy-3.9", "pypy")])
    assert [absent.name for absent in lacking] == [f"cpython-3.{minor}" for minor in (10, 11, 12, 14)]
    assert lacking[0].remedy == "uv python install cpython-3.10"


def test_without_a_pypy_one_is_missing():
    assert missing([interpreter("cpython-3.9")])[-1].name == interpreters.PYPY


def test_the_reference_is_the_newest_cpython_with_a_lock():
    found = [
        interpreter("cpython-3.9", version="3.9.18"),
        interpreter("cpython-3.13", version="3.13.0"),
        interpreter("cpython-3.14t", version="3.14.0"),
        interpreter("pypy-3.15", "pypy", version="3.15.0"),
    ]
    assert reference(found).name == "cpython-3.13"


def test_without_a_cpython_there_is_no_reference():
    with pytest.raises(UnknownName, match="uv python install"):
        reference([interpreter("pypy-3.9", "pypy")])


def test_an_unknown_name_suggests_the_nearest():
    found = [interpreter("cpython-3.12"), interpreter("pypy-3.9", "pypy")]
    assert choose("pypy-3.9", found) is found[1]
    with pytest.raises(UnknownName, match=r"Did you mean cpython-3\.12"):
        choose("cpython3.12", found)


# Environments


@pytest.fixture
def running(candidates):
    candidates(base_python())
    return discover()[0]


@pytest.fixture
def somewhere_else(tmp_path, monkeypatch):
    monkeypatch.setattr(interpreters, "ENVIRONMENTS", tmp_path / "environments")
    return tmp_path


def test_an_environment_has_pyperf_and_is_made_once(running, somewhere_else, monkeypatch):
    python = environment(running)
    assert somewhere_else in python.parents
    check = "import pyperf, sys; print(sys.version_info[:2] == {}, sys.prefix != sys.base_prefix)"
    command = [python, "-I", "-c", check.format(sys.version_info[:2])]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == ["True", "True"]

    monkeypatch.setattr(interpreters, "_uv", lambda *_: pytest.fail("a second environment"))
    assert environment(running) == python


def test_a_lock_that_can_not_be_met_fails_in_uvs_words_each_time(running, somewhere_else, monkeypatch):
    monkeypatch.setattr(interpreters, "REQUIREMENTS", somewhere_else)
    absent = somewhere_else / "absent-1.0-py3-none-any.whl"
    (somewhere_else / "worker.lock").write_text(f"absent @ {absent.as_uri()}\n")
    for _ in range(2):
        with pytest.raises(NoEnvironment, match=r"(?s)uv pip failed: .*absent-1\.0-py3-none-any\.whl"):
            environment(running)


def test_another_lock_is_another_environment(running, somewhere_else, monkeypatch):
    monkeypatch.setattr(interpreters, "REQUIREMENTS", somewhere_else)
    monkeypatch.setattr(interpreters, "_uv", lambda what, *rest: what == "venv" and Path(rest[-1]).mkdir())
    pythons = []
    for requirements in ("", "# another\n"):
        (somewhere_else / "worker.lock").write_text(requirements)
        pythons.append(environment(running))
    assert pythons[0] != pythons[1]
