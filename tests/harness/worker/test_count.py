"""Counting in a worker, on every interpreter: portions, flags, callgrind's files and the processor's own counter."""

import json
import mmap

import pytest

import engines
from engines.api import Unavailable
from harness import workloads
from harness.worker.job import do_job
from harness.worker.profiling import count

SOFTWARE_FAULTS = (1, 2)
"""PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS: an event that needs no processor's counter."""


class Fake:
    """A counter that gives 10 for the first portion and 20 for the second."""

    def __init__(self, job):
        self.counted = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def start(self):
        self.counted += 1

    def stop(self):
        return 10.0 * self.counted


@pytest.fixture
def job(tmp_path):
    return {
        "engine": "tcc",
        "workload": "xor",
        "reply_file": str(tmp_path / "reply.json"),
        "counter": "fake",
        "target": "",
        "steps": 50,
        "dump": str(tmp_path / "callgrind.out"),
    }


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    monkeypatch.setitem(count.COUNTERS, "fake", Fake)


@pytest.fixture
def tcc():
    try:
        engines.load("tcc").check()
    except Unavailable as missing:
        pytest.skip(missing.reason)


@pytest.mark.parametrize(
    ("steps", "batch", "wanted"), [(0, 1, 1), (50, 1, 51), (0, 4, 4), (50, 4, 56), (50, 1000, 2000)]
)
def test_a_portion_is_whole_batches(steps, batch, wanted):
    assert count.steps_of(steps, batch) == wanted


def test_only_the_two_portions_are_counted(tcc, job):
    reply = count.count(job)
    assert (reply["status"], reply["counts"], reply["steps"]) == ("measured", [10.0, 20.0], 52)
    assert reply["compiler"].startswith("tcc ")


def test_each_portion_restarts_the_training(tcc, job, monkeypatch):
    trainer = engines.load("tcc").prepare(workloads.load("xor"))
    seen = []

    class Recording(Fake):
        def start(self):
            seen.append(("start", len(trainer.losses)))

        def stop(self):
            seen.append(("stop", len(trainer.losses)))
            return 1.0

    monkeypatch.setitem(count.COUNTERS, "fake", Recording)
    monkeypatch.setattr(type(engines.load("tcc")), "prepare", lambda *_: trainer)
    count.count(job)
    assert seen == [("start", 0), ("stop", 4), ("start", 0), ("stop", 56)]


def test_an_engine_that_refuses_is_a_skip(job):
    reply = count.count({**job, "engine": "handwritten", "workload": "moons"})
    assert reply["status"] == "skipped"


def test_only_the_machines_own_target_is_replaced():
    flags = ("-O1", "-march=native", "-mprefer-vector-width=512")
    assert count.retargeted(flags, "x86-64-v3") == ("-O1", "-march=x86-64-v3", "-mprefer-vector-width=512")
    assert count.retargeted(("-O1",), "x86-64-v3") == ("-O1",)


DUMP = """\
# callgrind format
events: Ir

ob=(1) /usr/lib/libffi.so.8
fl=(1) ???
fn=(1) ffi_call
0 7
cob=(2) /tmp/zoomgrad-build-x1/program.so
cfn=(2) step
calls=3 0
0 500
cfn=(3) ffi_prep
calls=1 0
0 9000
cob=(2)
cfn=(4) update
calls=1 0
0 60

ob=(2)
fl=(2) ???
fn=(2) step
+3 300
cfn=(5) row
calls=3 0
* 100
cob=(3) /usr/lib/libm.so.6
cfn=(6) exp
calls=1 0
* 100

ob=(3)
fn=(6)
0 100

totals: 9967
"""


def test_calls_into_compiled_code_count_with_everything_that_they_call():
    """Calls within Python and libffi do not count, and calls between compiled functions do not count twice."""
    assert count.inside(DUMP) == 560
    assert count.inside("events: Ir\n\ntotals: 34\n") == 0


def test_requests_do_nothing_outside_of_valgrind(tcc, job):
    """The same object is loaded, but not under valgrind."""
    try:
        with count.callgrind(job) as counter, pytest.raises(FileNotFoundError):
            counter.start()
            counter.stop()
    except Unavailable as missing:
        pytest.skip(missing.reason)


def test_the_processor_counts_or_says_why_not():
    try:
        counter = count.Processor()
    except Unavailable as missing:
        assert missing.reason and missing.remedy
        return
    counter.start()
    fewer = counter.stop()
    counter.start()
    sum(range(10_000))
    assert counter.stop() > fewer
    counter.close()


def test_the_systems_counters_are_read():
    """Take the same path with a kernel event, first touches of pages; each count starts again at 0."""
    try:
        counter = count.Processor(SOFTWARE_FAULTS)
    except Unavailable as missing:
        pytest.skip(missing.reason)
    counts = []
    for pages in (0, 2000):
        with mmap.mmap(-1, 2000 * mmap.PAGESIZE) as memory:
            counter.start()
            for page in range(pages):
                memory[page * mmap.PAGESIZE] = 1
            counts.append(counter.stop())
    counter.close()
    assert 0 <= counts[0] < 500 < counts[1], counts


def test_a_job_leaves_its_reply(tcc, job, tmp_path, monkeypatch):
    file = tmp_path / "job.json"
    file.write_text(json.dumps(job))
    monkeypatch.setattr("sys.argv", ["count", str(file)])
    do_job(count.count)
    assert json.loads((tmp_path / "reply.json").read_text())["counts"] == [10.0, 20.0]
