"""Kills of real runs at random moments. Only the exhaustive suite has the time for them.

Full disks are in `test_disk.py`, engines that misbehave in `test_isolate.py`, damaged files in `tests/results`.
"""

import contextlib
import random
import subprocess
import sys
import time

import psutil
import pyperf
import pytest

from tests.harness.processes import processes_of, wait_for
from tests.harness.test_cli import RUNNING, kept_in
from zoomgrad.harness.run.schedule import BLOCK
from zoomgrad.results.store import Store

pytestmark = pytest.mark.exhaustive

ENGINES = "tuple,gcc-O1"
BLOCKS = 3
RECORDS = BLOCKS * 2
COMPILERS = ("gcc", "cc1", "as", "ld", "collect2")


def start(folder, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "zoomgrad", "run", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **kept_in(folder),
    )


def ended(process, *codes):
    said, _ = process.communicate(timeout=300)
    assert "Traceback" not in said
    assert process.returncode in codes, said


def targets(harness, target):
    """The processes to kill. Empty as long as there is none of that kind."""
    if target == "harness":
        return [harness]
    workers = processes_of(harness.pid)
    if target == "worker":
        return [one for one in workers if any(part.startswith("zoomgrad.harness.worker.") for part in one.cmdline())][
            :1
        ]
    if target == "compiler":
        return [one for one in workers if one.name().startswith(COMPILERS)][:1]
    return [harness, *workers]


def store_in(folder):
    return next((Store(path.parent) for path in folder.glob("runs/*/run.json")), None)


def measured(store):
    """Bytes of each measured record, by file. Every one must also be in its pyperf suite."""
    contents = {}
    for record in store.records() if store else ():
        if record.status == "measured":
            suite = pyperf.Benchmark.load(str(store.pyperf_file(record.cell)))
            assert record.block in {run.get_metadata().get(BLOCK) for run in suite.get_runs()}
            (path,) = store.folder.glob(f"records/{record.cell.engine}--*--{record.block}.json")
            contents[path] = path.read_bytes()
    return contents


@pytest.mark.parametrize("target", ["harness", "all", "worker", "compiler"])
@pytest.mark.parametrize("seed", range(3))
def test_a_kill_at_a_random_moment_loses_no_record(target, seed, tmp_path):
    rng = random.Random(f"{target} {seed}")
    options = ("--preset", "smoke", "--workloads", "xor", "--interpreters", RUNNING, "--blocks", str(BLOCKS))
    run = start(tmp_path, "--engines", ENGINES, *options)
    first = rng.randrange(RECORDS) if target != "compiler" else 0
    wait_for(lambda: run.poll() is not None or len([*tmp_path.glob("runs/*/records/*.json")]) >= first, 120)
    time.sleep(rng.random())
    victims = []
    while run.poll() is None and not (victims := targets(psutil.Process(run.pid), target)):
        time.sleep(0.002)
    for victim in victims:
        with contextlib.suppress(psutil.Error):
            victim.kill()
    if target in ("worker", "compiler"):
        ended(run, 0, 1)
    else:
        run.communicate(timeout=60)
        wait_for(lambda: not [one for one in processes_of(run.pid) if one.name() not in COMPILERS])
    store = store_in(tmp_path)
    before = measured(store)
    for path, content in list(before.items())[:1]:  # as a kill between writing and renaming leaves it
        path.with_name(".0123456789abcdef.draft").write_bytes(content[: len(content) // 2])
    resumed = start(tmp_path, *(("--resume", store.run.id) if store else ("--engines", ENGINES, *options)))
    ended(resumed, 0, *[1] * (target in ("worker", "compiler")))
    after = measured(store := store_in(tmp_path))
    assert before.items() <= after.items()
    assert len(after) == RECORDS or target in ("worker", "compiler")
    failed = {record.cell for record in store.records() if record.status == "failed"}
    assert len(store.records()) == RECORDS or failed
    assert (store.folder / "report.html").is_file()
    assert not processes_of(run.pid)
    assert not processes_of(resumed.pid)
