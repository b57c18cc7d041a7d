"""Check an engine's answers while its worker runs. `harness.run.replies` validates its figures."""

from __future__ import annotations

from typing import Any, Optional

from zoomgrad.engines.api import Engine, Trainer, Workload


class Misbehaved(Exception):
    """An engine broke the protocol of `engines.api`. The message says how, and what to do."""


def refusal(engine: Engine, workload: Workload) -> Optional[str]:
    """Why the engine can't run the workload; None if it can. Raises Misbehaved for any other answer."""
    answer: Any = engine.supports(workload)
    if answer is None or (isinstance(answer, str) and answer):
        return answer
    raise Misbehaved(
        f"{engine.name}: supports() returned {_shown(answer)}\n"
        "  Fix the engine: it must return None, or the reason as a string."
    )


def check_built(engine: Engine, trainer: Trainer) -> None:
    """Raise Misbehaved if the steps just taken ran code that `prepare` did not build, and that its phases lack."""
    late = getattr(trainer, "late_variant", "")
    if late:
        raise Misbehaved(
            f"{engine.name}: the timed steps ran {late!r}, which prepare() did not build\n"
            "  Fix the engine: prepare() must build what the workload's batch needs."
        )


def _shown(value: Any) -> str:
    return repr(value)[:80]
