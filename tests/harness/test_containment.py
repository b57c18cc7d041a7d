"""Containment of workers: limits and orphans."""

import os
import subprocess
import sys

import psutil
import pytest

from tests.harness.processes import wait_for
from zoomgrad.harness import containment
from zoomgrad.harness.containment import Limits

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this")

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


@linux
def test_orphans_are_ended_and_known_children_are_not():
    known = subprocess.Popen(SLEEP)
    before = containment.adopt_orphans()
    assert known.pid in before
    orphaning = (
        "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nprint(os.getpid(), flush=True)\ntime.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", orphaning], stdout=subprocess.PIPE, text=True)
    orphan = int(parent.stdout.readline())
    parent.wait()
    try:
        wait_for(lambda: orphan in containment._children())
        containment._end_orphans(before)
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
