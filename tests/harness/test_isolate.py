"""The process boundary with real processes: whatever a worker does, the harness gets a reply."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyperf
import pytest

from tests.harness.processes import is_running, wait_for
from zoomgrad.engines import discovery
from zoomgrad.harness.containment import Limits
from zoomgrad.harness.run import isolate as isolating
from zoomgrad.harness.run.isolate import KEPT, PADDING, Draw, isolate
from zoomgrad.harness.worker.evidence import Witness, write_evidence
from zoomgrad.harness.worker.lifeline import HARNESS

PYTHON = Path(sys.executable)  # the tests' own environment has pyperf


@pytest.fixture
def job(tmp_path):
    return {
        "engine": "tuple",
        "workload": "xor",
        "interpreter": "cpython-3.13",
        "reference_folder": str(tmp_path / "evidence"),
        "reference_cell": "tuple/cpython-3.13/xor",
        "reference_steps": 64,
        "reference_drills": ["short", "single", "whole", "ragged"],
        "warmups": 2,
        "values": 3,
        "value_seconds": 0.01,
        "offset_steps": 3,
        "objects": str(tmp_path / "objects"),
        "stretch_steps": 0,
        "steps_per_value": 0,
    }


@pytest.fixture
def vouching(tmp_path):
    """Job of the engine that vouches for all others."""
    return {
        "engine": "tuple",
        "workload": "xor",
        "witnesses": {},
        "folder": str(tmp_path / "evidence"),
        "seconds": 10.0,
        "steps": 64,
        "starts": 3,
    }


def run(task, job, *, python=PYTHON, timeout_seconds=60.0):
    return isolate(task, python, job, limits=Limits(timeout_seconds), draw=Draw(1, 100))


@pytest.fixture
def reference(vouching):
    answer = run("vouch", vouching)
    assert answer.reply["status"] == "measured", answer
    return Path(vouching["folder"])


# Workers that behave


@pytest.mark.parametrize("engine", ["tuple", "baseline", "replay"])
def test_a_worker_proves_and_measures(engine, job, reference):
    answer = run("measure", {**job, "engine": engine})
    reply = answer.reply
    assert reply["status"] == "measured", reply
    assert reply["proof"]["reference"] == "tuple/cpython-3.13/xor"
    assert reply["proof"]["identical"] or engine == "baseline"
    assert reply["peak_bytes"] > 0
    assert reply["losses"][0]["step"] == 0
    assert set(reply["phases"]) == ({"trace"} if engine == "replay" else set())

    (benchmark,) = pyperf.BenchmarkSuite.loads(answer.pyperf.decode()).get_benchmarks()
    (process,) = benchmark.get_runs()
    assert (benchmark.get_name(), len(process.values), len(process.warmups)) == ("xor", 3, 2)
    assert process.get_loops() == reply["steps_per_value"]
    assert benchmark.get_metadata()["zoomgrad_engine"] == engine


def test_a_value_is_a_whole_number_of_vouched_stretches_or_has_an_earlier_blocks_steps(job, reference):
    reply = run("measure", {**job, "engine": "replay"}).reply
    assert reply["stretch_steps"] == reply["proof"]["steps"] == 64
    assert reply["steps_per_value"] % 64 == 0
    passes = reply["steps_per_value"] // 64
    assert reply["proof"]["stretches"] == 1 + 5 * passes  # calibration, two warm-ups, three values
    assert len(reply["losses"]) == 64
    answer = run("measure", {**job, "stretch_steps": 8, "steps_per_value": 8})
    assert (answer.reply["stretch_steps"], answer.reply["steps_per_value"]) == (8, 8)
    assert pyperf.Benchmark.loads(answer.pyperf.decode()).get_runs()[0].get_loops() == 8


def test_a_result_that_differs_in_the_last_bit_has_no_speed(job, reference):
    """The changed evidence is that of the last value, of two steps, between updates. The job allows no longer one."""
    found = {name: Witness(reference).evidence(name) for name in ("2", "1x2", "2x2", "3x2")}
    numbers = found["3x2"].gradients
    index = max(i for i, x in enumerate(numbers) if x)
    numbers[index] *= 1 + 2**-52
    write_evidence(reference, found.items())
    answer = run("measure", {**job, "reference_steps": 2})
    assert answer.reply["status"] == "failed"
    assert f"gradients[{index}] is " in answer.reply["reason"]
    assert "tuple/cpython-3.13/xor" in answer.reply["reason"]
    assert answer.reply["remedy"] == "A wrong result has no speed: fix the engine."
    assert answer.pyperf is None


# Workers that break


def test_a_crash_is_reported_with_its_signal(job, stand_in):
    python = stand_in("print('about to crash', flush=True); os.kill(os.getpid(), signal.SIGSEGV)")
    answer = run("measure", job, python=python)
    assert answer.reply == {"status": "failed", "reason": "the worker was ended by SIGSEGV: about to crash"}
    assert answer.pyperf is None


FAMILY = """
sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
parent = "import subprocess, sys, time; print(subprocess.Popen({!r}).pid, flush=True); time.sleep(600)".format(sleeper)
# A compiler has its own process group, and could run for minutes during the next timing.
child = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True, process_group=0)
grandchild = child.stdout.readline().strip()
with open("PIDS.draft", "w") as file:
    file.write(f"{os.getpid()} {child.pid} {grandchild}")
