"""The step: its loops, areas of the workspace, routines, sections and text form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Optional

from zoomgrad.engines.rerolled.recover.loops import VECTOR, Access, Area, Loops, Workspace
from zoomgrad.engines.rerolled.step.language import Divided, Perform, Place, Program, Run, Statement, walk
from zoomgrad.engines.rerolled.step.spans import Span, reads


class Pair(NamedTuple):
    """A forward loop over sums of inputs times weights, and the sink of these weights: input times a lane's factor."""

    forward: int
    """Number of the loop."""
    segment: int
    slot: int
    """The operand that holds the weights."""
    sink: int
    inputs: Span
    weights: Span
    factor: Access
    """Over the forward loop's lanes."""
    factors: Span
    """Of all lanes."""


@dataclass(frozen=True)
class Step(Workspace):
    """A program over loops, and the workspace that it needs."""

    loops: Loops
    areas: tuple[Area, ...]
    """The areas of the loops, then those that rearrangements added."""
    routines: Mapping[str, tuple[Run, ...]]
    programs: Mapping[str, Program] = field(default_factory=dict)
    """Section -> its statements. A frozen step lacks what only trains."""
    skips: Optional[Pair] = None
    """The loops that skip inputs that are zero. For that, weights and factors must be finite."""
    own: Optional[Place] = None
    """If rows are taken together: the distance from a place in x, v, g and u to the first row's, and from row to row.
    Loops that run for each row use the row's own places."""
    lines_of: Mapping[str, Any] = field(default_factory=dict)
    """Routines of straight lines, by name: see `machine/lines.py`."""
    weights: Optional[tuple[float, ...]] = None
    """The numbers of the parameters, if the step is frozen and goes over rows: its C has them as constants."""

    def apart(self, size: int) -> int:
        """How far apart to put rows of that size: an odd number of the widest vectors.

        A vector fills a cache line. An even number of lines would put rows into the same few sets of a cache.
        """
        whole = self.whole_vectors(size)
        return whole if whole // VECTOR % 2 else whole + VECTOR

    def is_own(self, place: int) -> bool:
        """Whether each of the rows taken together has its own number for a place."""
        return self.own is not None and self.area("x").start <= place < self.area("u").stop

    def whole_vectors(self, size: int) -> int:
        """The size, rounded up to whole vectors."""
        return -(-size // VECTOR) * VECTOR

    @property
    def goes_over_rows(self) -> bool:
        """Whether it has a loop over rows. A step of passes only does not: callers pass one row at a time."""
        return "evaluate" in self.programs

    @cached_property
    def reads_numbers(self) -> bool:
        """Whether a loop or an output reads the area of constants. Most constants are part of the loops."""
        _, start, stop = self.area("k")
        are_given = any(start <= output.base < stop for output in self.loops.outputs)
        return are_given or not self.loops.loops or any(reads(loop, (start, stop)) for loop in self.loops.loops)

    def with_area(self, name: str, size: int) -> tuple[Step, Area]:
        """Add an area at the end of the workspace. Its size is rounded up to whole vectors."""
        start = self.workspace
        area = Area(name, start, start + self.whole_vectors(size))
        return replace(self, areas=(*self.areas, area)), area

    def with_routine(self, name: str, runs: Iterable[Run]) -> Step:
        """Add or replace a routine."""
        return replace(self, routines={**self.routines, name: tuple(runs)})

    @cached_property
    def is_divided(self) -> bool:
        """Whether threads divide it: then each of them computes a part of every loop over all rows."""
        return any(isinstance(statement, Divided) for statement in self.statements())

    def statements(self) -> Iterator[Statement]:
        return (statement for program in self.programs.values() for statement in walk(program))

    def pruned(self) -> Step:
        """The step without routines that no section runs."""
        run = {s.routine for s in self.statements() if isinstance(s, Perform)}
        return replace(self, routines={name: runs for name, runs in self.routines.items() if name in run})

    def with_programs(self, **programs: Program) -> Step:
        return replace(self, programs={**self.programs, **programs})

    def lines(self) -> Iterator[str]:
        for name, runs in self.routines.items():
            yield f"{name}:"
            yield from (f"  {text}" for text in run_lines(runs))
        series = {run.number: run for runs in self.routines.values() for run in runs if run.rounds}
        if series:
            yield "series:"
            yield from (f"  {run}: {self.line(run)}" for _, run in sorted(series.items()))
        for name, program in self.programs.items():
            yield f"{name}:"
            yield from self._program(program, "  ")

    def line(self, run: Run) -> str:
        """A run's computation in the text form of loops."""
        return "; ".join(self._listing.line(loop, updates=run.in_place) for loop in run.rounds or [run.loop])

    @cached_property
    def _listing(self) -> Loops:
        """The loops with all areas of the step, because a run's text may name them."""
        return replace(self.loops, areas=self.areas)

    def _program(self, program: Program, indent: str) -> Iterator[str]:
        for statement in program:
            for line, inner in statement.parts(self.spell):
                yield f"{indent}{line}"
                yield from self._program(inner, indent + "  ")

    def spell(self, place: Place) -> str:
        area = self.area_of(place.base)
        parts = [str(place.base - area.start)] if place.base > area.start or not place.per_row else []
        return f"{area.name}[{' + '.join([*parts, *([f'{place.per_row}*row'] if place.per_row else [])])}]"


def run_lines(runs: Iterable[Run]) -> Iterator[str]:
    """Runs as text. Consecutive loops that run in the same way share a line."""
    group: list[Run] = []
    for run in (*runs, None):
        if group and (run is None or run.number != group[-1].stop or run.how != group[0].how):
            first, last = group[0].number, group[-1].stop - 1
            numbers = f"loop {first}" if first == last else f"loops {first}-{last}"
            yield f"{numbers}{group[0].how}"
            group = []
        if run is not None:
            group.append(run)
