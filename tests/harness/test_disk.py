"""Full disks: a command prints one clear error and loses no measurement."""

import resource
import shutil
import subprocess
import sys
import textwrap

import pytest

from tests.harness.runs import kept
from tests.harness.test_cli import RUNNING, kept_in
from zoomgrad.results.store import Store


def may_mount():
    """Return whether this process may mount a private file system."""
    unshare = shutil.which("unshare")
    command = "mount -t tmpfs -o size=64k tmpfs /mnt"
    return bool(unshare) and not subprocess.run([unshare, "-m", "sh", "-c", command], capture_output=True).returncode


mounting = pytest.mark.skipif(not may_mount(), reason="mounting a small disk needs root on Linux")


def check_error(ended, cause, code=1):
    """Check that the process ended with one line that names the cause, and the remedy in the next line."""
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    line, remedy = ended.stderr.splitlines()[-2:]
    assert line.startswith("zoomgrad: ")
    assert cause in line
    assert remedy.startswith("  ")


@pytest.fixture
def limited(tmp_path):
    """`limited(size, *arguments)`: run `zoomgrad` with files limited to `size` bytes, as on a disk that fills up."""
    options = kept_in(tmp_path)
    options["env"]["PYTHONDONTWRITEBYTECODE"] = "1"  # Python would leave a truncated file beside a module

    def zoomgrad(size, *arguments):
        return subprocess.run(
            [sys.executable, "-m", "zoomgrad", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=300,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
            **options,
        )

    return zoomgrad


@pytest.fixture
def on_disk(tmp_path):
    """`on_disk(script, *arguments)`: run a shell script with a small private disk, `$disk`."""

    def run(script, *arguments, size="256k"):
        disk = tmp_path / "disk"
        disk.mkdir()
        begin = (
            f"set -e; disk={disk}; zoomgrad='{sys.executable} -m zoomgrad'; mount -t tmpfs -o size={size} tmpfs $disk\n"
        )
        return subprocess.run(
            ["unshare", "-m", "sh", "-c", begin + textwrap.dedent(script), "sh", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=300,
            **kept_in(tmp_path),
        )

    return run


def test_a_report_that_does_not_fit_keeps_the_previous_one(limited, tmp_path):
    store = kept(tmp_path)
    page = store.folder / "report.html"
    page.write_text("the one before")
    before = store.records()
    ended = limited(4096, "report", store.folder)
    check_error(ended, "File too large")
    assert "--resume" not in ended.stderr  # no run was interrupted
    assert page.read_text() == "the one before"
    assert store.records() == before
    assert not list(store.folder.rglob("*.draft"))


FILL = ("head -c 1000000000 /dev/zero > $disk/filler || true", "rm -f $disk/filler")


@mounting
@pytest.mark.parametrize("records", [3, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in (0, 1, 5))])
def test_a_run_whose_disk_fails_loses_no_record_and_can_be_resumed(on_disk, tmp_path, records):
    fail, repair = FILL
    options = f"--preset smoke --engines tuple --workloads xor --interpreters {RUNNING} --blocks 7 --seed 1"
    ended = on_disk(
        f"""
        export ZOOMGRAD_RUNS=$disk/runs
        $zoomgrad run {options} &
        while [ $(ls $disk/runs/*/records 2>/dev/null | wc -l) -lt {records} ]; do kill -0 $!; sleep 0.02; done
        {fail}
        code=0; wait $! || code=$?
        cp -r $disk/runs $1 || mkdir $1
        {repair}
        if [ -e $disk/runs/*/run.json ]; then $zoomgrad run --resume $(ls $disk/runs) >&2; fi
        [ -e $disk/runs/*/run.json ] || $zoomgrad run {options} >&2
        cp -r $disk/runs $2
        exit $code
        """,
        *(tmp_path / "full", tmp_path / "whole"),
        size="80m",
    )
    assert ended.returncode in (1, 2), ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    assert "No space left on device" in ended.stderr
    assert "All records so far are kept: continue with `zoomgrad run --resume" in ended.stderr
    full = [Store(path.parent).records() for path in (tmp_path / "full").glob("*/run.json")]
    whole = Store(next((tmp_path / "whole").glob("*/run.json")).parent).records()
    assert records <= sum(map(len, full)) < len(whole) == 7
    assert not list((tmp_path / "full").rglob("*.draft"))
    assert all(record in whole for kept in full for record in kept)
