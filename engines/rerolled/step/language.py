"""The words of the step form: runs, conditions, statements, and how to walk through a program of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Optional, Union

from engines.rerolled.recover.loops import Access, Loop

# --- runs ------------------------------------------------------------------------------------------------------------


class Due(NamedTuple):
    """An update that a loop makes on its way, before it reads weights: `-= rate * (before * factor)`."""

    segment: int
    slot: int
    """Which operand is brought up to date."""
    before: Access
    """The inputs of the row that the update belongs to."""
    factor: Access
    keeps: bool
    """Whether each input then takes its place in `before`, for the next update."""


@dataclass(frozen=True)
class Run:
    """One loop, and how it runs."""

    number: int
    """Its place in the listing."""
    loop: Loop
    """The loop itself; rearranged, its operands may lie elsewhere than in the listing."""
    in_place: bool = False
    live_lane: Optional[int] = None
    """The lane count that goes over the inputs that are not zero."""
    live_segment: Optional[int] = None
    """The segment whose terms do."""
    due: Optional[Due] = None
    rows: int = 1
    """How many rows it computes: its outermost lane count, or its segments, go over them."""
    is_before: bool = False
    """Whether its inputs are those that were kept of the row before."""

    @property
    def is_live(self) -> bool:
        return self.live_lane is not None or self.live_segment is not None

    @property
    def takes_rate(self) -> bool:
        return self.in_place or self.due is not None

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        hows = {
            "in place": self.in_place,
            "over nonzero inputs": self.is_live,
            f"for {self.rows} rows": self.rows > 1,
            "of the row before": self.is_before,
            "after its update": self.due,
            "keeping the inputs": self.due and self.due.keeps,
        }
        return " ".join([f"loop {self.number}", *(how for how, holds in hows.items() if holds)])


class Place(NamedTuple):
    """A place in the workspace, and how much further it lies for each next row."""

    base: int
    per_row: int = 0


# --- conditions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Flag:
    """Something that earlier statements set or cleared: one of FLAGS. All are clear at first."""

    name: str

    def __str__(self) -> str:
        return self.name


DUE, KEPT = Flag("due"), Flag("kept")
"""Whether an update waits for the next row; whether a run kept this row's inputs for it."""
FLAGS = (DUE, KEPT)


@dataclass(frozen=True)
class Alone:
    """Whether each row is a batch, and all gradients are zero."""

    def __str__(self) -> str:
        return "alone"


@dataclass(frozen=True)
class Fit:
    """Whether this many rows are left, both in the stretch and in the batch."""

    rows: int

    def __str__(self) -> str:
        return f"{self.rows} rows fit"


@dataclass(frozen=True)
class BatchEnds:
    """Whether the batch is complete once these rows are counted; counts them."""

    rows: int = 1

    def __str__(self) -> str:
        return f"batch ends after {self.rows}"


@dataclass(frozen=True)
class EveryInput:
    """Whether the list holds every input: nothing is skipped."""

    def __str__(self) -> str:
        return "every input counts"


@dataclass(frozen=True)
class NoZeros:
    """Whether no input of the rows that were taken together could be skipped."""

    rows: int
    at: Place

    def __str__(self) -> str:
        return f"no zeros in {self.rows} rows"


@dataclass(frozen=True)
class Unbounded:
    """Whether a weight may be infinite or NaN, as far as is known."""

    def __str__(self) -> str:
        return "weights may be infinite"


@dataclass(frozen=True)
class Not:
    """The opposite."""

    condition: Condition

    def __str__(self) -> str:
        return f"not {self.condition}"


@dataclass(frozen=True)
class Both:
    """Both of them; the second is asked only where the first holds."""

    first: Condition
    second: Condition

    def __str__(self) -> str:
        return f"{self.first} and {self.second}"


Condition = Union[Flag, Alone, Fit, BatchEnds, EveryInput, NoZeros, Unbounded, Not, Both]

# --- statements ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Take:
    """Copy `inputs`, `parameters` or `gradients` from the caller's buffer, parameters in the loops' order."""

    what: str

    def __str__(self) -> str:
        return f"take {self.what}"


