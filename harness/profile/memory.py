"""Memory over time: the worker's resident bytes while it trains, sampled by a thread in the worker."""

from __future__ import annotations

from typing import Any

from zoomgrad.harness.profile.profile_session import WORKER, NoProfile, Session, common
from zoomgrad.harness.worker.profiling import memory

WARM_UP = 0.25
"""Warm-up as a share of the time, unless the first step takes longer."""


def profile(session: Session) -> dict[str, Any]:
    """Resident bytes against seconds since training began. Raises NoProfile on a system without /proc."""
    if not memory.STATM.exists():
        raise NoProfile("skipped", f"there is no {memory.STATM}, which reports memory", "Profile on Linux.")
    reply = session.work(lambda job: [str(session.python("worker")), *WORKER, str(job)], probe="memory")
    points = [{"seconds": seconds, "resident_bytes": resident} for seconds, resident in reply["readings"]["points"]]
    seconds = points[-1]["seconds"]
    return {
        **common(reply),
        "tool": str(memory.STATM),
        "steps": reply["readings"]["steps"],
        "seconds": seconds,
        "warm_up_seconds": max(reply["step_seconds"][0], WARM_UP * seconds),
        "points": points,
    }
