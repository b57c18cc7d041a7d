"""Containment of workers: limits, leftovers of a harness that died, and orphans."""

import os
import subprocess
import sys

import psutil
import pytest

from tests.harness.processes import is_running, wait_for
from zoomgrad.harness import containment
from zoomgrad.harness.containment import Limits, descendants
from zoomgrad.harness.worker.lifeline import HARNESS, identity, lives

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this")

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


# Which harness a process works for


def test_an_identity_names_one_process_at_one_time():
    child = subprocess.Popen(SLEEP)
    try:
        mark = identity(child.pid)
        assert lives(identity())
        assert lives(mark)
        if sys.platform == "linux":
            namespace = mark.rpartition("-")[2]
            assert not lives(f"{child.pid}-1-{namespace}"), "that mark is of an earlier process with the same pid"
            assert lives(f"{child.pid}-1-7"), "a process of another container can't be checked, so it counts as alive"
        child.kill()
        wait_for(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
        assert not lives(mark) or sys.platform != "linux", "a zombie must count as dead"
    finally:
        child.kill()
        child.wait()
    assert not lives(mark)
    with pytest.raises(ProcessLookupError):
        identity(child.pid)


@pytest.mark.parametrize(
    "text", ["", "-", "1", "1-1", "x-1-1", "-1-1-1", "0-0-0", "99999999999999999999-1-1", "²-1-1", "1--", "1 -1-1"]
)
def test_a_malformed_identity_names_no_process(text):
    assert not lives(text)


def marked(mark, **options):
    return subprocess.Popen(SLEEP, env={**os.environ, HARNESS: mark}, **options)


def test_only_processes_of_a_dead_harness_are_ended():
    dead = subprocess.Popen([sys.executable, "-c", "pass"])
    dead.wait()
    left = marked(f"{dead.pid}-1-{identity().rpartition('-')[2]}", start_new_session=True)
    others = [
        marked(identity()),
        marked("nonsense"),
        marked("12-x"),
        marked(f"{dead.pid}-1-7"),
        subprocess.Popen(SLEEP),
    ]
    try:
        assert containment.end_leftovers() >= 1
        assert not is_running(left.pid)
        assert all(other.poll() is None for other in others)
    finally:
        for process in (left, *others):
            process.kill()
            process.wait()


@linux
def test_orphans_are_ended_and_known_children_are_not():
    descendants.adopt_orphans()
    known = subprocess.Popen(SLEEP)
    before = descendants.children()
    assert known.pid in before
    orphaning = (
        "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nprint(os.getpid(), flush=True)\ntime.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", orphaning], stdout=subprocess.PIPE, text=True)
    orphan = int(parent.stdout.readline())
    parent.wait()
    try:
        wait_for(lambda: orphan in descendants.children())
        descendants.end_orphans(before)
        assert not psutil.pid_exists(orphan), "the orphan was not killed and reaped"
        assert known.poll() is None
    finally:
        known.kill()
        known.wait()
        parent.stdout.close()


# One command


def test_a_worker_inherits_no_descriptor(tmp_path):
    file = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(file, True)
    try:
        code = f"import os\ntry: os.fstat({file})\nexcept OSError: print('closed')"
        finished = containment.run([sys.executable, "-c", code], {}, str(tmp_path), Limits(60.0))
    finally:
        os.close(file)
    assert finished[:3] == (0, "closed", "")
