"""The language of steps: runs, conditions and statements, and functions that walk and rewrite programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Optional, Union

from zoomgrad.engines.rerolled.recover.groups import Phase
from zoomgrad.engines.rerolled.recover.loops import Access, Loop

# --- runs ------------------------------------------------------------------------------------------------------------


class Due(NamedTuple):
    """A deferred update that a loop makes just before it reads each weight: `-= rate * (before * factor)`."""

    segment: int
    slot: int
    """The operand to update."""
    before: Access
    """The inputs of the row that the update belongs to."""
    factor: Access
    keeps: bool
    """Whether the loop then stores each input in `before`, for the next update."""


@dataclass(frozen=True)
class Run:
    """One loop, and how it runs."""

    number: int
    """The loop's number in the listing."""
    loop: Loop
    """The loop. In a rearranged step, its operands may have other places than in the listing."""
    in_place: bool = False
    live_lane: Optional[int] = None
    """The lane count that runs over nonzero inputs only."""
    live_segment: Optional[int] = None
    """The segment whose terms run over nonzero inputs only."""
    due: Optional[Due] = None
    rows: int = 1
    """The most rows that it computes. Its outermost lane count, or a sink's terms, run over those that were taken."""
    is_before: bool = False
    """Whether it reads the kept inputs of the previous row."""
    own: tuple[tuple[str, Place], ...] = ()
    """Area -> the places that the current row has instead of it, if its thread computes the row on its own."""
    is_part: bool = False
    """Whether each thread computes only its part of the lanes, or of the rows."""

    @property
    def is_live(self) -> bool:
        return self.live_lane is not None or self.live_segment is not None

    @property
    def is_plain(self) -> bool:
        """Whether it runs the listing's loop over one row, and nothing else."""
        return self == Run(self.number, self.loop)

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
            f"for up to {self.rows} rows": self.rows > 1,
            "of the row before": self.is_before,
            "after its update": self.due,
            "keeping the inputs": self.due and self.due.keeps,
            "in own areas": self.own,
            "in parts": self.is_part,
        }
        return " ".join([f"loop {self.number}", *(how for how, holds in hows.items() if holds)])

    def of_rows(self, count: int) -> Run:
        """The run over that many of its rows."""
        loop = self.loop
        if loop.phase == Phase.SINK:
            (segment,) = loop.segments
            return replace(self, loop=replace(loop, segments=(segment._replace(counts=(count,)),)))
        return replace(self, loop=replace(loop, counts=(count, *loop.counts[1:])))


class Place(NamedTuple):
    """A place in the workspace, and its stride from row to row."""

    base: int
    per_row: int = 0


# --- conditions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Flag:
    """A flag that statements set and clear: one of FLAGS. All are clear at first."""

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
class Batched:
    """Whether a batch has at least this many rows."""

    rows: int

    def __str__(self) -> str:
        return f"batches have {self.rows} rows"


@dataclass(frozen=True)
class BatchEnds:
    """Count the row, or all rows taken together; whether they complete the batch."""

    together: bool = False

    def __str__(self) -> str:
        return "batch ends with the rows" if self.together else "batch ends"


@dataclass(frozen=True)
class EveryInput:
    """Whether the list holds every input, so that nothing is skipped; or the lists of all rows taken together do."""

    together: bool = False

    def __str__(self) -> str:
        return f"every input{' of the rows' * self.together} counts"


@dataclass(frozen=True)
class Unbounded:
    """Whether a weight may be infinite or NaN, as far as the bound shows."""

    def __str__(self) -> str:
        return "weights may be infinite"


@dataclass(frozen=True)
class Not:
    """Whether the condition does not hold."""

    condition: Condition

    def __str__(self) -> str:
        return f"not {self.condition}"


@dataclass(frozen=True)
class Both:
    """Whether both conditions hold. The second is evaluated only if the first holds."""

    first: Condition
    second: Condition

    def __str__(self) -> str:
        return f"{self.first} and {self.second}"


Condition = Union[Flag, Alone, Batched, BatchEnds, EveryInput, Unbounded, Not, Both]

# --- statements ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Take:
    """Copy `inputs`, `parameters` or `gradients` from the caller's buffer. Parameters take the loops' order."""

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
    """Read the next row into the inputs."""

    def __str__(self) -> str:
        return "take row"


