"""Memory over time: the worker's resident bytes while it trains, read by a thread of its own."""

from __future__ import annotations

from typing import Any

from harness.profile.look import WORKER, Look, NoProfile, common
from harness.worker import memory

WARM_UP = 0.25
"""Of the time, or the first step where that is longer."""


def profile(look: Look) -> dict[str, Any]:
    """Resident bytes over the seconds since training began. Raises NoProfile where the system does not tell them."""
    if not memory.STATM.exists():
        raise NoProfile("skipped", f"there is no {memory.STATM}: the system does not tell it", "Look on Linux.")
    outcome = look.work(lambda job: [str(look.python("worker")), *WORKER, str(job)], watch="memory")
    points = [{"seconds": seconds, "resident_bytes": resident} for seconds, resident in outcome["watched"]["points"]]
    seconds = points[-1]["seconds"]
    return {
        **common(outcome),
        "tool": str(memory.STATM),
        "steps": outcome["watched"]["steps"],
        "seconds": seconds,
        "warm_up_seconds": max(outcome["step_seconds"][0], WARM_UP * seconds),
        "points": points,
    }
