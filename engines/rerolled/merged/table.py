"""How a number of corresponding loops differs from graph to graph and from round to round, and the table of graphs.

A number may differ from graph to graph, and within a run of loops also from loop to loop, which then run in *rounds*.
How it differs decides how it is written, here for a run of three loops in one graph and of two in the other:

    8, 8, 8      and 8, 8      8             a literal
    4, 4, 4      and 6, 6      c0            a column of the table, with a row for each graph
    8, 24, 40    and 8, 24     8 + 16*n      n is the number of the round
    8, 24, 40    and 2, 5      c1 + c2*n
    1, 7, 9      and 1, 7      at(n)         the same list for all graphs
    1, 7, 9      and 3, 2      c3[n]         a part of the table's row, with a number for each round
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Optional, Union

from zoomgrad.engines.rerolled.recover.loops import Varying, VaryingConstant
from zoomgrad.engines.rerolled.step.series import ROUND, Listed


class Column(NamedTuple):
    """A column of the table, or the first of several that hold a list."""

    number: int

    def __str__(self) -> str:
        return f"c{self.number}"


Part = Union[int, Column]


class Number(NamedTuple):
    """How a number of a loop depends on the graph and the round."""

    first: int
    """That of the first round, in a graph that has it."""
    base: Part
    step: Part = 0
    """What each round adds."""
    listed: Optional[Union[tuple[int, ...], Column]] = None
    """A list with a number for each round, instead of base and step."""

    @property
    def varies(self) -> bool:
        return self.listed is not None or self.step != 0 or isinstance(self.base, Column)

    def at(self, row: Sequence[int], n: int) -> int:
        """The number in that round of the graph with that row of the table."""
        if isinstance(self.listed, Column):
            return row[self.listed.number + n]
        if self.listed is not None:
            return self.listed[n]
        base, step = (row[part.number] if isinstance(part, Column) else part for part in (self.base, self.step))
        return base + n * step

    def columns(self) -> Iterator[Column]:
        """The columns that its text names."""
        for part in (self.base, self.step, self.listed):
            if isinstance(part, Column):
                yield part

    def text(self, origin: int, listed: Listed, name: Callable[[Part], str] = str) -> int:
        """The number, or how it varies.

        origin: the start of the area, if it is a place, which the text includes. name: how to write a column, or any
        base to be named.
        """
        if isinstance(self.listed, Column):
            return Varying(origin + self.first, f" + {name(self.listed)}[{ROUND}]", origin)
        if self.listed is not None:
            return Varying(origin + self.first, f" + {listed(self.listed, ROUND)}", origin)
        base = name(self.base)
        is_number = base == str(self.base) and isinstance(self.base, int)
        if is_number and not self.varies:
            return origin + self.first
        constant, rest = (origin + int(base), "") if is_number else (origin, f" + {base}")
        if isinstance(self.step, Column):
            rest += f" + {name(self.step)}*{ROUND}"
        elif self.step:
            times = "" if abs(self.step) == 1 else f"{abs(self.step)}*"
            rest += f" {'-' if self.step < 0 else '+'} {times}{ROUND}"
        return Varying(origin + self.first, rest, constant)


class Constant(VaryingConstant):
    """A constant that differs from graph to graph, by its column of doubles."""

    column: int


@dataclass
class Table:
    """The numbers that differ: a row for each graph."""

    graphs: int
    rows: list[list[int]] = field(default_factory=list)
    doubles: list[list[float]] = field(default_factory=list)
    _known: dict[tuple[object, ...], Column] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = [[] for _ in range(self.graphs)]
        self.doubles = [[] for _ in range(self.graphs)]

    def column(self, numbers: Sequence[Optional[int]]) -> Part:
        """A column with these numbers, or their common number. None: the graph does not use it."""
        values = {number for number in numbers if number is not None}
        if len(values) <= 1:
            return values.pop() if values else 0
        return self._columns(tuple((0 if number is None else number,) for number in numbers))

    def listed(self, lists: Sequence[Sequence[int]]) -> Union[tuple[int, ...], Column]:
        """The list of all graphs, or the columns with a list for each."""
        longest = max(lists, key=len)
        if all(list(longest[: len(each)]) == list(each) for each in lists):
            return tuple(longest)
        return self._columns(tuple((*each, *[0] * (len(longest) - len(each))) for each in lists))

    def _columns(self, parts: tuple[tuple[int, ...], ...]) -> Column:
        if parts not in self._known:
            self._known[parts] = Column(len(self.rows[0]))
            for row, part in zip(self.rows, parts):
                row.extend(part)
        return self._known[parts]

    def lines(self) -> Iterator[str]:
        """Text form: a line for each graph, below the names of the columns."""
        names = [*(f"c{at}" for at in range(len(self.rows[0]))), *(f"d{at}" for at in range(len(self.doubles[0])))]
        texts = [[*map(str, row), *map(repr, doubles)] for row, doubles in zip(self.rows, self.doubles)]
        widths = [max(map(len, column)) for column in zip(names, *texts)]
        for first, row in zip(["graph", *map(str, range(self.graphs))], [names, *texts]):
            yield "  ".join([first.ljust(5), *(text.rjust(width) for text, width in zip(row, widths))]).rstrip()

    def constant(self, numbers: Sequence[Optional[float]]) -> float:
        """The number that an operand has in every graph, or a column."""
        texts = {repr(number): number for number in numbers if number is not None}
        if len(texts) == 1:
            return next(iter(texts.values()))
        first = next(iter(texts.values()))
        found = [first if number is None else number for number in numbers]
        parts = ("double", *map(repr, found))
        if parts not in self._known:
            self._known[parts] = Column(len(self.doubles[0]))
            for row, number in zip(self.doubles, found):
                row.append(number)
        column = self._known[parts].number
        made = Constant(first, f"d{column}")
        made.column = column
        return made


def number(graphs: Sequence[Sequence[int]], table: Table) -> Number:
    """How a number depends on the graph and the round. graphs: the number of each round, for each graph."""
    first = next(of_graph[0] for of_graph in graphs if of_graph)
    if all(
        number == of_graph[0] + n * (of_graph[1] - of_graph[0])
        for of_graph in graphs
        for n, number in enumerate(of_graph)
        if n
    ):
        base = table.column([of_graph[0] if of_graph else None for of_graph in graphs])
        step = table.column([of_graph[1] - of_graph[0] if len(of_graph) > 1 else None for of_graph in graphs])
        return Number(first, base, step)
    return Number(first, 0, listed=table.listed(graphs))
