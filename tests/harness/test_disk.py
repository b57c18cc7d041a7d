"""A full disk: a run prints one clear error and loses no measurement. Single writes are in `results/test_files.py`."""

import shutil
import subprocess
import sys

import pytest

from tests.harness.test_cli import RUNNING, kept_in
from zoomgrad.results.store import Store


def may_mount():
    """Return whether this process may mount a private file system."""
    unshare = shutil.which("unshare")
    command = "mount -t tmpfs -o size=64k tmpfs /mnt"
    return bool(unshare) and not subprocess.run([unshare, "-m", "sh", "-c", command], capture_output=True).returncode


mounting = pytest.mark.skipif(not may_mount(), reason="mounting a small disk needs root on Linux")


@mounting
@pytest.mark.parametrize("records", [3, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in (0, 1, 5))])
def test_a_run_whose_disk_fails_loses_no_record_and_can_be_resumed(tmp_path, records):
    options = f"--preset smoke --engines tuple --workloads xor --interpreters {RUNNING} --blocks 7"
    (tmp_path / "disk").mkdir()
    script = f"""
        set -e
        cd {tmp_path}
        zoomgrad="{sys.executable} -m zoomgrad"
        mount -t tmpfs -o size=80m tmpfs disk
        export ZOOMGRAD_RUNS={tmp_path}/disk/runs
        $zoomgrad run {options} &
        while [ $(ls disk/runs/*/records 2>/dev/null | wc -l) -lt {records} ]; do kill -0 $!; sleep 0.02; done
        head -c 1000000000 /dev/zero > disk/filler || true
        code=0; wait $! || code=$?
        cp -r disk/runs full || mkdir full
        rm -f disk/filler
        if [ -e disk/runs/*/run.json ]; then $zoomgrad run --resume $(ls disk/runs) >&2; fi
        [ -e disk/runs/*/run.json ] || $zoomgrad run {options} >&2
        cp -r disk/runs whole
        exit $code
    """
    command = ["unshare", "-m", "sh", "-c", script]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, **kept_in(tmp_path))
    assert ended.returncode in (1, 2), ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    assert "No space left on device" in ended.stderr
    assert "All records so far are kept: continue with `zoomgrad run --resume" in ended.stderr
    full = [Store(path.parent).records() for path in (tmp_path / "full").glob("*/run.json")]
    whole = Store(next((tmp_path / "whole").glob("*/run.json")).parent).records()
    assert records <= sum(map(len, full)) < len(whole) == 7
    assert not list((tmp_path / "full").rglob("*.draft"))
    assert all(record in whole for kept in full for record in kept)
