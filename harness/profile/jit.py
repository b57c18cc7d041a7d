"""PyPy's own account of its just-in-time compiler: `pypyjit`'s counters, asked before and after the steps."""

from __future__ import annotations

import statistics
from typing import Any

from harness.profile.look import WORKER, Look, NoProfile, common

ABORTS = {
    "ABORT_TOO_LONG": "trace too long",
    "ABORT_BRIDGE": "compiling a bridge failed",
    "ABORT_ESCAPE": "the frame escaped",
    "ABORT_BAD_LOOP": "no good loop",
    "ABORT_FORCE_QUASIIMMUT": "a constant changed",
    "ABORT_SEGMENTED_TRACE": "cut into segments",
}
"""Counter -> what it counts. A trace that is too long is cut into segments where PyPy can."""


def profile(look: Look) -> dict[str, Any]:
    """Tracing, compiling, loops, bridges and traces that were given up."""
    if not look.interpreter.has_jit:
        raise NoProfile("skipped", f"{look.interpreter.name} has no just-in-time compiler", "Look at PyPy.")
    outcome = look.work(lambda job: [str(look.python("worker")), *WORKER, str(job)], watch="jit")
    seen, seconds, steps = outcome["watched"], outcome["seconds"], outcome["step_seconds"]
    return {
        **common(outcome),
        "tool": look.interpreter.full_version,
        "tracing": min(1.0, seen.get("TRACING_seconds", 0.0) / seconds),
        "backend": min(1.0, seen.get("BACKEND_seconds", 0.0) / seconds),
        "loops": seen.get("TOTAL_COMPILED_LOOPS", 0),
        "bridges": seen.get("TOTAL_COMPILED_BRIDGES", 0),
        "operations": seen.get("RECORDED_OPS", 0),
        "machine_code_bytes": max(0, seen.get("machine_code_bytes", 0)),
        "aborts": {reason: int(seen[name]) for name, reason in ABORTS.items() if seen.get(name)},
        "first_step_seconds": steps[0],
        "last_step_seconds": statistics.median(steps[-max(1, len(steps) // 10) :]),
    }
