"""Keeps a worker within its limits, and ends all that it started.

On Linux a worker is a member of a *control group* (`cgroup`) where one can be made. Its descendants are members too,
and one write kills them all. With or without a group, the harness adopts orphans (`descendants`), and the worker asks
to be killed when the harness dies (`harness/worker/lifeline.py`). Each run first ends what a killed harness left
behind.

On macOS there are a process group and a session of the worker's own, which are swept when it ends, and the limits of
time and output. macOS enforces no limit of a process's memory, and does not tell a worker that its parent died: the
next run ends what was left.
"""

from harness.containment import cgroup, descendants
from harness.containment.limits import Limits
from harness.containment.running import Finished, run

__all__ = ["Finished", "Limits", "end_leftovers", "run"]


def end_leftovers() -> int:
    """End what harnesses that died have left behind, on this machine; gives how many processes were found."""
    ended = descendants.end_leftovers()
    cgroup.end_leftovers()
    return ended
