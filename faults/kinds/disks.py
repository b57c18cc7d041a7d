"""A disk fills up or becomes read-only during a run. After it is repaired, the run is resumed.

Each batch mounts its own tmpfs in a private mount namespace. Where mounting is not permitted, a limit on file sizes
(`RLIMIT_FSIZE`) makes writes fail instead.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil

from faults.kinds import Batch
from faults.runs import (
    RUN_SECONDS,
    check_alone,
    check_complete,
    check_kept,
    check_said,
    check_whole,
    on_disk,
)
from faults.sandbox import Sandbox, Victim, descendants, end_descendants
from faults.tally import Tally

NAME = "disks"
FAULTS = "a disk becomes full or read-only at a random moment and is repaired later; then a resume"
UNIT = "a disk"
TRIES = 6
BATCHES = 10
SECONDS = 900.0

SPAN_SECONDS = 7.0
"""About how long a run takes. A later moment disturbs only the report, or nothing."""
DISK_BYTES = 64 << 20
MOST_SPACE_LEFT = 64 << 10
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MAY_FAIL = {0, 1, 2}
"""Exit codes of a run whose disk failed: 1 for a failed record or a disk error, 2 for an unreadable file, 0 if
everything had been written before."""


def lacks() -> str:
    """Why it can't run here; empty if it can."""
    return "" if sys.platform == "linux" else "only Linux has tmpfs and limits on a running process"


def run(batch: Batch, tally: Tally) -> None:
    """Make disks fail, one way after another."""
    ways: tuple[str, ...] = ("full", "read-only", "limit")
    refused = _unshare()
    if refused:
        tally.remarks.append(f"only file sizes were limited, because no tmpfs can be mounted here ({refused})")
        ways = ("limit",)
    for number in range(TRIES):
        way = ways[number % len(ways)]
        rng = batch.rng(number)
        _try(batch.folder / str(number), way, rng, tally, f"{way} {number}")
        tally.tries += 1


def _try(folder: Path, way: str, rng: random.Random, tally: Tally, where: str) -> None:
    # A disk can't become read-only while a file is open for writing, and temporary files are open most of the time.
    disk = folder / "runs" if way == "read-only" or rng.random() < 0.5 else folder
    disk.mkdir(parents=True)
    if way != "limit":
        _mount("-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=700", "zoomgrad-faults", str(disk))
    try:
        sandbox = Sandbox(folder)
        victim = sandbox.run("tuple,tcc", rng.randrange(1 << 32))
        if victim.wait_until(rng.random() * SPAN_SECONDS):
            how = {"full": _full, "read-only": _read_only, "limit": _limit}[way]
            how(sandbox, victim, disk, rng, tally, where)
        else:
            _then_resume(sandbox, victim, tally, where)
        check_alone(sandbox, tally, where)
    finally:
        end_descendants()
        if way != "limit":
            _umount(disk)


def _full(sandbox: Sandbox, victim: Victim, disk: Path, rng: random.Random, tally: Tally, where: str) -> None:
    ballast = disk / "ballast"
    left = rng.randrange(MOST_SPACE_LEFT)
    _fill(ballast, left)
    _then_resume(sandbox, victim, tally, f"{where}, {left:,} bytes left", ballast.unlink)


def _read_only(sandbox: Sandbox, victim: Victim, disk: Path, rng: random.Random, tally: Tally, where: str) -> None:
    def repair() -> None:
        _mount("-o", "remount,rw", str(disk))

    def change() -> bool:
        return not _mount_code("-o", "remount,ro", str(disk))

    victim.wait_until(SPAN_SECONDS, change)
    _then_resume(sandbox, victim, tally, where, repair)


def _limit(sandbox: Sandbox, victim: Victim, disk: Path, rng: random.Random, tally: Tally, where: str) -> None:
    size = rng.randrange(200_000)
    for process in [psutil.Process(victim.process.pid), *descendants()]:
        with contextlib.suppress(psutil.Error):
            process.rlimit(psutil.RLIMIT_FSIZE, (size, size))
    _then_resume(sandbox, victim, tally, f"{where}, {size:,} bytes")


def _then_resume(
    sandbox: Sandbox, victim: Victim, tally: Tally, where: str, repair: Callable[[], object] = lambda: None
) -> None:
    """Wait for the run to end, check its files, repair the disk and resume the run."""
    code = victim.wait(RUN_SECONDS)
    store = sandbox.store()
    before = on_disk(store)
    repair()
    check_said(victim, code, MAY_FAIL, tally, where)
    check_whole(store, tally, where)
    resumed = sandbox.start("run", "--resume", store.run.id) if store else sandbox.run("tuple,tcc", 1)
    check_said(resumed, resumed.wait(RUN_SECONDS), {0, 1}, tally, f"{where}, resumed")
    store = sandbox.store()
    check_whole(store, tally, f"{where}, resumed")
    check_kept(store, before, tally, f"{where}, resumed")
    check_complete(store, tally, f"{where}, resumed", failures=True)


def _fill(ballast: Path, left: int) -> None:
    """Fill the disk until `left` bytes are free."""
    stat = os.statvfs(ballast.parent)
    free = stat.f_bavail * stat.f_frsize
    with contextlib.suppress(OSError), ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, free - left))


# --- private mounts --------------------------------------------------------------------------------------------------


def _unshare() -> str:
    """Give this process its own mount namespace. Return why that failed, or an empty string."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWNS if uid == 0 else CLONE_NEWNS | CLONE_NEWUSER):
        return f"unshare: {os.strerror(ctypes.get_errno())}"
    try:
        if uid:
            for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
                Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
        _mount("--make-rprivate", "/")
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return ""


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True, timeout=60)  # noqa: S603, S607


def _mount_code(*arguments: str) -> int:
    return subprocess.run(["mount", *arguments], check=False, capture_output=True, timeout=60).returncode  # noqa: S603, S607


def _umount(folder: Path) -> None:
    subprocess.run(["umount", "--lazy", str(folder)], check=False, capture_output=True, timeout=60)  # noqa: S603, S607
