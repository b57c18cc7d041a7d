"""Value graph -> text: one line for each Value, operands first.

%0 = leaf -4.0  a
%1 = leaf 2.0  b
%2 = * %0 %1            ; -8.0
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def show(root: Any) -> Iterator[str]:
    """The lines for the graph below `root`, in the order of its `topo()`."""
    number: dict[Any, int] = {}
    for v in root.topo():
        number[v] = len(number)
        label = f"  {v.label}" if v.label else ""
        if v._op:
            operands = " ".join(f"%{number[child]}" for child in v._prev)
            row = f"%{number[v]} = {v._op} {operands}"
            yield f"{row:<24}; {v.data!r}{label}"
        else:
            yield f"%{number[v]} = leaf {v.data!r}{label}"
