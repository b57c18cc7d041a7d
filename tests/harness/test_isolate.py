"""The process boundary with real processes: whatever a worker or its engine does, there is one reply and no process."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pyperf
import pytest

from tests.harness.processes import is_running, wait_for
from tests.harness.workers import MEASURED
from zoomgrad.engines import discovery
from zoomgrad.harness.containment import run as run_within
from zoomgrad.harness.run.isolate import KEPT, MOST_PADDING, PADDING, isolate
from zoomgrad.harness.worker.lifeline import HARNESS
from zoomgrad.results.files import MOST_BYTES
from zoomgrad.results.record import Settings

PYTHON = Path(sys.executable)  # the tests' own environment has pyperf
ROOT = Path(__file__).parent.parent.parent
MIB = 1 << 20


def run(task, job, *, python=PYTHON, timeout_seconds=60.0):
    return isolate(task, python, job, settings=Settings(timeout_seconds=timeout_seconds), draw=1)


@pytest.fixture
def job(evidence):
    return {
        "engine": "tuple",
        "workload": "xor",
        "reference_folder": str(evidence),
        "reference_cell": "tuple/cpython-3.13/xor",
        "reference_steps": 64,
        "reference_drills": ["short"],
        "warmups": 2,
        "values": 3,
        "value_seconds": 0.005,
        "offset_steps": 3,
        "stretch_steps": 0,
        "steps_per_value": 0,
    }


@pytest.fixture
def misbehaving(job, monkeypatch):
    """`misbehaving(text, **limits)`: the answer of a worker whose engine runs that code."""
    monkeypatch.setattr("zoomgrad.harness.run.isolate.importable", lambda: ROOT)  # so that the worker finds `tests`

    def measure(text, *, seconds=20.0, **limits):
        asked = {**job, "misbehaviour": text}
        package = "tests.harness.misbehaving"
        return isolate(
            "measure", PYTHON, asked, settings=Settings(timeout_seconds=seconds, **limits), draw=1, package=package
        )

    return measure


def running(file):
    """The processes of the family whose pids the file holds."""
    return [pid for pid in map(int, file.read_text().split()) if is_running(pid)]


# Workers that behave


@pytest.mark.parametrize("engine", ["tuple", "baseline", "replay"])
def test_a_worker_proves_and_measures(engine, job):
    """A value is a whole number of vouched stretches."""
    answer = run("measure", {**job, "engine": engine})
    reply = answer.reply
    assert reply["status"] == "measured", reply
    assert reply["proof"]["reference"] == "tuple/cpython-3.13/xor"
    assert reply["proof"]["identical"] or engine == "baseline"
    steps = reply["stretch_steps"]
    assert reply["proof"]["steps"] == steps <= 64
    passes, rest = divmod(reply["steps_per_value"], steps)
    assert (rest, reply["proof"]["stretches"] >= 1 + 5 * passes) == (0, True)  # calibration, two warm-ups, three values
    assert reply["peak_bytes"] > 0
    assert set(reply["phases"]) == ({"trace"} if engine == "replay" else set())

    (benchmark,) = pyperf.BenchmarkSuite.loads(answer.pyperf.decode()).get_benchmarks()
    (process,) = benchmark.get_runs()
    assert (benchmark.get_name(), len(process.values), len(process.warmups)) == ("xor", 3, 2)
    assert process.get_loops() == reply["steps_per_value"]


def test_a_worker_inherits_no_descriptor(tmp_path):
    file = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(file, True)
    try:
        code = f"import os\ntry: os.fstat({file})\nexcept OSError: print('closed')"
        finished = run_within([sys.executable, "-c", code], {}, str(tmp_path), Settings())
    finally:
        os.close(file)
    assert finished[:3] == (0, "closed", "")


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
    pids = tmp_path / "pids"
    python = stand_in(FAMILY.replace("PIDS", str(pids)) + then)
    reply = run("measure", job, python=python, timeout_seconds=timeout_seconds).reply
    assert reply["status"] == status
    assert status == "failed" or (reply["reason"], "--timeout" in reply["remedy"]) == ("took longer than 3 s", True)
    assert len(pids.read_text().split()) == 3
    assert not running(pids)


def test_an_interrupt_ends_the_worker_too(job, stand_in, tmp_path):
    pids = tmp_path / "pids"
    python = stand_in(FAMILY.replace("PIDS", str(pids)) + "time.sleep(600)")
    text = (
        "import json, signal, sys; from pathlib import Path; from zoomgrad.results.record import Settings\n"
        "from zoomgrad.harness.run.isolate import isolate\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background jobs ignore it
        "isolate('vouch', Path(sys.argv[1]), json.loads(sys.argv[2]), settings=Settings(), draw=0)"
    )
    caller = subprocess.Popen([sys.executable, "-c", text, python, json.dumps(job)], stderr=subprocess.PIPE, text=True)
    wait_for(pids.exists)
    caller.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in caller.communicate(timeout=60)[1]
    assert not running(pids)


def test_a_worker_sees_only_the_kept_environment_variables(job, stand_in, monkeypatch):
    """So does pyperf's own worker, which its manager starts: it would drop the hash seed by default."""
    for name, value in (("PYTHONOPTIMIZE", "2"), ("OMP_NUM_THREADS", "64"), ("PYTHONPATH", "/elsewhere")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ZOOMGRAD_DATA", "/data")
    python = stand_in(
        f"size = len(os.environ[{PADDING!r}])\n"
        f"print(json.dumps([{{**os.environ, {PADDING!r}: size}}, sys.argv])); sys.exit(3)"
    )
    seen, _ = json.loads(run("vouch", job, python=python).reply["reason"].partition(": ")[2])
    ours = {PADDING, HARNESS, "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONPATH", "PYTHONHASHSEED"}
    assert set(seen) - {"LC_CTYPE"} <= {*KEPT, *discovery.variables(), *ours, "PYTHONNOUSERSITE"}
    assert 0 < seen[PADDING] < MOST_PADDING
    assert (seen["OMP_NUM_THREADS"], seen["ZOOMGRAD_DATA"], seen["PYTHONHASHSEED"]) == ("1", "/data", "1")
    assert [path.name for path in Path(seen["PYTHONPATH"]).iterdir()] == ["zoomgrad"]
    reason = run("measure", job, python=python).reply["reason"]
    (inherited,) = [word for word in reason.split('"') if word.startswith("--inherit-environ=")]
    assert {"ZOOMGRAD_DATA", "PYTHONPATH", "PYTHONHASHSEED"} <= {*inherited.partition("=")[2].split(",")}


# Engines that misbehave


CHEAT = """
from tests.harness.misbehaving.cheats import {} as Cheat
prepare = engine.prepare
engine.prepare = lambda workload: Cheat(prepare(workload))
"""


def test_an_engine_that_replays_a_stretch_fails(misbehaving):
    answer = misbehaving(CHEAT.format("Replaying"))
    assert (answer.reply["status"], answer.pyperf) == ("failed", None), answer
    assert "differs from tuple/cpython-3.13/xor" in answer.reply["reason"]
    assert "from start 1" in answer.reply["reason"]
    assert answer.reply["remedy"] == "A wrong result has no speed: fix the engine."


REPLACE = """
import atexit, json, os
def replace():
    path = job["reply_file"]
    reply = json.load(open(path))
    {}
atexit.register(replace)
"""


def figures(name, value):
    return f"prepared(lambda trainer: setattr(trainer, {name!r}, {value}))"


def rewritten(field, value):
    return REPLACE.format(f"json.dump({{**reply, {field!r}: {value}}}, open(path, 'w'))")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (figures("phases", "{'compile': float('nan')}"), "its reply is invalid: phases.compile: "),
        (figures("sizes", "{'rows': 3}"), "its reply is invalid: rows: Extra inputs are not permitted, not 3"),
        ("engine.supports = lambda workload: True", "its reply is invalid: reason: "),
        (rewritten("status", "'great'"), "its reply is invalid: the file as a whole: "),
        (REPLACE.format("open(path, 'w').write('no JSON')"), "its reply is invalid: the file as a whole: Invalid JSON"),
        (
            REPLACE.format(f"open(path, 'ab').truncate({MOST_BYTES + 1})"),
            "its reply.json is longer than 16,777,216 bytes",
        ),
        (REPLACE.format("os.remove(path); os.mkfifo(path)"), "its reply.json is not a file"),
        (REPLACE.format("os.remove(path); os.symlink('/etc/passwd', path)"), "its reply.json can't be read"),
    ],
)
def test_an_invalid_reply_is_a_failure_that_names_the_engine_and_the_field(misbehaving, text, said):
    answer = misbehaving(text)
    assert answer.reply["status"] == "failed"
    assert answer.reply["reason"].startswith(f"tuple: {said}")
    assert "fix the engine" in answer.reply["remedy"].lower()
    assert answer.pyperf is None
    assert len(answer.reply["reason"]) < 5000


