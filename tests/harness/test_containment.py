"""Containment of workers: limits, leftovers of a harness that died, and orphans."""

import os
import subprocess
import sys
from types import SimpleNamespace

import psutil
import pytest

from tests.harness.processes import is_running, wait_for
from zoomgrad.harness import containment
from zoomgrad.harness.containment import Limits, descendants
from zoomgrad.harness.worker.lifeline import HARNESS

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this")

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


# Which harness a process works for


def marked(mark, **options):
    return subprocess.Popen(SLEEP, env={**os.environ, HARNESS: mark}, **options)


def test_only_processes_of_a_dead_harness_are_ended():
    dead = subprocess.Popen([sys.executable, "-c", "pass"])
    dead.wait()
    left = marked(str(dead.pid), start_new_session=True)
    others = [marked(str(os.getpid())), *map(marked, ("nonsense", "-1", "²")), subprocess.Popen(SLEEP)]
    try:
        assert containment.end_leftovers() >= 1
        assert not is_running(left.pid)
        assert all(other.poll() is None for other in others)
    finally:
        for process in (left, *others):
            process.kill()
            process.wait()


def test_a_process_with_the_pid_of_a_dead_harness_is_not_the_harness():
    worker, younger = (subprocess.Popen(SLEEP) for _ in range(2))
    try:
        wait_for(lambda: psutil.Process(younger.pid).create_time() >= psutil.Process(worker.pid).create_time())
        assert descendants._lives(os.getpid(), psutil.Process(worker.pid))
        assert descendants._lives(worker.pid, psutil.Process(younger.pid))
        old = SimpleNamespace(create_time=lambda: psutil.Process(younger.pid).create_time() - 1)
        assert not descendants._lives(younger.pid, old)
    finally:
        for process in (worker, younger):
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
