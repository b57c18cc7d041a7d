"""Misbehaving engines in real workers: each gives one reply that names the fault, and leaves no process."""

import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pyperf
import pytest

from tests.harness.processes import is_running, wait_for
from tests.harness.workers import MEASURED
from zoomgrad.harness.containment import Limits
from zoomgrad.harness.run.isolate import Draw, isolate
from zoomgrad.results.files import MOST_BYTES

PYTHON = Path(sys.executable)
ROOT = Path(__file__).parent.parent.parent
MIB = 1 << 20


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    """Folder with the evidence of `tuple` on xor."""
    folder = tmp_path_factory.mktemp("evidence")
    job = {
        "engine": "tuple",
        "workload": "xor",
        "witnesses": {},
        "folder": str(folder),
        "seconds": 0.1,
        "steps": 8,
        "starts": 2,
    }
    answer = isolate("vouch", PYTHON, job, limits=Limits(60.0), draw=Draw())
    assert answer.reply["status"] == "measured", answer
    return folder


@pytest.fixture
def job(evidence, tmp_path):
    return {
        "engine": "tuple",
        "workload": "xor",
        "interpreter": "cpython-3.13",
        "reference_folder": str(evidence),
        "reference_cell": "tuple/cpython-3.13/xor",
        "reference_steps": 8,
        "reference_drills": ["short"],
        "warmups": 1,
        "values": 2,
        "value_seconds": 0.001,
        "offset_steps": 0,
        "objects": str(tmp_path / "objects"),
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
        return isolate("measure", PYTHON, asked, limits=Limits(seconds, **limits), draw=Draw(1), package=package)

    return measure


CHEAT = """
from tests.harness.misbehaving.cheats import {} as Cheat
prepare = engine.prepare
engine.prepare = lambda workload, objects=None: Cheat(prepare(workload, objects=objects))
"""


def test_an_engine_that_replays_a_stretch_fails(misbehaving):
    reply = misbehaving(CHEAT.format("Replaying")).reply
    assert reply["status"] == "failed", reply
    assert "differs from tuple/cpython-3.13/xor" in reply["reason"]
    assert "from start 1" in reply["reason"]


# Figures and refusals of an engine


def changed(name, value):
    return f"prepared(lambda trainer: setattr(trainer, {name!r}, {value}))"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("phases", "{'compile': float('nan')}", "phases.compile: Input should be a finite number"),
        ("sizes", "{'rows': 3}", "rows: Extra inputs are not permitted, not '3'"),
        ("sizes", "{'tape_rows': 0.5}", "tape_rows: Input should be a valid integer"),
    ],
)
def test_invalid_figures_are_a_failure_that_names_them(misbehaving, name, value, said):
    reply = misbehaving(changed(name, value)).reply
    assert reply["status"] == "failed"
    assert reply["reason"].startswith(f"tuple: its reply is invalid: {said}")
    assert "fix the engine" in reply["remedy"].lower()


@pytest.mark.parametrize(("answer", "shown"), [("True", "True"), ("''", "''"), ("['no']", "['no']")])
def test_a_refusal_without_a_reason_is_a_failure(misbehaving, answer, shown):
    reply = misbehaving(f"engine.supports = lambda workload: {answer}").reply
    assert (reply["status"], reply["reason"]) == ("failed", f"tuple: supports() returned {shown}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise SystemExit(3)", "failed with exit code 3"),
        ("raise KeyboardInterrupt", "failed with exit code -2"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "failed with exit code -11"),
        ("import sys; sys.stdout.close(); sys.exit(4)", "failed with exit code 4"),
    ],
)
def test_an_engine_that_ends_its_process_is_reported(misbehaving, text, said):
    reply = misbehaving(f"def end(trainer):\n    {text}\nprepared(end)").reply
    assert reply["status"] == "failed"
    assert said in reply["reason"]


