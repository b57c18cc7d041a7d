"""Profilers that a probe in the worker serves: this side completes its readings. See `harness/worker/profiling`.

anatomy: seconds of building the graph, ordering it, forward, backward, update, freeing, collecting, by step.
memory: the worker's resident bytes while it trains.
"""

from __future__ import annotations

from typing import Any

from zoomgrad.harness.profile.profile_session import WORKER, Session, common
from zoomgrad.harness.run.replies import NoResult
from zoomgrad.harness.worker.profiling import probes
from zoomgrad.results.profile import PARTS

INSTRUMENTED = 0.5
"""Share of an anatomy's session for wrapped steps. The rest: unwrapped steps, and computing without a graph."""
WARM_UP = 0.25
"""Warm-up as a share of the time, unless the first step takes longer."""


def anatomy(session: Session) -> dict[str, Any]:
    """Seconds of a step by part, of an unwrapped step, and of the preparation."""
    reply = _probed(session, "anatomy", INSTRUMENTED * session.seconds)
    readings, step_seconds = reply["readings"], reply["seconds"] / reply["steps"]
    parts = {part: readings["parts"][part] for part in PARTS}
    # Only the clock around whole steps sees the time of a call or two.
    parts["rest"] = max(0.0, parts["rest"] + step_seconds - sum(parts.values()))
    tool = f"stages of a step, timed by the clock of {session.interpreter.name}"
    return {**common(reply), **readings, "tool": tool, "step_seconds": sum(parts.values()), "parts": parts}


def memory(session: Session) -> dict[str, Any]:
    """Resident bytes against seconds since training began. Raises NoResult on a system without /proc."""
    if not probes.STATM.exists():
        raise NoResult("skipped", f"there is no {probes.STATM}, which reports memory", "Profile on Linux.")
    reply = _probed(session, "memory")
    points = [{"seconds": seconds, "resident_bytes": resident} for seconds, resident in reply["readings"]["points"]]
    warm_up_seconds = max(reply["first_step_seconds"], WARM_UP * points[-1]["seconds"])
    return {**common(reply), "tool": str(probes.STATM), "warm_up_seconds": warm_up_seconds, "points": points}


def _probed(session: Session, probe: str, seconds: float | None = None) -> dict[str, Any]:
    """The reply of a worker that trains under that probe."""
    return session.work([session.python(), *WORKER], probe=probe, seconds=seconds)
