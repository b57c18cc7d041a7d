"""Keep a worker within its limits, and end every process that it started. What the worker does is in `harness.worker`.

On Linux the worker joins a *control group* (`cgroup`) if the system permits one. Its descendants are members too, and
one write kills them all. With or without a group, the harness adopts orphans (`descendants`), and the worker asks to be
killed when the harness dies (`harness/worker/lifeline.py`). Each run starts by ending the processes that a killed
harness left behind.

On macOS the worker has a process group and session, whose members are killed when it ends, and limits on time and
output. macOS does not enforce memory limits and does not signal a worker when its parent dies: the next run ends it.
"""

from harness.containment import cgroup, descendants
from harness.containment.limits import Limits
from harness.containment.running import Finished, run

__all__ = ["Finished", "Limits", "end_leftovers", "run"]


def end_leftovers() -> int:
    """End the processes that dead harnesses left on this machine. Return how many there were."""
    ended = descendants.end_leftovers()
    cgroup.end_leftovers()
    return ended
