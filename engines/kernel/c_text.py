"""Generated C as text: its translation units, and the files of C that are the same for every graph."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from engines.kernel.c_tree import Item, print_c

ENGINES = Path(__file__).parent.parent


class Source(NamedTuple):
    """The translation units, and what their caller has to provide."""

    units: list[str]
    workspace: int

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(len(unit) for unit in self.units)  # it is ASCII


@cache
def read(file: str) -> str:
    """The text of a file of C. file: its path from `engines/` on, such as `kernel/kernel.h`."""
    return (ENGINES / file).read_text(encoding="ascii")


def unit(items: Iterable[Item]) -> str:
    """A translation unit that includes nothing: each of our own files is pasted where it is included.

    So the text that `show` prints is the text that is compiled, wherever it is compiled.
    """
    return _INCLUDE.sub(lambda match: read(match[1]), print_c(items))


_INCLUDE = re.compile(r'^#include "([^"]*)"\n', re.MULTILINE)
