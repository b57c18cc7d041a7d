"""`python -m tests`: the tests that each interpreter runs, and the summary of their results."""

from tests.__main__ import BETWEEN, ROOT, WITH_A_JIT, WORKER_SAFE, Result, read, share_of


def test_results_are_read_from_pytests_xml(tmp_path):
    file = tmp_path / "part.xml"
    file.write_text(
        '<testsuites><testsuite tests="4" failures="1" errors="0" skipped="1">'
        '<testcase classname="tests.a" name="slow" time="2.5"/><testcase classname="tests.a" name="quick" time="0.1"/>'
        "</testsuite></testsuites>"
    )
    counts, slowest = read(file)
    assert counts == {"passed": 2, "failed": 1, "skipped": 1}
    assert slowest == [(2.5, "tests.a::slow"), (0.1, "tests.a::quick")]
    assert "FAILED: 2 passed, 1 failed, 1 skipped" in Result("part", 61.0, True, counts).line()


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
