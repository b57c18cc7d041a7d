"""The interpreter's own account of its garbage collector: `gc.callbacks` on CPython, `gc.hooks` on PyPy."""

from __future__ import annotations

from typing import Any

from harness.profile.look import WORKER, Look, common


def profile(look: Look) -> dict[str, Any]:
    """Collections by generation, their share of the steps' time, and what a step leaves to them."""
    outcome = look.work(lambda job: [str(look.python("worker")), *WORKER, str(job)], watch="collector")
    watched = outcome["watched"]
    collecting = sum(generation["seconds"] for generation in watched["generations"])
    return {
        **common(outcome),
        **watched,
        "tool": f"gc of {look.interpreter.name}",
        "share": min(1.0, collecting / outcome["seconds"]),
    }
