"""What generated C of all kinds shares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from zoomgrad.engines.graph.expr import number
from zoomgrad.engines.kernel.c_tree import Text

BUFFERS = {
    "x": "const double *restrict x",
    "p": "const double *restrict p",
    "w": "double *restrict w",
    "y": "double *restrict y",
    "q": "double *restrict q",
}
"""A buffer of `kernel.h` -> its declaration in `forward` and `backward`. Buffers never overlap, hence `restrict`."""

PIECE = '__attribute__((noinline, visibility("hidden"))) void'
"""Declares a function that is a piece of a pass. Pieces keep compile time linear; inlining them into their only caller
would undo that."""


class Source(NamedTuple):
    """Translation units, or functions in Python, and the workspace that their caller must provide."""

    units: list[str]
    workspace: int
    """Doubles in the kernel's `w`."""

    @property
    def size(self) -> int:
        """Total bytes."""
        return sum(len(unit) for unit in self.units)  # the text is ASCII

    @property
    def text(self) -> str:
        return "\n".join(self.units)


def table(name: str, numbers: Sequence[float], kind: str = "double") -> list[str]:
    """The lines of a constant array of doubles or ints. It is never empty, because C has no empty arrays."""
    texts = [str(x) if kind == "int" else number(x)[0] for x in numbers] or ["0"]
    rows = [f"    {', '.join(texts[start : start + 4])}," for start in range(0, len(texts), 4)]
    return [f"static const {kind} {name}[] = {{", *rows, "};"]


def libm(functions: Iterable[tuple[str, int]]) -> Text:
    """Declare libm functions, given the number of doubles that each takes."""
    return Text([f"double {name}({', '.join(['double'] * arity)});" for name, arity in sorted(functions)])
