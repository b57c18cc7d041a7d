"""The language of steps: runs, conditions and statements, and functions that walk and rewrite programs.

program   = statement*
statement = one of the classes below: its fields, its text, and the programs inside it

The printer derives from these classes. A back end is a table with an entry for each of them, and for each Action.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Optional

from zoomgrad.engines.rerolled.recover.loops import Access, Loop, Phase

# --- runs ------------------------------------------------------------------------------------------------------------


class Due(NamedTuple):
    """A deferred update that a loop makes just before it reads each weight: `-= rate * (before * factor)`."""

    segment: int
    slot: int
    """The operand to update."""
    before: Access
    """The inputs of the row that the update belongs to."""
    factor: Access


class Panel(NamedTuple):
    """An operand that a loop copies strip by strip, before the strip's tiles read the copy."""

    segment: int
    slot: int
    base: int = 0
    """The place of the copy: for each term, the strip's lanes side by side."""
    per_part: int = 0
    """The distance from one thread's copy to the next one's."""


@dataclass(frozen=True)
class Run:
    """One loop, and how it runs."""

    number: int
    """The loop's number in the listing."""
    loop: Loop
    """The loop. In a rearranged step, its operands may have other places than in the listing."""
    in_place: bool = False
    """Whether it subtracts from its target, a parameter."""
    live_lane: Optional[int] = None
    """The lane count that runs over nonzero inputs only."""
    live_segment: Optional[int] = None
    """The segment whose terms run over nonzero inputs only."""
    due: Optional[Due] = None
    rows: int = 1
    """The most rows that it computes. Its last lane count but one, or a sink's terms, run over those taken."""
    panel: Optional[Panel] = None
    tall: int = 0
    """If it copies the inputs of a sink tile by tile, or reads the copies: the inputs of a tile."""
    transposes: bool = False
    """Whether it copies a matrix for the loops after it."""
    in_strips: bool = False
    """Whether its first lane count is the strip of weights that are stored strip by strip."""
    first: int = 0
    """The first lane, if it computes the last strip only."""
    rounds: tuple[Loop, ...] = ()
    """The loops of a round, if it is a series: see series.py. `number` and `loop` are then those of the first loop."""

    @property
    def stop(self) -> int:
        """The number after that of the last loop."""
        return self.number + (self.rounds[0].counts[0] * len(self.rounds) if self.rounds else 1)

    @property
    def is_live(self) -> bool:
        return self.live_lane is not None or self.live_segment is not None

    @property
    def sums_rows(self) -> bool:
        """Whether the terms of its sums are the rows taken together."""
        return self.rows > 1 and self.loop.phase == Phase.SINK

    @property
    def takes_rate(self) -> bool:
        return self.in_place or self.due is not None

    def updating(self, away: int) -> Run:
        """The run of a sink, but in place. away: the distance from a parameter to its gradient."""
        target = self.loop.target._replace(base=self.loop.target.base - away)
        return replace(self, loop=replace(self.loop, target=target), in_place=True)

    def __str__(self) -> str:
        if self.rounds:
            return f"loops {self.number}-{self.stop - 1} in {self.rounds[0].counts[0]} rounds"
        return f"loop {self.number}{self.how}"

    @cached_property
    def how(self) -> str:
        """What follows the number in the text form, each phrase after a space. Runs with one text share their code."""
        hows = {
            "in place": self.in_place,
            "over nonzero inputs": self.is_live,
            "transposed": self.transposes,
            "in strips": self.in_strips,
            f"from lane {self.first}": self.first,
            f"{'' if self.sums_rows else 'copied '}in tiles of {self.tall}": self.tall,
            f"for up to {self.rows} rows": self.rows > 1,
            "from a panel": self.panel,
            "after its update": self.due,
        }
        return "".join(f" {how}" for how, holds in hows.items() if holds)


class Place(NamedTuple):
    """A place in the workspace, and its stride from row to row."""

    base: int
    per_row: int = 0


# --- facts -----------------------------------------------------------------------------------------------------------


class Fact(Enum):
    """What may hold at run time. Its value is its text."""

    DUE = "due"
    """An update waits for the next row. Only SET_DUE and CLEAR_DUE change this; it does not hold at first."""
    ALONE = "alone"
    """The row, or the rows taken together, are a whole batch, and all gradients are zero."""
    ENDS = "batch ends"
    """The row, or the rows taken together, complete the batch. Evaluating this condition counts them."""
    EVERY_INPUT = "every input of the first row counts"
    """The list of the first of the rows taken together holds every input, so skipping would probably gain nothing."""
    UNBOUNDED = "weights may be infinite"
    """The bound does not exclude an infinite or NaN weight."""

    def __str__(self) -> str:
        return str(self.value)


# --- statements ------------------------------------------------------------------------------------------------------

Spell = Callable[[Any], str]
"""The name of a place: its area, and the offset in it."""


