"""Every kind of fault, a file each.

A kind's module has `NAME`, `FAULTS` (what a reader of the table is told), `UNIT` (what a try is), `BATCHES`, `SECONDS`
(a batch that takes longer hangs), `lacks()` (why it can't run here, empty where it can) and `run(batch, tally)`, which
adds to the tally what it finds.
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
    """One batch's number, its seed and its private folder, which is removed afterwards."""

    index: int
    seed: int
    folder: Path

    def rng(self, *parts: object) -> random.Random:
        """Random numbers that only the seed, the batch and `parts` decide."""
        return random.Random(" ".join(map(str, (self.seed, self.index, *parts))))


class Kind(Protocol):
    """What a module of this package has."""

    NAME: str
    FAULTS: str
    UNIT: str
    BATCHES: int
    SECONDS: float

    def lacks(self) -> str: ...
    def run(self, batch: Batch, tally: Tally) -> None: ...


def load(name: str) -> Kind:
    """The kind of that name, or of that module: tests have kinds of their own."""
    return import_module(name if "." in name else f"faults.kinds.{name}")
