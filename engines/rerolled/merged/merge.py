"""Loops of several graphs in common areas -> Merged: one list of loops, and a table of the numbers that differ.

Loops that correspond have the same numbers in the same positions: counts, strides and places. `table.py` says how each
is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from zoomgrad.engines.graph.passes import CHECKED
from zoomgrad.engines.rerolled.merged.align import Aligned, align
from zoomgrad.engines.rerolled.merged.check import check_merged
from zoomgrad.engines.rerolled.merged.numbers import Known, constants, origins, places, with_constants, with_numbers
from zoomgrad.engines.rerolled.merged.places import Order, Unmergeable, common_areas, in_common_areas
from zoomgrad.engines.rerolled.merged.table import Column, Constant, Number, Part, Table, number
from zoomgrad.engines.rerolled.merged.transpose import Transposed
from zoomgrad.engines.rerolled.recover.loops import Loop
from zoomgrad.engines.rerolled.step.series import ROUND, Listed
from zoomgrad.engines.rerolled.step.step import Step

MANY = 3
"""From this many repetitions on, several loops become a run of rounds."""
LENGTH = 4
"""The most loops of a round."""


Name = Callable[[bool, Part], str]
"""How to write a column, or the base of a number. The bool says whether the number is a place."""


class MergedLoop(NamedTuple):
    """A loop for every graph and round."""

    loop: Loop
    """That of the first graph that has it, with the least room of all. Its constants are those of all graphs."""
    numbers: tuple[Number, ...]
    """For each of its `numbers`."""
    fits: frozenset[tuple[int, int]]
    """The inner lanes and the room, of every graph and round."""

    def varying(self, areas: Step, listed: Listed, name: Name = lambda is_place, part: str(part)) -> Loop:
        """The loop with its numbers as text where they vary.

        listed: how to write a number from a list of rounds. name: how to write a column, or the base of a place.
        """
        texts = (
            each.text(origin, listed, partial(name, is_place))
            for each, origin, is_place in zip(self.numbers, origins(self.loop, areas), places(self.loop))
        )
        return with_numbers(self.loop, texts)

    def width(self, most: int) -> int:
        """The widest vector of which whole ones cover the inner lanes everywhere, and no more than the room."""
        width = most
        while width > 1 and any(-(-lanes // width) * width > room for lanes, room in self.fits):
            width //= 2
        return width


class Rounds(NamedTuple):
    """Loops that run in rounds. Most often, there is one loop in a single round."""

    rounds: Number
    loops: tuple[MergedLoop, ...]

    def columns(self) -> list[tuple[Column, bool]]:
        """The columns that their texts name, in order, and whether each begins a list."""
        every = [self.rounds, *(each for loop in self.loops for each in loop.numbers)]
        found = {(column, column == each.listed) for each in every for column in each.columns()}
        return sorted(found)

    def constants(self) -> list[Constant]:
        """The constants that their texts name."""
        found = [c for merged in self.loops for c in constants(merged.loop) if isinstance(c, Constant)]
        return list({c.column: c for c in found}.values())


@dataclass(frozen=True)
class Merged:
    """The loops of several graphs."""

    areas: Step
    """A step of one of the graphs, with the common areas."""
    order: Order
    """Of the parameters in the caller's buffers."""
    parts: tuple[Rounds, ...]
    table: Table
    loss: Number
    """The place of the loss in its area."""
    loss_area: str

    def of_graph(self, graph: int) -> Iterator[Loop]:
        """The loops of one graph, in order, with the least room of all."""
        row, doubles = self.table.rows[graph], self.table.doubles[graph]
        for part in self.parts:
            for n in range(part.rounds.at(row, 0)):
                for merged in part.loops:
                    pairs = zip(merged.numbers, origins(merged.loop, self.areas))
                    loop = with_numbers(merged.loop, [start + each.at(row, n) for each, start in pairs])
                    found = (doubles[c.column] if isinstance(c, Constant) else c for c in constants(loop))
                    yield with_constants(loop, found)

    def loss_of_graph(self, graph: int) -> int:
        """The place of a graph's loss."""
        return self.areas.area(self.loss_area).start + self.loss.at(self.table.rows[graph], 0)

    def line(self, part: Rounds) -> str:
        """Loops in text form."""
        loops = (merged.varying(self.areas, _at) for merged in part.loops)
        texts = [self.areas.listing_line(loop) for loop in loops]
        if part.rounds == Number(1, 1):
            return "; ".join(texts)
        rounds = f"for {ROUND}<{part.rounds.text(0, _at)}"
        return "; ".join(f"{rounds} {text[4:]}" if text.startswith("for ") else f"{rounds}: {text}" for text in texts)

    def lines(self) -> Iterator[str]:
        """Text form: the loops, and the table."""
        yield from map(self.line, self.parts)
        yield f"loss {self.loss_area}[{self.loss.text(0, _at)}]"
        yield from self.table.lines()


