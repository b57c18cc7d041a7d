"""Interpreters by path, by full version and by name; and what is refused."""

import os
import sys
from pathlib import Path

import pytest

from zoomgrad.harness.machine import interpreters, named
from zoomgrad.harness.machine.interpreters import Interpreter
from zoomgrad.harness.machine.named import asked
from zoomgrad.results.files import Unreadable


def base_python():
    return Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))


def found(*names):
    return [
        Interpreter(name, Path(f"/{name}/python"), "cpython", "3.13.0", "", False, {}, (f"{name}.0",)) for name in names
    ]


def test_a_path_gets_the_users_name_and_its_own_facts():
    everything, chosen = asked([f"mine={base_python()}", "cpython-3.13"], found("cpython-3.13"))
    assert chosen == ["mine", "cpython-3.13"]
    mine = everything[-1]
    assert (mine.name, mine.path, mine.version) == ("mine", base_python(), ".".join(map(str, sys.version_info[:3])))
    assert mine.build["compiler"]
    assert not mine.canonical


def test_a_full_version_is_an_alias_and_an_unknown_name_stays():
    assert asked(["cpython-3.13.0", "cpython-3.13", "nowhere"], found("cpython-3.13"))[1] == ["cpython-3.13", "nowhere"]


def test_one_program_under_two_names_is_refused(tmp_path):
    link = tmp_path / "python"
    link.symlink_to(base_python())
    with pytest.raises(Unreadable, match="are the same program"):
        asked([f"one={base_python()}", f"other={link}"], [])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("/usr/bin/python3", "needs a name"),
        ("cpython-3.99=/bin/sh", "not a name"),
        ("mine=/nowhere/python", "mine: /nowhere/python can't be inspected"),
        ("mine=/bin/sh", "mine: /bin/sh "),
    ],
)
def test_what_is_no_interpreter_is_refused_with_a_remedy(name, reason):
    with pytest.raises(Unreadable) as refused:
        asked([name], [])
    first, second = str(refused.value).splitlines()
    assert reason in first
    assert second.startswith("  ")


def test_an_old_or_virtual_python_is_refused(monkeypatch):
    facts = {"full_version": "", "free_threaded": False, "jit": False, "build": {}}
    old = interpreters.Facts(implementation="cpython", version="3.8.18", virtual=False, **facts)
    virtual = interpreters.Facts(implementation="cpython", version="3.13.0", virtual=True, **facts)
    for answer, reason in (
        (old, "is cpython 3.8.18, which zoomgrad does not support"),
        (virtual, "virtual environment"),
    ):
        monkeypatch.setattr(named, "probe", lambda path, answer=answer: answer)
        with pytest.raises(Unreadable, match=reason):
            asked(["mine=/some/python"], [])


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(Unreadable, match="two interpreters would have this name"):
        asked([f"mine={base_python()}", f"mine={base_python()}"], [])