ACTS = {
    "odd exception": ("class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd", "failed", ""),
    "endless recursion": ("def act(): act()\nact()", "failed", ""),
    "deaf": (
        "for n in {*signal.Signals} - {9, 19}: signal.signal(n, 1)\nwhile True: pass",
        "timed-out",
        "time",
    ),
    "asleep": ("time.sleep(600)", "timed-out", "time"),
    "kills its manager": ("os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(600)", "timed-out failed", "time"),
    "leaves a child": ("subprocess.Popen(SLEEP)", "measured timed-out", "time"),
    "leaves a session": ("subprocess.Popen(SLEEP, start_new_session=True)", "measured timed-out", "time"),
    "closes its output": ("for number in (0, 1, 2): os.close(number)", "measured failed", ""),
    "closes everything": ("os.closerange(0, 256)", "measured failed", ""),
    "changes its folder": ("os.chdir('/')", "measured", ""),
    "removes its folder": ("import shutil; shutil.rmtree(os.getcwd())", "measured failed", ""),
}
"""What an engine does in `prepare` or while it trains: code, the statuses that its reply may have, and its limit."""
ACTING = "import os, signal, subprocess, sys, time\nSLEEP = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
LATER = """
def change(trainer):
    train = trainer.train
    def train_and_act(steps):
        train(steps)
        act()
    trainer.train = train_and_act
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("moment", ["preparing", "training"])
@pytest.mark.parametrize("act", ACTS)
def test_an_engine_that_misbehaves_is_one_reply_and_leaves_no_process(misbehaving, act, moment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, statuses, limit = ACTS[act]
    define = "def act():\n" + "".join(f"    {line}\n" for line in code.splitlines())
    change = "def change(trainer): act()\n" if moment == "preparing" else LATER
    before = {*psutil.Process().children(recursive=True)}
    reply = misbehaving(f"{ACTING}{define}{change}prepared(change)", seconds=6.0).reply
    assert reply["status"] in statuses.split(), reply
    assert reply.get("limit", "") == (limit if reply["status"] == "timed-out" else "")
    assert reply["status"] == "measured" or reply["reason"].strip()
    assert {*psutil.Process().children(recursive=True)} <= before


# What an engine writes into its worker's files

REPLACE = """
import atexit, json, os
def replace():
    path = job["reply_file"]
    reply = json.load(open(path))
    {}
atexit.register(replace)
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("open(path, 'w').write('no JSON')", "the file as a whole: Invalid JSON"),
        ("json.dump({**reply, 'status': 'great'}, open(path, 'w'))", "the file as a whole: "),
        ("json.dump({**reply, 'step_seconds': [1e-9]}, open(path, 'w'))", "step_seconds: Extra inputs"),
        ("json.dump({**reply, 'peak_bytes': 10**30}, open(path, 'w'))", "peak_bytes: "),
        ("json.dump({**reply, 'pace_seconds': [float('nan')]}, open(path, 'w'))", "pace_seconds.0: "),
        ("reply['proof']['steps'] = 0; json.dump(reply, open(path, 'w'))", "proof.steps: "),
        (f"open(path, 'ab').truncate({MOST_BYTES + 1})", "its reply.json is longer than 16,777,216 bytes"),
        ("os.remove(path); os.mkfifo(path)", "its reply.json is not a file"),
        ("os.remove(path); os.symlink('/etc/passwd', path)", "its reply.json can't be read"),
        ("import shutil; shutil.rmtree(os.path.dirname(path))", "no reply"),
    ],
)
def test_an_invalid_reply_is_a_failure_that_names_the_engine_and_the_field(misbehaving, text, said):
    answer = misbehaving(REPLACE.format(text))
    assert answer.reply["status"] == "failed"
    assert said in answer.reply["reason"]
    assert "tuple: its reply" in answer.reply["reason"] or "reply.json" in said or said == "no reply"
    assert answer.pyperf is None
    assert len(answer.reply["reason"]) < 5000


def times(*values, warmups=()):
    """Return the text of pyperf's file for these times, in seconds."""
    loops = [(1, seconds) for seconds in warmups]
    run = pyperf.Run(values, warmups=loops, metadata={"name": "xor"}, collect_metadata=False)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "times.json"
        pyperf.Benchmark([run]).dump(str(file))
        return file.read_text()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("no JSON", "pyperf can't read the times: "),
        ('{"version": "1.0", "benchmarks": [{"runs": [{"values": ["x"]}]}]}', "pyperf can't read the times: "),
        (times(0.1, 0.2, 0.3), "pyperf's file has 3 times instead of 2"),
        (times(0.1, 0.25).replace("0.25", "NaN"), "a time is nan s"),
        (times(0.1, 0.25).replace("0.25", "-1.0"), "a time is -1.0 s"),
        (times(0.1, 0.2, warmups=[0.75]).replace("0.75", "-1.0"), "a time is -1.0 s"),
    ],
)
def test_invalid_times_are_a_failure(job, stand_in, content, said):
    python = stand_in(
        "job = json.load(open(sys.argv[-1]))\n"
        f"open(job['reply_file'], 'w').write({json.dumps(MEASURED)!r})\n"
        "(output,) = [a.partition('=')[2] for a in sys.argv if a.startswith('--output=')]\n"
        f"open(output, 'w').write({content!r})"
    )
    answer = isolate("measure", python, job, limits=Limits(60.0), draw=Draw())
    assert answer.reply["status"] == "failed", answer
    # pyperf itself refuses some of them, with its own message.
    assert said in answer.reply["reason"] or "pyperf can't read the times" in answer.reply["reason"]
    assert answer.pyperf is None


