"""`python -m tests`: the tests that each part runs, and the summary of its results."""

import pytest

from tests.__main__ import WORKER_SAFE, Result, read, read_options


@pytest.mark.parametrize(
    ("arguments", "selects", "worker_safe"),
    [
        ([], False, list(WORKER_SAFE)),
        (["-x", "--durations", "5"], False, list(WORKER_SAFE)),
        (["-k", "engines"], True, list(WORKER_SAFE)),
        (["--lf"], True, list(WORKER_SAFE)),
        (["--deselect", "tests/engines/test_bits.py"], False, list(WORKER_SAFE)),
        (["tests"], True, list(WORKER_SAFE)),
        (["tests/harness"], True, ["tests/harness/worker"]),
        (["tests/engines/test_nn.py"], True, ["tests/engines/test_nn.py"]),
        (["tests/reports"], True, []),
    ],
    ids=str,
)
def test_what_other_interpreters_run(arguments, selects, worker_safe):
    """An option's value is not a path, even if a folder has that name. A folder selects worker-safe code below it."""
    chosen = read_options(arguments)
    assert (chosen.selects, chosen.worker_safe_paths) == (selects, worker_safe)


def test_options_reach_every_part_but_only_the_host_uses_the_cache():
    chosen = read_options(["-k", "proof", "-x", "--update-golden", "--exhaustive", "tests/engines"])
    assert sorted(chosen.options) == ["--exhaustive", "-k", "-x", "proof"]
    assert (chosen.host_only, chosen.paths, chosen.exhaustive) == (["--update-golden"], ["tests/engines"], True)


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
    assert "1 min 01 s" in Result("part", 61.0, False, counts).line()
