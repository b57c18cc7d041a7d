"""Keep a worker within its limits, and end every process that it started. What the worker does is in `harness.worker`.

The worker has a session of its own, resource limits, and a time limit. On Linux the harness also adopts orphans
(`descendants`), and the worker asks to be killed when the harness dies (`harness/worker/lifeline.py`). Each run starts
by ending the processes that a killed harness left behind.

macOS does not enforce memory limits and does not signal a worker when its parent dies: the next run ends it.
"""

from zoomgrad.harness.containment.descendants import end_leftovers
from zoomgrad.harness.containment.limits import Limits
from zoomgrad.harness.containment.running import Finished, run

__all__ = ["Finished", "Limits", "end_leftovers", "run"]