@dataclass(frozen=True)
class TakeRows:
    """Read the next rows of the batch and the stretch, up to that many, side by side."""

    rows: int
    to: Place


@dataclass(frozen=True)
class Perform:
    """Run the loops of a routine in order."""

    routine: str

    def __str__(self) -> str:
        return f"run {self.routine}"


@dataclass(frozen=True)
class Guard:
    """Record the loss, which completes the row. If it is not finite, continue with `otherwise`, then `leave`."""

    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class NextRate:
    """Make the rate of the next update the current rate."""

    def __str__(self) -> str:
        return "next rate"


@dataclass(frozen=True)
class Update:
    """`p -= rate * q / batch`, then `q = 0`, for every parameter."""

    def __str__(self) -> str:
        return "update"


@dataclass(frozen=True)
class ClearSeeded:
    """`q = 0` for the parameter that is the loss: its sink then sets the gradient to 1, as `backward` does."""

    def __str__(self) -> str:
        return "clear the gradient of the loss"


@dataclass(frozen=True)
class Copy:
    """Copy contiguous values."""

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
    """Compute a bound on the magnitude of the weights that zero inputs would skip."""

    def __str__(self) -> str:
        return "measure weights"


@dataclass(frozen=True)
class ListInputs:
    """List the inputs that are not zero. List all of them if `every`, or if a weight may be infinite."""

    every: bool = False

    def __str__(self) -> str:
        return "list every input" if self.every else "list inputs"


@dataclass(frozen=True)
class ListRows:
    """List the inputs that are not zero for each of the rows taken together, which begin at that place."""

    at: Place

    def __str__(self) -> str:
        return "list inputs of the rows"


@dataclass(frozen=True)
class TurnLists:
    """List, for each input, the rows in which it is listed."""

    def __str__(self) -> str:
        return "turn lists"


@dataclass(frozen=True)
class CheckFactors:
    """List every input if a sink's factor may be infinite. Raise the bound on weights by the possible update.

    at: the place of the current row's inputs, if rows are taken together.
    """

    at: Optional[Place] = None

    def __str__(self) -> str:
        return "check factors"


@dataclass(frozen=True)
class If:
    """Run one of two programs."""

    condition: Condition
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class EachRow:
    """Run the body for each of the rows taken together. last: only for the last one."""

    body: tuple[Statement, ...]
    last: bool = False


@dataclass(frozen=True)
class Divided:
    """Threads divide the body by rows or by lanes. All of them end it before the next statement begins."""

    by: str
    """`rows` or `lanes`."""
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class KeepEarlier:
    """From now on, only the rows before the current one count as taken together."""

    def __str__(self) -> str:
        return "keep the rows before"


@dataclass(frozen=True)
class EndTurn:
    """End the turn, because its rows are done."""

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
    ClearSeeded,
    Copy,
    Set,
    MeasureWeights,
    ListInputs,
    ListRows,
    TurnLists,
    CheckFactors,
    If,
    EachRow,
    Divided,
    KeepEarlier,
    EndTurn,
]
Program = tuple[Statement, ...]

SECTIONS = ("forward", "backward", "enter", "turn", "evaluate", "leave")


def rewrite(program: Program, change: Callable[[Statement], Program]) -> Program:
    """Replace each statement by the statements that `change` returns, inner statements first."""
    changed: list[Statement] = []
    for statement in program:
        if isinstance(statement, If):
            then, otherwise = rewrite(statement.then, change), rewrite(statement.otherwise, change)
            statement = If(statement.condition, then, otherwise)
        elif isinstance(statement, (EachRow, Divided)):
            statement = replace(statement, body=rewrite(statement.body, change))
        elif isinstance(statement, Guard):
            statement = Guard(rewrite(statement.otherwise, change))
        changed += change(statement)
    return tuple(changed)


def walk(program: Program) -> Iterator[Statement]:
    """All statements, outer statements first."""
    for statement in program:
        yield statement
        if isinstance(statement, If):
            yield from walk(statement.then)
            yield from walk(statement.otherwise)
        elif isinstance(statement, (EachRow, Divided)):
            yield from walk(statement.body)
        elif isinstance(statement, Guard):
            yield from walk(statement.otherwise)


def conditions(program: Program) -> Iterator[Condition]:
    """All conditions in a program, with their parts."""
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
