"""Anatomy of a step: seconds of building the graph, ordering it, forward, backward, update, freeing, collecting.

This side starts the worker and completes its figures. `harness/worker/profiling/anatomy.py` measures the parts.
"""

from __future__ import annotations

from typing import Any

from zoomgrad.harness.profile.profile_session import WORKER, Session, common
from zoomgrad.results.profile import PARTS

INSTRUMENTED = 0.5
"""Share of the session for wrapped steps. The rest is for unwrapped steps and for computing without a graph."""


def profile(session: Session) -> dict[str, Any]:
    """Seconds of a step by part, of an unwrapped step, and of the preparation."""
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
        "tool": f"stages of a step, timed by the clock of {session.interpreter.name}",
        "step_seconds": sum(parts.values()),
        "parts": parts,
    }


def fill(parts: dict[str, float], step_seconds: float) -> dict[str, float]:
    """All parts in order. `rest` includes the time that only the clock around whole steps sees: a call or two."""
    filled = {part: parts[part] for part in PARTS}
    return {**filled, "rest": max(0.0, filled["rest"] + step_seconds - sum(filled.values()))}
