"""Profilers that a probe in the worker serves: this side completes its readings. See `harness/worker/profiling`.

anatomy: seconds of building the graph, ordering it, forward, backward, update, freeing, collecting, by step.
memory: the worker's resident bytes while it trains.
jit: PyPy's counters of its just-in-time compiler, before and after the steps.
"""

from __future__ import annotations

import statistics
from typing import Any

from zoomgrad.harness.profile.profile_session import WORKER, NoProfile, Session, common
from zoomgrad.harness.worker.profiling import probes
from zoomgrad.results.profile import PARTS

INSTRUMENTED = 0.5
"""Share of an anatomy's session for wrapped steps. The rest: unwrapped steps, and computing without a graph."""
WARM_UP = 0.25
"""Warm-up as a share of the time, unless the first step takes longer."""
ABORTS = {
    "ABORT_TOO_LONG": "trace too long",
    "ABORT_BRIDGE": "compiling a bridge failed",
    "ABORT_ESCAPE": "the frame escaped",
    "ABORT_BAD_LOOP": "no good loop",
    "ABORT_FORCE_QUASIIMMUT": "a constant changed",
    "ABORT_SEGMENTED_TRACE": "cut into segments",
}
"""Counter -> reason for the abort. PyPy cuts a trace that is too long into segments if it can."""


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
    """Resident bytes against seconds since training began. Raises NoProfile on a system without /proc."""
    if not probes.STATM.exists():
        raise NoProfile("skipped", f"there is no {probes.STATM}, which reports memory", "Profile on Linux.")
    reply = _probed(session, "memory")
    points = [{"seconds": seconds, "resident_bytes": resident} for seconds, resident in reply["readings"]["points"]]
    seconds = points[-1]["seconds"]
    return {
        **common(reply),
        "tool": str(probes.STATM),
        "steps": reply["readings"]["steps"],
        "seconds": seconds,
        "warm_up_seconds": max(reply["step_seconds"][0], WARM_UP * seconds),
        "points": points,
    }


def jit(session: Session) -> dict[str, Any]:
    """Shares of tracing and compiling, and numbers of loops, bridges and aborted traces."""
    if not session.interpreter.has_jit:
        raise NoProfile("skipped", f"{session.interpreter.name} has no just-in-time compiler", "Profile PyPy.")
    reply = _probed(session, "jit")
    readings, seconds, steps = reply["readings"], reply["seconds"], reply["step_seconds"]
    return {
        **common(reply),
        "tool": session.interpreter.full_version,
        "tracing": min(1.0, readings.get("TRACING_seconds", 0.0) / seconds),
        "backend": min(1.0, readings.get("BACKEND_seconds", 0.0) / seconds),
        "loops": readings.get("TOTAL_COMPILED_LOOPS", 0),
        "bridges": readings.get("TOTAL_COMPILED_BRIDGES", 0),
        "machine_code_bytes": max(0, readings.get("machine_code_bytes", 0)),
        "aborts": {reason: int(readings[name]) for name, reason in ABORTS.items() if readings.get(name)},
        "first_step_seconds": steps[0],
        "last_step_seconds": statistics.median(steps[-max(1, len(steps) // 10) :]),
    }


def _probed(session: Session, probe: str, seconds: float | None = None) -> dict[str, Any]:
    """The reply of a worker that trains under that probe."""
    return session.work([session.python(), *WORKER], probe=probe, seconds=seconds)
