"""A comparison in turns: which blocks to play, until each cell has a verdict or the time is up.

Each round plays one block of every cell that has no verdict yet, in shuffled order. A cell that fails on either side is
left out, with the reason.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from zoomgrad.engines.asking import one_line
from zoomgrad.harness.compare import block
from zoomgrad.harness.compare.block import Failed
from zoomgrad.harness.compare.sides import Sides
from zoomgrad.results import compare, turns
from zoomgrad.results.compare import COMPILE_TIME, RESULT, STEP, Verdict
from zoomgrad.results.files import Unreadable, first_of
from zoomgrad.results.record import Cell
from zoomgrad.results.turns import Block

COMPILE_WITHIN = 0.05
"""Difference of compile times that does not matter. Compilers start processes and write files, whose times vary more
than a step's."""

FIGURES = (STEP, COMPILE_TIME)

Play = Callable[[Cell, Sides, int, int], Block]
"""`block.play`, which tests replace."""


@dataclass
class Comparison:
    """What is compared, and what blocks have shown so far."""

    sides: Sides
    cells: Sequence[Cell]
    """If interpreters are compared, their cells name the base's."""
    strict: Sequence[str]
    """Engines that promise identical bits."""
    within: float
    """A cell counts as the same if its ratio is certainly within this share of 1."""
    seed: int
    play: Play = block.play
    clock: Callable[[], float] = time.monotonic
    blocks: Mapping[Cell, list[Block]] = field(init=False)
    absences: dict[Cell, Failed] = field(default_factory=dict)
    """Why a cell has no figures. It is left out from then on."""

    def __post_init__(self) -> None:
        self.blocks = {cell: [] for cell in self.cells}

    @property
    def family(self) -> int:
        """Number of statements that the comparison can make, which share its probability of an error."""
        return len(FIGURES) * len(self.cells)

    def subject(self, cell: Cell) -> str:
        """Key of a cell, without the interpreter if interpreters are compared."""
        return cell.key if self.sides["base"].sha else f"{cell.engine}/{cell.workload}"

    def measure(self, until: float) -> Iterator[int]:
        """Play blocks, and yield the number of each, until all cells have verdicts, or it is that time on the clock.

        Raises Unreadable if no cell has figures: a commit does not build, or no engine runs here.
        """
        longest, cells = 0.0, self.cells
        for number in itertools.count():
            for cell in random.Random(f"{self.seed} {number}").sample(cells, len(cells)):
                start = self.clock()
                # Everything gets one block, so that a short time limit still finds out what fails.
                if number and start + longest > until:
                    return
                self._play(cell, random.Random(f"{self.seed} {number} {cell.key}").randrange(2**32))
                longest = max(longest, self.clock() - start)
            if not any(self.blocks.values()):
                cell, absence = next(iter(self.absences.items()))
                try_it = "Nothing could be measured. Try the engine with `zoomgrad run --preset smoke` there."
                raise Unreadable(f"{self.subject(cell)}: {absence}\n  {try_it}")
            yield number
            unsure = {one.cell for one in self.verdicts() if one.word == "unsure"}
            cells = [cell for cell in self.cells if cell in unsure]
            if not cells:
                return

    def _play(self, cell: Cell, seed: int) -> None:
        known = self.blocks[cell]
        try:
            known.append(self.play(cell, self.sides, seed, known[0].steps if known else 0))
        except Failed as failed:
            self.absences[cell] = Failed(failed.side, one_line(failed.reason))
        except ValidationError as error:
            self.absences[cell] = Failed("", f"its figures are out of range: {first_of(error)}")

    def verdicts(self) -> list[Verdict]:
        """Return what the blocks show of the result of each cell, and of its figures."""
        failures = []
        for cell, one in self.absences.items():
            word: compare.Word = "lost" if one.side in ("head", "") else "unsure"
            failures.append(Verdict(self.subject(cell), RESULT, word, reason=str(one)))
        for cell, blocks in self.blocks.items():
            if cell.engine in self.strict and any(one.base.bits != one.head.bits for one in blocks):
                reason = "both sides compute different losses or parameters"
                failures.append(Verdict(self.subject(cell), RESULT, "wrong", reason=reason))
        error = compare.ERROR / self.family
        withins = {STEP: self.within, COMPILE_TIME: max(self.within, COMPILE_WITHIN)}
        compared = (
            turns.verdict(self.blocks[cell], figure, cell, self.subject(cell), within=within, error=error)
            for figure, within in withins.items()
            for cell in self.cells
            if cell not in self.absences
        )
        return [*failures, *filter(None, compared)]