def times(*values):
    """Return the text of pyperf's file for these times, in seconds."""
    run = pyperf.Run(values, metadata={"name": "xor"}, collect_metadata=False)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "times.json"
        pyperf.Benchmark([run]).dump(str(file))
        return file.read_text()


@pytest.mark.parametrize(
    ("content", "said"),
    [("no JSON", "pyperf can't read the times: "), (times(0.1, 0.2), "pyperf's file has 2 times instead of 3")],
)
def test_invalid_times_are_a_failure(job, stand_in, content, said):
    python = stand_in(
        "job = json.load(open(sys.argv[-1]))\n"
        f"open(job['reply_file'], 'w').write({json.dumps(MEASURED)!r})\n"
        "(output,) = [a.partition('=')[2] for a in sys.argv if a.startswith('--output=')]\n"
        f"open(output, 'w').write({content!r})"
    )
    answer = run("measure", job, python=python)
    assert answer.reply["status"] == "failed", answer
    assert said in answer.reply["reason"]
    assert answer.pyperf is None


HOG = "hoard = []\nprepared(lambda trainer: [hoard.append(bytearray(1 << 24)) for _ in range(1 << 20)])"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory from outside")
@pytest.mark.parametrize(
    ("text", "limits", "limit", "said", "remedy"),
    [
        (
            "import os\nwhile True: os.write(1, b'x' * 65536)",
            {"output_bytes": 4 * MIB},
            "output",
            "wrote more than 4,194,304 bytes",
            "write less",
        ),
        (
            "def short(trainer): raise OSError('cc1: out of memory')\nprepared(short)",
            {},
            "memory",
            "ran out of memory: its limit",
            "--memory",
        ),
        (HOG, {"memory_bytes": 1 << 30}, "memory", "ran out of memory: its limit is 1 GiB", "--memory"),
    ],
)
def test_a_worker_beyond_a_limit_is_ended(misbehaving, text, limits, limit, said, remedy):
    reply = misbehaving(text, **limits).reply
    assert (reply["status"], reply["limit"]) == ("failed", limit)
    assert reply["reason"].startswith(said)
    assert remedy in reply["remedy"]