os.replace("PIDS.draft", "PIDS")
"""


@pytest.mark.parametrize(
    ("then", "timeout_seconds", "status"), [("time.sleep(600)", 3, "timed-out"), ("sys.exit(3)", 60, "failed")]
)
def test_a_workers_children_end_with_it(then, timeout_seconds, status, job, stand_in, tmp_path):
    pids_file = tmp_path / "pids"
    python = stand_in(FAMILY.replace("PIDS", str(pids_file)) + then)
    answer = run("measure", job, python=python, timeout_seconds=timeout_seconds)
    assert answer.reply["status"] == status
    assert status == "failed" or (answer.reply["reason"], "--timeout" in answer.reply["remedy"]) == (
        "took longer than 3 s",
        True,
    )
    pids = [int(pid) for pid in pids_file.read_text().split()]
    assert len(pids) == 3
    wait_for(lambda: not any(is_running(pid) for pid in pids))


def test_an_interrupt_ends_the_worker_too(job, stand_in, tmp_path):
    pids_file = tmp_path / "pids"
    python = stand_in(FAMILY.replace("PIDS", str(pids_file)) + "time.sleep(600)")
    text = (
        "import json, signal, sys; from pathlib import Path; from zoomgrad.harness.containment import Limits\n"
        "from zoomgrad.harness.run.isolate import Draw, isolate\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background jobs ignore it
        "isolate('vouch', Path(sys.argv[1]), json.loads(sys.argv[2]), limits=Limits(600), draw=Draw())"
    )
    caller = subprocess.Popen([sys.executable, "-c", text, python, json.dumps(job)], stderr=subprocess.PIPE, text=True)
    wait_for(pids_file.exists)
    caller.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in caller.communicate(timeout=60)[1]
    pids = [int(pid) for pid in pids_file.read_text().split()]
    wait_for(lambda: not any(is_running(pid) for pid in pids))


# What a worker inherits


def test_a_worker_sees_only_the_kept_environment_variables(job, stand_in, monkeypatch):
    monkeypatch.setenv("PYTHONOPTIMIZE", "2")
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("ZOOMGRAD_DATA", "/data")
    python = stand_in("print(json.dumps(dict(os.environ))); sys.exit(3)")
    seen = json.loads(run("vouch", job, python=python).reply["reason"].partition(": ")[2])
    assert set(seen) - {"LC_CTYPE"} <= {
        *KEPT,
        *discovery.variables(),
        "PYTHONPATH",
        "PYTHONHASHSEED",
        "PYTHONNOUSERSITE",
        PADDING,
        HARNESS,
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
    }
    assert len(seen[PADDING]) == 100
    assert seen["OMP_NUM_THREADS"] == "1"
    assert (seen["ZOOMGRAD_DATA"], seen["PYTHONHASHSEED"]) == ("/data", "1")
    assert [path.name for path in Path(seen["PYTHONPATH"]).iterdir()] == ["zoomgrad"]
    assert os.pathsep not in seen["PYTHONPATH"]


def test_pyperfs_own_worker_inherits_the_same_variables(job, stand_in, monkeypatch):
    """pyperf's manager starts the process that measures, and drops the hash seed by default."""
    monkeypatch.setenv("ZOOMGRAD_DATA", "/data")
    python = stand_in("print(sys.argv[1:]); sys.exit(3)")
    reason = run("measure", job, python=python).reply["reason"]
    for name in ("ZOOMGRAD_DATA", "PYTHONPATH", "PYTHONHASHSEED"):
        assert name in reason


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_not_recorded_as_a_failed_cell(tmp_path):
    """A record would be final; without one, a resumed run measures the cell."""
    isolating._refuse_full_disk(tmp_path)
    isolating._refuse_full_disk(tmp_path / "removed by the engine")
    (tmp_path / "space").unlink()
    (tmp_path / "space").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        isolating._refuse_full_disk(tmp_path)
