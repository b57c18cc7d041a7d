"""Figures that PyPy's just-in-time compiler keeps about itself: `pypyjit`'s counters, before and after the steps."""

from __future__ import annotations

import statistics
from typing import Any

from zoomgrad.harness.profile.profile_session import WORKER, NoProfile, Session, common

ABORTS = {
    "ABORT_TOO_LONG": "trace too long",
    "ABORT_BRIDGE": "compiling a bridge failed",
    "ABORT_ESCAPE": "the frame escaped",
    "ABORT_BAD_LOOP": "no good loop",
    "ABORT_FORCE_QUASIIMMUT": "a constant changed",
    "ABORT_SEGMENTED_TRACE": "cut into segments",
}
"""Counter -> reason for the abort. PyPy cuts a trace that is too long into segments if it can."""


def profile(session: Session) -> dict[str, Any]:
    """Shares of tracing and compiling, and numbers of loops, bridges and aborted traces."""
    if not session.interpreter.has_jit:
        raise NoProfile("skipped", f"{session.interpreter.name} has no just-in-time compiler", "Profile PyPy.")
    reply = session.work(lambda job: [str(session.python("worker")), *WORKER, str(job)], probe="jit")
    readings, seconds, steps = reply["readings"], reply["seconds"], reply["step_seconds"]
    return {
        **common(reply),
        "tool": session.interpreter.full_version,
        "tracing": min(1.0, readings.get("TRACING_seconds", 0.0) / seconds),
        "backend": min(1.0, readings.get("BACKEND_seconds", 0.0) / seconds),
        "loops": readings.get("TOTAL_COMPILED_LOOPS", 0),
        "bridges": readings.get("TOTAL_COMPILED_BRIDGES", 0),
        "operations": readings.get("RECORDED_OPS", 0),
        "machine_code_bytes": max(0, readings.get("machine_code_bytes", 0)),
        "aborts": {reason: int(readings[name]) for name, reason in ABORTS.items() if readings.get(name)},
        "first_step_seconds": steps[0],
        "last_step_seconds": statistics.median(steps[-max(1, len(steps) // 10) :]),
    }
