"""The anatomy of a step: seconds of building the graph, ordering it, forward, backward, update, freeing, collecting.

`harness/worker/profiling/anatomy.py` says how each part is measured.
"""

from __future__ import annotations

from typing import Any

from harness.profile.profile_session import WORKER, Session, common
from results.profile import PARTS

INSTRUMENTED = 0.5
"""Of the session: the rest is for steps with nothing wrapped, and for computing without a graph."""


def profile(session: Session) -> dict[str, Any]:
    """Seconds of a step by part, of a step with nothing wrapped, and of the preparation."""
    reply = session.work(
        lambda job: [str(session.python("worker")), *WORKER, str(job)],
        probe="anatomy",
        seconds=INSTRUMENTED * session.seconds,
    )
    readings = reply["readings"]
    parts = fill(readings["parts"], reply["seconds"] / reply["steps"])
    return {
        **common(reply),
        **readings,
        "tool": f"stages of a step, by the clock of {session.interpreter.name}",
        "step_seconds": sum(parts.values()),
        "parts": parts,
    }


def fill(parts: dict[str, float], step_seconds: float) -> dict[str, float]:
    """Every part, in order. What lies between the steps' clock and the parts' own, a call or two, is `rest`."""
    filled = {part: parts[part] for part in PARTS}
    return {**filled, "rest": max(0.0, filled["rest"] + step_seconds - sum(filled.values()))}
