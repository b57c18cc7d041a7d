"""`python -m tests`: the tests that each interpreter runs."""

from tests.__main__ import BETWEEN, ROOT, WITH_A_JIT, WORKER_SAFE, share_of


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
