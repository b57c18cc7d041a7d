"""The campaign finds all processes of a victim, daemons included, and all files that the victim touches."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from faults.runs import as_files, check_complete, check_kept, check_whole, on_disk
from faults.sandbox import Sandbox
from faults.tally import Tally
from results.run_file import unpack
from results.store import BASELINE_RUNS, Store

DAEMON = """
import os, subprocess, sys, time
from faults.sandbox import descendants, end_descendants, left_over
from harness.containment.descendants import adopt_orphans
import faults.sandbox
faults.sandbox.GRACE_SECONDS = 0.5
adopt_orphans()
hidden = '''
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.chdir("/")
os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)"], {})
'''
subprocess.run([sys.executable, "-c", hidden], check=True)
found = left_over()
faults.sandbox.GRACE_SECONDS = 10.0
end_descendants()
print(len(found), len(descendants()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")
def test_a_daemon_is_found_and_ended():
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    said = subprocess.run([sys.executable, "-c", DAEMON], env=environment, capture_output=True, text=True, timeout=60)
    assert said.stdout.split() == ["1", "0"], said.stderr


def test_touched_files_are_found(tmp_path):
    sandbox = Sandbox(tmp_path / "box")
    assert sandbox.touched() == []
    (sandbox.folder / "tmp" / "zoomgrad-x").mkdir()
    (sandbox.folder / "tmp" / "zoomgrad-x" / "job.json").write_text("ours")
    (sandbox.folder / "cache" / "object").write_text("ours")
    run = sandbox.runs / "2026"
    (run / "records").mkdir(parents=True)
    (run / "run.json").write_text("{}")
    assert sandbox.touched() == []

    box = sandbox.folder
    (box / "home" / "notes.txt").write_text("changed by somebody")
    (box / "home" / "new").write_text("")
    (box / "cache" / "kept").unlink()
    (box / "runs" / "stray.json").write_text("")
    touched = [str(Path(path).relative_to(box)) for path in sandbox.touched()]
    assert touched == ["cache/kept", "home/new", "home/notes.txt", "runs/stray.json"]


@pytest.fixture
def store(tmp_path):
    for name, content in as_files(unpack(BASELINE_RUNS / "smoke.jsonl.xz")).items():
        path = tmp_path / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return Store(tmp_path / "run")


def test_lost_and_torn_records_are_counted(store):
    before = dict(list(on_disk(store).items())[:3])
    tally = Tally()
    check_whole(store, tally, "before")
    assert tally.failures == 0

    first, second, third = before
    first.unlink()
    second.write_bytes(before[second].replace(b'"measured"', b'"failed"'))
    third.write_bytes(before[third][:100])
    check_kept(None, before, tally, "after")
    check_whole(store, tally, "after")
    assert tally.lost == 3
    assert tally.torn == 2, "two records are torn: one is cut short, one failed but has times"
    assert "is gone" in tally.notes[0]


def test_a_run_that_lacks_records_is_not_complete(store):
    (store.folder / "report.html").write_text("")
    for path in (store.folder / "records").glob("tcc--cpython-3.13--xor--*.json"):
        path.unlink()
    tally = Tally()
    check_complete(store, tally, "after")
    assert (tally.lost, "tcc/cpython-3.13/xor" in tally.notes[0]) == (1, True)
