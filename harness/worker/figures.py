"""Check an engine's answers and figures: its refusal, phases and sizes.

The harness validates the reply again, but there an error names only the field. Here it names the engine too.
"""

from __future__ import annotations

import math
from typing import Any, Optional

from engines.api import Engine, Trainer, Workload

SHARES = ("looped_share",)
COUNTS = (
    *("tape_rows", "source_bytes", "object_bytes", "translation_units", "parallel_compilers"),
    *("vector_doubles", "threads"),
)
"""Keys that a trainer's `sizes` may have."""


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


def phases(engine: Engine, trainer: Trainer) -> dict[str, float]:
    """Seconds by phase. Raises Misbehaved unless they are finite and not negative."""
    found = _items(engine, "phases", trainer.phases)
    for name, seconds in found.items():
        if not _is_number(seconds) or not 0.0 <= seconds < math.inf:
            raise Misbehaved(
                f"{engine.name}: the engine's phases hold {_shown(seconds)} for {name!r}\n"
                "  Fix the engine: seconds are finite and not negative."
            )
    return {name: float(seconds) for name, seconds in found.items()}


def check_built(engine: Engine, trainer: Trainer) -> None:
    """Raise Misbehaved if the steps just taken ran code that `prepare` did not build, and that its phases lack."""
    late = getattr(trainer, "late_variant", "")
    if late:
        raise Misbehaved(
            f"{engine.name}: the timed steps ran {late!r}, which prepare() did not build\n"
            "  Fix the engine: prepare() must build what the workload's batch needs."
        )


def sizes(engine: Engine, trainer: Trainer) -> dict[str, Any]:
    """Sizes of the compiled program. Raises Misbehaved for an unknown key or a value out of range."""
    found = _items(engine, "sizes", trainer.sizes)
    for name, size in found.items():
        if name not in COUNTS and name not in SHARES:
            raise Misbehaved(
                f"{engine.name}: the engine's sizes hold {name!r}, which is not a field of a record\n"
                f"  Known: {', '.join((*COUNTS, *SHARES))}. Fix the engine, or add a field to results/record.py."
            )
        is_in_range = _is_number(size) and 0 <= size <= (1 if name in SHARES else 2**53)
        if not is_in_range or (name in COUNTS and size != int(size)):
            raise Misbehaved(
                f"{engine.name}: the engine's sizes hold {_shown(size)} for {name!r}\n"
                "  Fix the engine: counts are whole and not negative, shares are between 0 and 1."
            )
    return {name: float(size) if name in SHARES else int(size) for name, size in found.items()}


def _items(engine: Engine, what: str, mapping: Any) -> dict[str, Any]:
    try:
        found = dict(mapping)
    except (TypeError, ValueError):
        found = {None: None}
    if not all(isinstance(name, str) for name in found):
        raise Misbehaved(
            f"{engine.name}: the engine's {what} are {_shown(mapping)}\n"
            "  Fix the engine: they must map names to numbers."
        )
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    return repr(value)[:80]