HARNESS_THAT_IS_KILLED = """
import json, sys
from pathlib import Path
from zoomgrad.results.record import Settings
from zoomgrad.harness.run.isolate import isolate
sys.modules["zoomgrad.harness.run.isolate"].importable = Path.cwd
isolate("measure", Path(sys.executable), json.loads(sys.argv[1]), settings=Settings(), draw=0,
        package="tests.harness.misbehaving")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals a process when its parent dies")
def test_no_worker_outlives_a_harness_that_is_killed(job, tmp_path):
    """Neither pyperf's manager nor the worker that it started may survive."""
    file = tmp_path / "pids"
    text = (
        "import os, time\ndef sleep(trainer):\n"
        f"    open({str(file) + '.draft'!r}, 'w').write(f'{{os.getppid()}} {{os.getpid()}}')\n"
        f"    os.rename({str(file) + '.draft'!r}, {str(file)!r})\n    time.sleep(600)\nprepared(sleep)"
    )
    command = [sys.executable, "-c", HARNESS_THAT_IS_KILLED, json.dumps({**job, "misbehaviour": text})]
    harness = subprocess.Popen(command, cwd=ROOT)
    try:
        wait_for(file.exists)
    finally:
        harness.send_signal(signal.SIGKILL)
        harness.wait()
    wait_for(lambda: not running(file), seconds=10)
