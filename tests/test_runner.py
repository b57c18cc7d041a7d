"""`python -m tests`: the tests that each interpreter runs, and what decides whether all is well."""

import pytest

from tests import __main__ as runner
from tests.__main__ import BETWEEN, FAILED, NO_TESTS, PASSED, ROOT, WITH_A_JIT, WORKER_SAFE, Result, share_of


class Guest:
    def __init__(self, implementation, *minor, free_threaded=False):
        self.implementation, self.minor, self.free_threaded = implementation, minor, free_threaded
        self.has_jit = implementation == "pypy"


def test_each_interpreter_runs_its_share():
    """The oldest CPython runs all tests of worker-safe code."""
    oldest, middle, pypy = guests = Guest("cpython", 3, 9), Guest("cpython", 3, 10), Guest("pypy", 3, 9)
    assert [share_of(guest, guests) for guest in (oldest, middle, pypy)] == [(), BETWEEN, WITH_A_JIT]
    assert share_of(Guest("cpython", 3, 10, free_threaded=True), guests) == ()
    assert [path for path in (*WORKER_SAFE, *WITH_A_JIT) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    ("elsewhere", "in_ci", "code"),
    [
        ({"cpython-3.9": PASSED, "pypy-3.9": PASSED}, "1", 0),
        ({"cpython-3.9": PASSED, "pypy-3.9": NO_TESTS}, "1", 1),
        ({"cpython-3.9": PASSED, "pypy-3.9": NO_TESTS}, "", 0),
        ({"cpython-3.9": FAILED}, "", 1),
    ],
)
def test_a_part_that_fails_or_in_ci_runs_nothing_fails_all(monkeypatch, capsys, elsewhere, in_ci, code):
    monkeypatch.setenv("CI", in_ci)
    monkeypatch.setenv("ZOOMGRAD_TEST_OBJECTS", "")  # the runner sets it
    monkeypatch.setattr(runner, "HERE", "cpython-3.13")
    monkeypatch.setattr(runner, "get_clang", lambda: None)
    monkeypatch.setattr(runner.interpreters, "discover", list)
    monkeypatch.setattr(runner, "pytest", lambda part, *_: Result(part, 1.0, PASSED))
    monkeypatch.setattr(runner, "elsewhere", lambda *_: [Result(name, 1.0, told) for name, told in elsewhere.items()])
    assert runner.main([]) == code
    shown = capsys.readouterr().out
    assert ("CI must cover" in shown) == (in_ci == "1" and code == 1)
    assert "not covered: Install it: `uv python install" in shown
