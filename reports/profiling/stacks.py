"""Text of folded stacks -> samples by stack."""

from __future__ import annotations

import re

MOST_SAMPLES = 1e15
"""Most samples on one line. A higher count is a mistake, and the sum might not be finite."""
_COUNT = re.compile(r"\d+(\.\d+)?(e[-+]?\d+)?")


def folded(text: str) -> dict[str, float]:
    """Parse lines of `outer;inner COUNT` into samples by stack. Raises ValueError with the line that has no count."""
    stacks: dict[str, float] = {}
    for line in filter(str.strip, text.splitlines()):
        stack, _, count = line.rpartition(" ")
        if not _COUNT.fullmatch(count) or float(count) > MOST_SAMPLES:
            raise ValueError(f"no count at the end of {line[-200:]!r}")
        stacks[stack] = stacks.get(stack, 0.0) + float(count)
    return stacks