@dataclass(frozen=True)
class Give:
    """Copy `inputs`, `outputs`, `parameters` or `gradients` to the caller's buffer."""

    what: str

    def __str__(self) -> str:
        return f"give {self.what}"


@dataclass(frozen=True)
class TakeRow:
    """The next row becomes the inputs."""

    def __str__(self) -> str:
        return "take row"


@dataclass(frozen=True)
class TakeRows:
    """The next rows, side by side."""

    rows: int
    to: Place


@dataclass(frozen=True)
class Perform:
    """Run the loops of a routine, in their order."""

    routine: str

    def __str__(self) -> str:
        return f"run {self.routine}"


@dataclass(frozen=True)
class Guard:
    """Record the loss, which counts the row. Where it is not finite, what comes next is `otherwise`, and `leave`."""

    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class NextRate:
    """The rate of the next update becomes the rate that runs and updates take."""

    def __str__(self) -> str:
        return "next rate"


@dataclass(frozen=True)
class Update:
    """`p -= rate * q / batch`, then `q = 0`, for every parameter."""

    def __str__(self) -> str:
        return "update"


@dataclass(frozen=True)
class Copy:
    """Copy values that lie side by side."""

    to: Place
    source: Place
    size: int


@dataclass(frozen=True)
class Set:
    """Set or clear a flag."""

    flag: Flag
    value: bool

    def __str__(self) -> str:
        return f"{'set' if self.value else 'clear'} {self.flag}"


@dataclass(frozen=True)
class MeasureWeights:
    """Find a bound on the magnitude of all weights that skipping concerns."""

    def __str__(self) -> str:
        return "measure weights"


@dataclass(frozen=True)
class ListInputs:
    """List the inputs that are not zero; all of them where `every`, or where a weight may be infinite."""

    every: bool = False

    def __str__(self) -> str:
        return "list every input" if self.every else "list inputs"


@dataclass(frozen=True)
class CheckFactors:
    """List every input where a sink's factor may be infinite, and raise the bound by what the update may add."""

    def __str__(self) -> str:
        return "check factors"


@dataclass(frozen=True)
class If:
    """A choice."""

    condition: Condition
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class EachRow:
    """The body for each of the rows that were taken together; before: only for those before the present one."""

    rows: int
    body: tuple[Statement, ...]
    before: bool = False


@dataclass(frozen=True)
class EndTurn:
    """The turn is over: its rows are done."""

    def __str__(self) -> str:
        return "end turn"


Statement = Union[
    Take,
    Give,
    TakeRow,
    TakeRows,
    Perform,
    Guard,
    NextRate,
    Update,
    Copy,
    Set,
    MeasureWeights,
    ListInputs,
    CheckFactors,
    If,
    EachRow,
    EndTurn,
]
Program = tuple[Statement, ...]

SECTIONS = ("forward", "backward", "enter", "turn", "leave")


def rewrite(program: Program, change: Callable[[Statement], Program]) -> Program:
    """The program with each statement in place of which `change` gives others; inner statements come first."""
    changed: list[Statement] = []
    for statement in program:
        if isinstance(statement, If):
            then, otherwise = rewrite(statement.then, change), rewrite(statement.otherwise, change)
            statement = If(statement.condition, then, otherwise)
        elif isinstance(statement, EachRow):
            statement = replace(statement, body=rewrite(statement.body, change))
        elif isinstance(statement, Guard):
            statement = Guard(rewrite(statement.otherwise, change))
        changed += change(statement)
    return tuple(changed)


def walk(program: Program) -> Iterator[Statement]:
    """All statements, outer ones first."""
    for statement in program:
        yield statement
        if isinstance(statement, If):
            yield from walk(statement.then)
            yield from walk(statement.otherwise)
        elif isinstance(statement, EachRow):
            yield from walk(statement.body)
        elif isinstance(statement, Guard):
            yield from walk(statement.otherwise)


def conditions(program: Program) -> Iterator[Condition]:
    """All conditions that are asked, with their parts."""
    for statement in walk(program):
        if isinstance(statement, If):
            waiting: list[Condition] = [statement.condition]
            while waiting:
                condition = waiting.pop()
                yield condition
                if isinstance(condition, Not):
                    waiting.append(condition.condition)
                elif isinstance(condition, Both):
                    waiting += [condition.first, condition.second]