@dataclass(frozen=True)
class Statement:
    """A statement. A subclass has a text, or spells one from its fields."""

    TEXT: ClassVar[str] = ""
    """Text form, with fields in braces."""
    PROGRAMS: ClassVar[tuple[str, ...]] = ()
    """The fields that hold programs."""

    def text(self, spell: Spell) -> str:
        """Its text form, without the programs in it."""
        fields: dict[str, Any] = vars(self)
        return self.TEXT.format(**{name: spell(v) if isinstance(v, Place) else v for name, v in fields.items()})

    def parts(self, spell: Spell) -> Iterator[tuple[str, Program]]:
        """The lines of its text form, each with the program that is indented below it."""
        programs: list[Program] = [getattr(self, name) for name in self.PROGRAMS]
        yield self.text(spell), programs[0] if programs else ()
        yield from (("else:", program) for program in programs[1:] if program)


@dataclass(frozen=True)
class Take(Statement):
    """Copy `inputs`, `parameters` or `gradients` from the caller's buffer, or the `numbers` that loops read.

    Parameters take the loops' order.
    """

    what: str
    TEXT = "take {what}"


@dataclass(frozen=True)
class Give(Statement):
    """Copy `inputs`, `outputs`, `parameters` or `gradients` to the caller's buffer."""

    what: str
    TEXT = "give {what}"


@dataclass(frozen=True)
class Action(Statement):
    """A statement without fields: one of the constants below."""

    what: str
    TEXT = "{what}"


TAKE_ROW = Action("take row")
"""Read the next row into the inputs."""
NEXT_RATE = Action("next rate")
"""Make the rate of the next update the current rate."""
SET_DUE, CLEAR_DUE = Action("set due"), Action("clear due")
"""Say whether an update waits for the next row."""
MEASURE_WEIGHTS = Action("measure weights")
"""Compute a bound on the magnitude of the weights that zero inputs would skip."""
LIST_EVERY_INPUT, LIST_INPUTS = Action("list every input"), Action("list inputs")
"""List all inputs; or those that are not zero, but all if a weight may be infinite."""
TURN_LISTS = Action("turn lists")
"""Set, for each input, the bits of the rows that list it."""
CHECK_FACTORS = Action("check factors")
"""List every input if a sink's factor may be infinite. Raise the bound on weights by the possible update."""


@dataclass(frozen=True)
class TakeRows(Statement):
    """Read the next rows of the batch and the stretch, up to that many, side by side."""

    rows: int
    to: Place
    lists: bool = False
    """Whether to list the inputs of each row, as LIST_INPUTS does, while they are in the first-level cache."""

    def text(self, spell: Spell) -> str:
        return f"take up to {self.rows} rows to {spell(self.to)}{', and list their inputs' if self.lists else ''}"


@dataclass(frozen=True)
class Perform(Statement):
    """Run the loops of a routine in order."""

    routine: str
    TEXT = "run {routine}"


@dataclass(frozen=True)
class Guard(Statement):
    """Record the loss, which completes the row. If it is not finite, continue with `otherwise`, then `leave`.

    From `otherwise` on, only the rows before this one count as taken together.
    """

    otherwise: Program = ()
    PROGRAMS = ("otherwise",)

    def text(self, spell: Spell) -> str:
        return "guard, else:" if self.otherwise else "guard"


@dataclass(frozen=True)
class Update(Statement):
    """`p -= rate * q / batch`, then `q = 0`, for every parameter, or for all but those of a sink that ran in place."""

    but: Optional[int] = None
    """The number of that sink."""

    def text(self, spell: Spell) -> str:
        return "update" if self.but is None else f"update all but loop {self.but}"


@dataclass(frozen=True)
class Copy(Statement):
    """Copy contiguous values."""

    to: Place
    source: Place
    size: int
    TEXT = "copy {to} <- {source} : {size}"


@dataclass(frozen=True)
class If(Statement):
    """Run one of two programs."""

    condition: Fact
    then: Program
    otherwise: Program = ()
    PROGRAMS = ("then", "otherwise")
    TEXT = "if {condition}:"


@dataclass(frozen=True)
class EachRow(Statement):
    """Run the body for each of the rows taken together, in the row's own places, or only for the last one.

    See `Step.own`.
    """

    body: Program
    last: bool = False
    PROGRAMS = ("body",)

    def text(self, spell: Spell) -> str:
        return f"for {'the last' if self.last else 'each'} row:"


@dataclass(frozen=True)
class Divided(Statement):
    """Threads divide the body by rows or by lanes. All of them end it before the next statement begins."""

    by: str
    """`rows` or `lanes`."""
    body: Program
    PROGRAMS = ("body",)
    TEXT = "divided by {by}:"


Program = tuple[Statement, ...]


def rewrite(program: Program, change: Callable[[Statement], Program]) -> Program:
    """Replace each statement by the statements that `change` returns, inner statements first."""
    changed: list[Statement] = []
    for statement in program:
        inner = {name: rewrite(getattr(statement, name), change) for name in statement.PROGRAMS}
        changed += change(replace(statement, **inner))
    return tuple(changed)


def walk(program: Program) -> Iterator[Statement]:
    """All statements, outer statements first."""
    for statement in program:
        yield statement
        for name in statement.PROGRAMS:
            yield from walk(getattr(statement, name))
