"""32,033 given names of 2 to 15 letters, as sequences of tokens. They are embedded; see `data/README.md`.

A letter's token is its place in the alphabet. BOUNDARY comes before the first letter and after the last.
"""

from __future__ import annotations

import bz2
import hashlib
import itertools
import random
import re
from array import array
from functools import cache
from pathlib import Path
from typing import NamedTuple

from zoomgrad.datasets.idx import CorruptData

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
BOUNDARY = len(ALPHABET)
TOKENS = BOUNDARY + 1
LONGEST = 15
"""Letters of a name: one token fewer than a context of 16, which also holds the first boundary."""
SEED = 42
"""Seed of the order."""
HELD_OUT = 10
"""One distinct name in this many is held out."""

PATH = Path(__file__).with_name("data") / "names.bz2"
SHA256 = "a9709ebc7a567f82800674afbc0e06c5f37b266b339e78de606f7a8023d4b118"
"""Of the sorted names, one per line."""
REMEDY = "Restore it with git."


class Names(NamedTuple):
    """Rows of tokens of several lengths. A row of n letters has n + 1 positions, each a token and the one after it."""

    tokens: tuple[bytes, ...]
    """Each name's tokens, both boundaries included. Names that are held out are last, each of them once."""
    train_rows: int
    context: int = LONGEST + 1
    """Most positions of a row. The letters after them are left out."""

    @property
    def name(self) -> str:
        return "names"

    @property
    def classes(self) -> int:
        return TOKENS

    @property
    def rows(self) -> int:
        """Number of rows, including held-out ones."""
        return len(self.tokens)

    def labels(self, row: int) -> bytes:
        """The row's tokens, then its targets. Raises IndexError outside 0 to `rows` - 1."""
        if not 0 <= row < self.rows:
            raise IndexError(f"{self.name}: row {row:,} is not one of its {self.rows:,} rows, 0 to {self.rows - 1:,}")
        tokens = self.tokens[row][: self.context + 1]
        return tokens[:-1] + tokens[1:]

    def inputs(self, row: int) -> array[float]:
        """The row as doubles: its tokens, then its targets, one-hot. Raises IndexError."""
        return one_hot(self.labels(row))


def one_hot(labels: bytes) -> array[float]:
    """The labels as doubles: TOKENS for each, all 0.0 except one."""
    inputs = array("d", bytes(8 * TOKENS * len(labels)))
    for position, label in enumerate(labels):
        inputs[TOKENS * position + label] = 1.0
    return inputs


def load(context: int = LONGEST + 1) -> Names:
    """The embedded names, for a model with that many positions. Raises CorruptData."""
    return _embedded()._replace(context=context)


@cache
def _embedded() -> Names:
    try:
        packed = bz2.decompress(PATH.read_bytes()).decode("ascii")
    except (OSError, ValueError, EOFError) as error:
        raise CorruptData(f"{PATH.name} can't be read: {error}\n  {REMEDY}") from None
    names, name = [], ""
    # Each name is written as the difference from the one before: how many letters to drop, then the new ones.
    for drop, letters in re.findall("([A-Z])([a-z]*)", packed):
        name = name[: len(name) - (ord(drop) - ord("A"))] + letters
        names.append(name)
    if hashlib.sha256("\n".join(names).encode()).hexdigest() != SHA256:
        raise CorruptData(f"{PATH.name} does not hold the published names\n  {REMEDY}")
    return _divided(names)


def _divided(names: list[str]) -> Names:
    """The names in shuffled order, after which those follow that are held out.

    The first names have one of each length, so that a short training meets every length. No length is only held out.
    """
    random.Random(SEED).shuffle(names)
    distinct = list(dict.fromkeys(names))
    of_length = {len(name): name for name in reversed(distinct)}
    held_out = [n for n in distinct[len(distinct) - len(distinct) // HELD_OUT :] if of_length[len(n)] != n]
    hidden = set(held_out)
    train = [name for name in names if name not in hidden]
    first = {len(train[at]): at for at in reversed(range(len(train)))}
    train = [train[at] for at in sorted(first.values())] + [n for at, n in enumerate(train) if first[len(n)] != at]
    return Names(tuple(map(_tokens, itertools.chain(train, held_out))), len(train))


def _tokens(name: str) -> bytes:
    return bytes([BOUNDARY, *map(ALPHABET.index, name), BOUNDARY])
