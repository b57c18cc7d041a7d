"""Generated C as text: its translation units, and the files of C that are pasted into them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from engines.kernel.c_tree import Item, print_c

FOLDER = Path(__file__).parent.parent


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