def _at(_: Sequence[int], name: str) -> str:
    """A number from a list, in text form."""
    return f"at({name})"


def merge(steps: Sequence[Step], *, has_vectors: bool = True) -> Merged:
    """Merge the loops of these graphs, whose parameters have the same numbers.

    has_vectors: whether the C will have vectors, so that copies of matrices pay. Raises Unmergeable.
    """
    if any(step.loops.has_parameter_as_loss for step in steps):
        raise Unmergeable("a loss is a parameter, whose gradient is not a sum")
    order = Order(max(steps, key=lambda step: (-len(step.loops.unused), step.workspace)))
    areas = common_areas(steps, order)
    moved = in_common_areas(steps, areas, order)
    transposed = Transposed(areas)
    graphs = [list(transposed.loops(loops)) if has_vectors else loops for loops, _ in moved]
    areas = (*areas, transposed.area)
    common = replace(steps[0], areas=areas, loops=replace(steps[0].loops, areas=areas), series=())
    found = merged(graphs, [loss for _, loss in moved], common, order)
    if CHECKED:
        check_merged(found, graphs, [loss for _, loss in moved])
    return found


def merged(graphs: Sequence[Sequence[Loop]], losses: Sequence[int], areas: Step, order: Order) -> Merged:
    """Merge loops in common areas. losses: the place of each graph's loss. areas: a step that has the areas."""
    table, known = Table(len(graphs)), Known(areas)
    aligned = align(graphs, known)
    parts = tuple(_merged(same, areas, table, known) for same in _in_rounds(aligned, known))
    area = areas.area_of(losses[0])
    if any(areas.area_of(place) != area for place in losses):
        raise Unmergeable("the losses are in several areas")
    places = [place - area.start for place in losses]
    return Merged(areas, order, parts, table, Number(places[0], table.column(places)), area.name)


def _in_rounds(aligned: list[Aligned], known: Known) -> Iterator[list[list[list[Loop]]]]:
    """Group what runs in rounds together. Yields, for each loop of a round and each graph, its loops.

    A run of one kind is such a group. So are several kinds that alternate, if every graph has one loop of each.
    """
    at = 0
    while at < len(aligned):
        length = next((n for n in range(2, LENGTH + 1) if _repeats(aligned, at, n, known) >= MANY), 1)
        rounds = _repeats(aligned, at, length, known) if length > 1 else 1
        group = aligned[at : at + rounds * length]
        yield [
            [
                [loop for each in group[first::length] for loop in each.loops[graph]]
                for graph in range(len(group[0].loops))
            ]
            for first in range(length)
        ]
        at += rounds * length


def _repeats(aligned: list[Aligned], at: int, length: int, known: Known) -> int:
    """How often the next `length` kinds repeat, with one loop of each in every graph, and the same constants."""
    stop = at
    while stop < len(aligned) and all(len(loops) == 1 for loops in aligned[stop].loops):
        if stop >= at + length and _alike(aligned[stop], known) != _alike(aligned[stop - length], known):
            break
        stop += 1
    return (stop - at) // length


def _alike(aligned: Aligned, known: Known) -> tuple[object, ...]:
    return (aligned.kind, *(repr(known(loop).constants) for (loop,) in aligned.loops))


def _merged(same: list[list[list[Loop]]], areas: Step, table: Table, known: Known) -> Rounds:
    """Merge loops of one kind each. same: for each loop of a round, graph and round."""
    rounds = [len(of_graph) for of_graph in same[0]]
    loops = tuple(_merged_loop(each, areas, table, known) for each in same)
    return Rounds(Number(max(rounds), table.column(rounds)), loops)


def _merged_loop(graphs: list[list[Loop]], areas: Step, table: Table, known: Known) -> MergedLoop:
    every = [loop for of_graph in graphs for loop in of_graph]
    starts = origins(every[0], areas)
    columns = [list(zip(*(known(loop).numbers for loop in of_graph))) for of_graph in graphs]
    found = [
        number([[x - start for x in each[at]] if each else [] for each in columns], table)
        for at, start in enumerate(starts)
    ]
    of_graphs = [known(of_graph[0]).constants if of_graph else None for of_graph in graphs]
    common = [
        table.constant([each[at] if each else None for each in of_graphs])
        for at in range(len(known(every[0]).constants))
    ]
    fits = frozenset((loop.counts[-1] if loop.counts else 1, loop.room) for loop in every)
    loop = replace(with_constants(every[0], common), room=min(loop.room for loop in every))
    return MergedLoop(loop, tuple(found), fits)
