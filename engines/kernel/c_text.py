"""Generated C as text: its translation units, and the files of C that are pasted into them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from engines.kernel.c_tree import Declarations, Item, print_c

FOLDER = Path(__file__).parent.parent


BUFFERS = {
    "x": "const double *restrict x",
    "p": "const double *restrict p",
    "w": "double *restrict w",
    "y": "double *restrict y",
    "q": "double *restrict q",
}
"""A buffer of `kernel.h` -> how `forward` and `backward` declare it. They never overlap, and compilers may know."""

PIECE = '__attribute__((noinline, visibility("hidden"))) void'
"""A function that is a piece of a pass. Inlined into its only caller it would undo the cutting into pieces, which keeps
compile time linear."""


class Source(NamedTuple):
    """The translation units, and what their caller has to provide."""

    units: list[str]
    workspace: int
    """Doubles that a kernel's `w` needs."""

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(len(unit) for unit in self.units)  # it is ASCII


@cache
def read(file: str) -> str:
    """The text of a file of C. file: its path below `engines/`, such as `kernel/kernel.h`."""
    return (FOLDER / file).read_text(encoding="ascii")


def unit(items: Iterable[Item]) -> str:
    """Print a translation unit, with the text of each included file in place of its `#include`.

    The text that `show` prints is therefore the text that is compiled, and a compiler needs no search path.
    """
    return print_c(items, read)


def libm(functions: Iterable[tuple[str, int]]) -> Declarations:
    """Declare functions of libm, given how many doubles each takes."""
    return Declarations([f"double {name}({', '.join(['double'] * arity)});" for name, arity in sorted(functions)])
