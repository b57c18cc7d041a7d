"""A control group (cgroup v2) for one worker. All its descendants are members, and one write kills them.

The group is made inside the harness's own group, or beside it if only its parent offers the controllers for memory and
processes, as in a systemd user session. Existing groups are never changed. If no group can be made, `descendants` alone
finds the worker's processes.

A hybrid system mounts v2 at /sys/fs/cgroup/unified and gives its controllers to v1. Its groups still have members and
`cgroup.kill`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from harness.worker.lifeline import IDENTITY, identity, lives

NAME = "zoomgrad-{harness}-{number}"
_NAME = re.compile(rf"zoomgrad-({IDENTITY.pattern})-\d+", re.ASCII)

ENDING_SECONDS = 10.0
"""How long the system may take to end killed processes."""

_numbers = itertools.count()


class Group:
    """One worker's control group. Its methods do not raise, whatever the members do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, pid: int) -> None:
        """Make that process a member. The processes that it starts afterwards are members too."""
        with contextlib.suppress(OSError):  # it has already ended
            (self.folder / "cgroup.procs").write_text(str(pid))

    def limit(self, memory_bytes: int, most_processes: int) -> None:
        """Limit all members together. Skips a limit whose controller is not available."""
        self._set("memory.max", memory_bytes)
        self._set("memory.swap.max", 0)  # a worker that swaps would be slow instead of ending
        self._set("memory.oom.group", 1)
        self._set("pids.max", most_processes)

    @property
    def limits_memory(self) -> bool:
        return (self.folder / "memory.max").exists()

    @property
    def limits_processes(self) -> bool:
        return (self.folder / "pids.max").exists()

    @property
    def limit_hit(self) -> str:
        """The limit that the system enforced, `memory` or `processes`; empty if neither."""
        if self._events("memory.events").get("oom_kill"):
            return "memory"
        return "processes" if self._events("pids.events").get("max") else ""

    def size(self) -> int:
        """Number of member processes. Takes one read of about 40 µs."""
        return len(self._members())

    def end(self) -> None:
        """Kill every member and remove the group."""
        with contextlib.suppress(OSError):
            (self.folder / "cgroup.kill").write_text("1")  # Linux 5.14; kills all at once, so none can fork away
        until = time.monotonic() + ENDING_SECONDS
        while True:
            # For Linux before 5.14, and for members of groups below this one.
            for member in self._members():
                with contextlib.suppress(OSError):
                    os.kill(member, signal.SIGKILL)
            try:
                _remove(self.folder)
            except FileNotFoundError:
                return
            except OSError:
                if time.monotonic() > until:
                    return  # the next start tries again
                time.sleep(0.002)
            else:
                return

    def _members(self) -> list[int]:
        found: list[int] = []
        with contextlib.suppress(OSError, ValueError):
            for file in self.folder.rglob("cgroup.procs"):
                found += [int(pid) for pid in file.read_text().split()]
        return [pid for pid in found if pid > 1 and pid != os.getpid()]

    def _set(self, name: str, value: int) -> None:
        file = self.folder / name
        with contextlib.suppress(OSError):
            if file.exists():
                file.write_text(str(value))

    def _events(self, name: str) -> dict[str, int]:
        with contextlib.suppress(OSError, ValueError):
            lines = (self.folder / name).read_text().splitlines()
            return {key: int(value) for key, _, value in (line.partition(" ") for line in lines)}
        return {}


def make() -> Group | None:
    """Make a group for a worker. Return None if the system does not have cgroup v2 or does not permit a group."""
    made: list[Group] = []
    for place in places():
        folder = place / NAME.format(harness=identity(), number=next(_numbers))
        with contextlib.suppress(OSError):
            folder.mkdir()
            made.append(Group(folder))
            if made[-1].limits_memory:
                break
    best = next((group for group in reversed(made) if group.limits_memory), made[0] if made else None)
    for group in made:
        if group is not best:
            group.end()
    return best


def end_leftovers() -> None:
    """End the groups of dead harnesses."""
    for place in places():
        for folder in place.glob("zoomgrad-*"):
            named = _NAME.fullmatch(folder.name)
            if named and not lives(named[1]):
                Group(folder).end()


def places(mounts: str | None = None, membership: str | None = None) -> list[Path]:
    """Folders in which a group may be made: our own group's, then its parent's.

    mounts, membership: contents of /proc/self/mountinfo and /proc/self/cgroup, by default those of this process.
    """
    if sys.platform != "linux":
        return []
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="replace") if mounts is None else mounts
        membership = Path("/proc/self/cgroup").read_text(errors="replace") if membership is None else membership
    except OSError:
        return []
    # The line for v2 begins with "0::".
    own = next((line[3:] for line in membership.splitlines() if line.startswith("0::/")), "")
    for root, mounted_at in _v2_mounts(mounts):
        if not f"{own}/".startswith(f"{root.rstrip('/')}/"):
            continue  # the mount shows another part of the hierarchy
        inside = own[len(root.rstrip("/")) :].strip("/")
        if own and ".." not in inside.split("/"):  # a path outside the container's root begins with ".."
            folder = mounted_at / inside
            return [folder, folder.parent] if inside else [folder]
    return []


def _v2_mounts(mounts: str) -> Iterator[tuple[str, Path]]:
    """Pairs (root within the hierarchy, mount point) of every cgroup v2 mount. Format: proc_pid_mountinfo(5)."""
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        if rest.startswith("cgroup2 ") and len(fields.split()) >= 5:
            root, at = (re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), text) for text in fields.split()[3:5])
            yield root, Path(at)


def _remove(folder: Path) -> None:
    """Remove a group and those below it. Raises OSError while any of them has a member."""
    for path, _, _ in os.walk(folder, topdown=False):
        Path(path).rmdir()
    if folder.exists():
        folder.rmdir()