# Limits


def test_output_beyond_the_limit_ends_the_worker(misbehaving):
    write = "import os\nwhile True: os.write(1, b'x' * 65536 + b'the end')"
    reply = misbehaving(write, output_bytes=4 * MIB).reply
    assert (reply["status"], reply["limit"]) == ("failed", "output")
    assert reply["reason"] == "wrote more than 4 MiB of output"
    assert "write less" in reply["remedy"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory from outside")
def test_memory_beyond_the_limit_is_reported_as_that(misbehaving):
    hog = "hoard = []\nprepared(lambda trainer: [hoard.append(bytearray(1 << 24)) for _ in range(1 << 20)])"
    reply = misbehaving(hog, memory_bytes=1 << 30).reply
    assert (reply["status"], reply["limit"]) == ("failed", "memory")
    assert reply["reason"].startswith("ran out of memory: its limit is 1 GiB")
    assert "--memory" in reply["remedy"]


SLEEPERS = """
import os, time
def sleepers(trainer):
    for _ in range(40):
        if not os.fork():
            time.sleep(600)
    time.sleep(600)
prepared(sleepers)
"""


def test_processes_beyond_the_limit_end_the_worker(misbehaving, monkeypatch):
    monkeypatch.setattr("zoomgrad.harness.containment.running.COUNTING_SECONDS", 1.0)
    reply = misbehaving(SLEEPERS, most_processes=20).reply
    assert (reply["status"], reply["limit"]) == ("failed", "processes")
    assert reply["reason"] == "had more than 20 processes"
    assert "start fewer" in reply["remedy"]


# Processes that try to outlive their worker


STAYING = {
    "session": """
if not os.fork():
    os.setsid()
    stay()
""",
    "double fork": """
if not os.fork():
    os.setsid()
    if not os.fork():
        stay()
    os._exit(0)
os.wait()
""",
    "deaf": """
if not os.fork():
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)
    if not os.fork(): stay()
    os._exit(0)
""",
    "family": """
if not os.fork():
    os.setsid()
    for _ in range(3):
        os.fork()
    if os.getpid() != os.getsid(0): os.setpgid(0, 0)
    stay()
""",
}

STAY = """
import os, signal, time
def stay():
    os.closerange(0, 64)  # an open pipe would keep its reader waiting
    with open(f"{FOLDER}/{os.getpid()}.draft", "w"): pass
    os.rename(f"{FOLDER}/{os.getpid()}.draft", f"{FOLDER}/{os.getpid()}")
    time.sleep(600)
def fork(trainer):
HOW
    while len([name for name in os.listdir(FOLDER) if name.isdigit()]) < COUNT: time.sleep(0.01)
prepared(fork)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can find a process that left its session")
@pytest.mark.parametrize("how", STAYING)
def test_a_process_that_leaves_the_session_ends_with_the_worker(misbehaving, how, tmp_path):
    folder = tmp_path / "pids"
    folder.mkdir()
    count = 8 if how == "family" else 1
    text = STAY.replace("HOW", "".join(f"    {line}\n" for line in STAYING[how].splitlines()))
    answer = misbehaving(text.replace("FOLDER", repr(str(folder))).replace("COUNT", str(count)))
    pids = [int(path.name) for path in folder.iterdir()]
    assert answer.reply["status"] == "measured", answer
    assert len(pids) == count
    # They must be gone at once, because the next worker is timed now.
    assert not any(is_running(pid) for pid in pids)


HARNESS = """
import json, sys
from pathlib import Path
from zoomgrad.harness.containment import Limits
from zoomgrad.harness.run.isolate import Draw, isolate
# No mark: another run on this machine would end the worker as a leftover.
sys.modules["zoomgrad.harness.run.isolate"].identity = lambda: ""
sys.modules["zoomgrad.harness.run.isolate"].importable = Path.cwd
print("started", flush=True)
isolate("measure", Path(sys.executable), json.loads(sys.argv[1]), limits=Limits(600), draw=Draw(),
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
    harness = subprocess.Popen([sys.executable, "-c", HARNESS, json.dumps({**job, "misbehaviour": text})], cwd=ROOT)
    try:
        wait_for(file.exists)
    finally:
        harness.send_signal(signal.SIGKILL)
        harness.wait()
    pids = [int(pid) for pid in file.read_text().split()]
    assert len(pids) == 2
    wait_for(lambda: not any(is_running(pid) for pid in pids), seconds=10)
