"""Garbage collections as the interpreter reports them: `gc.callbacks` on CPython, `gc.hooks` on PyPy."""

from __future__ import annotations

from typing import Any

from zoomgrad.harness.profile.profile_session import WORKER, Session, common


def profile(session: Session) -> dict[str, Any]:
    """Collections by generation, their share of the steps' time, and the memory blocks that a step leaves for them."""
    reply = session.work(lambda job: [str(session.python("worker")), *WORKER, str(job)], probe="collector")
    readings = reply["readings"]
    collecting = sum(generation["seconds"] for generation in readings["generations"])
    return {
        **common(reply),
        **readings,
        "tool": f"gc of {session.interpreter.name}",
        "share": min(1.0, collecting / reply["seconds"]),
    }
