"""Kinds of fault, one per file: what each disturbs and checks. How batches run and where results go is in `campaign`.

A kind's module has `NAME`, `FAULTS` (the table's description), `UNIT` (what one try is), `BATCHES`, `SECONDS` (a batch
that takes longer is a hang), `lacks()` (why it can't run here; empty if it can) and `run(batch, tally)`, which adds its
findings to the tally.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol

from faults.tally import Tally

NAMES = ("kills", "disks", "engines", "inputs", "graphs", "sanitizers")


@dataclass(frozen=True)
class Batch:
    """Number, seed and private folder of a batch. The folder is removed afterwards."""

    index: int
    seed: int
    folder: Path

    def rng(self, *parts: object) -> random.Random:
        """Generator seeded by the campaign's seed, the batch's number and `parts`."""
        return random.Random(" ".join(map(str, (self.seed, self.index, *parts))))


class Kind(Protocol):
    """Interface of a module of this package."""

    NAME: str
    FAULTS: str
    UNIT: str
    BATCHES: int
    SECONDS: float

    def lacks(self) -> str: ...
    def run(self, batch: Batch, tally: Tally) -> None: ...


def load(name: str) -> Kind:
    """Return the kind of that name. A dotted name is a module, for the tests' own kinds."""
    return import_module(name if "." in name else f"faults.kinds.{name}")
