"""`engines.asking` against programs that fail, hang or flood: none of them may block or end the caller."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from zoomgrad.engines import asking
from zoomgrad.engines.asking import NoAnswer, ask, on_path, surroundings, unusable, which

if os.name != "posix":
    pytest.skip("the programs are scripts, which need a POSIX system", allow_module_level=True)


def script(path, text):
    """Write a program, and return its path."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def refusal(command, **limits):
    with pytest.raises(NoAnswer) as error:
        ask(command, **limits)
    return str(error.value)


def is_gone(process):
    """Whether the process ends within a few seconds, which gives a signal time to arrive."""
    for _ in range(500):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{process}/stat")
        if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False


def test_an_answer(tmp_path):
    program = script(tmp_path / "p", "echo said; echo besides >&2")
    assert sorted(ask([program]).split()) == ["besides", "said"]
    assert ask([program], errors=False) == "said\n"
    assert ask([script(tmp_path / "q", "cat; pwd -P")], folder=tmp_path).strip() == str(tmp_path.resolve())


def test_a_program_that_fails(tmp_path):
    assert refusal([script(tmp_path / "p", r"printf 'no\033[2J'; exit 3")]) == (
        "ended with exit code 3: no\N{REPLACEMENT CHARACTER}[2J"
    )
    assert refusal([script(tmp_path / "q", "kill -SEGV $$")]) == "was ended by SIGSEGV"


def test_a_program_that_hangs_is_killed_with_its_children(tmp_path):
    program = script(tmp_path / "p", f'sleep 1000 & echo $! > "{tmp_path}/child"; wait')
    assert refusal([program], seconds=0.5) == "took longer than 0.5 s"
    assert is_gone(int((tmp_path / "child").read_text()))


def test_an_answer_does_not_wait_for_a_child_that_holds_the_pipe(tmp_path):
    assert ask([script(tmp_path / "p", f'sleep 1000 & echo $! > "{tmp_path}/child"; echo 1.0')]) == "1.0\n"
    assert is_gone(int((tmp_path / "child").read_text()))


def test_a_program_that_cannot_be_started(tmp_path):
    odd = tmp_path / "odd"
    odd.write_text("#!/no/such/shell\n")
    odd.chmod(0o755)
    for command in ([str(odd)], [str(tmp_path)], [str(tmp_path / "nowhere")], ["a\0b"]):
        assert refusal(command).startswith("can't be started (")


def test_inherited_variables(tmp_path, monkeypatch):
    """A program inherits no variable that changes a compiler's output, and PATH never has the current folder."""
    for name in ("CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH", "CFLAGS", "GIT_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("CCC_OVERRIDE_OPTIONS", "x-O1 +-O0")
    monkeypatch.setenv("ZOOMGRAD_HARNESS", "the-run")
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", "bin", *filter(None, os.environ["PATH"].split(os.pathsep))]))
    program = script(tmp_path / "p", "env")
    seen = dict(line.split("=", 1) for line in ask([program]).splitlines())
    shells_own = {"PWD", "OLDPWD", "SHLVL", "_"}
    assert set(seen) - shells_own <= {*asking.INHERITED, "PATH", "LC_ALL"}
    assert (seen["ZOOMGRAD_HARNESS"], seen["LC_ALL"]) == ("the-run", "C")
    assert all(map(os.path.isabs, seen["PATH"].split(os.pathsep)))
    assert surroundings()["PATH"] == seen["PATH"]


# --- programs on PATH --------------------------------------------------------------------------------------------


def test_the_first_usable_program_in_an_absolute_folder_is_taken(tmp_path, monkeypatch):
    folders = [tmp_path / name for name in "abcdef"]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "tool").mkdir()
    (folders[1] / "tool").symlink_to("nowhere")
    (folders[2] / "tool").symlink_to("tool")
    script(folders[3] / "tool", "").chmod(0o644)
    os.mkfifo(folders[4] / "tool", 0o755)
    script(folders[5] / "tool", "")
    monkeypatch.chdir(folders[5])
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", "/nowhere", *map(str, folders)]))
    assert list(on_path("to{1,2}l")) == [str(folder / "tool") for folder in folders]
    assert [unusable(path) for path in on_path("tool")] == [*["is not an executable file"] * 5, ""]
    assert which("tool") == str(folders[5] / "tool")
