"""Sampled stacks of C functions, innermost frame first -> shares of the samples by function and by kind of work."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

SYMBOLS = 80
"""Number of symbols to keep. Far fewer reach 0.5 %, the cut-off of the published table."""

COLLECTING = re.compile(
    # gc_collect_main was named collect until 3.11. The C compiler may have inlined either.
    r"^(_?Py)?_?gc_collect|^collect(_main|_generations|_with_callback|_increment|_young|_full)?(\.|$)"
    r"|^visit_(decref|reachable|move|add)|^(subtract|update)_refs|^(move|deduce|untrack)_(unreachable|tuples)"
)
EVALUATING = re.compile(r"^_?PyEval_|^_Py_HandlePending")


class Frame(NamedTuple):
    """A function on a sampled stack, and the file name of its library or program."""

    symbol: str
    object: str


def shares(stacks: Sequence[Sequence[Frame]]) -> dict[str, Any]:
    """Fields of a SymbolProfile: shares of all samples by group and by innermost function."""
    grouped = [(stack[0], group_of(stack)) for stack in stacks]
    by_frame, groups = Counter(grouped), Counter(group for _, group in grouped)
    return {
        "samples": len(stacks),
        "groups": {group: count / len(stacks) for group, count in groups.most_common()},
        "symbols": [
            {"name": frame.symbol, "object": frame.object, "group": group, "share": count / len(stacks)}
            for (frame, group), count in by_frame.most_common(SYMBOLS)
        ],
    }


def group_of(stack: Sequence[Frame]) -> str:
    """Kind of work of a sample: a collection anywhere on the stack, or else the innermost function, decides."""
    if any(COLLECTING.search(frame.symbol) for frame in stack):
        return "garbage collector"
    return "evaluation loop" if EVALUATING.search(stack[0].symbol) else "others"
