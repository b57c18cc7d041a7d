"""Loops -> Step: what training does with the recovered loops, as a program that can be printed and checked.

step      = routine* section*
routine   = name ":" run*
run       = "loop" number how*                one loop of the listing
how       = "in place"                        a sink: p -= rate * sum, instead of q += sum
          | "over nonzero inputs"             its terms, or one of its lanes, skip inputs that are 0.0
          | "for" n "rows"                    of rows taken together; each has its own lanes
          | "of the row before"               a sink over the inputs that were kept
          | "after its update"                p -= rate * (kept input * factor), just before each p is read
          | "keeping the inputs"              and each input is kept for the next such update
section   = ("forward" | "backward" | "enter" | "turn" | "leave") ":" statement*
statement = "take" what | "give" what         between the caller's buffers and the workspace
          | "take row"                        the next row becomes the inputs
          | "take" n "rows to" place          the next n rows, side by side
          | "run" routine
          | "guard" [", else:" statement*]    record the loss; the stretch ends here where it is not finite
          | "next rate"                       the rate of the next update becomes the rate
          | "update"                          p -= rate * q / batch, then q = 0, for every parameter
          | "copy" place "<-" place ":" n
          | "set" flag | "clear" flag
          | "measure weights" | "list inputs" | "check factors"          what skipping needs: see rearrange/zeros.py
          | "if" condition ":" statement* ["else:" statement*]
          | "for each of" n "rows:" statement* | "for each row before it:" statement*
          | "end turn"
condition = flag | "alone" | n "rows fit" | "batch ends after" n | "every input counts" | "no zeros in" n "rows"
          | "weights may be infinite" | "not" condition | condition "and" condition

`forward` and `backward` are the two passes over one row that a caller may ask for. A stretch of training is `enter`,
then `turn` until all steps are taken or a loss is not finite, then `leave`. A row is *alone* where every row is a batch
and all gradients are zero: then no gradient has to be kept.

`plain(loops)` is the simplest program; for y = w * x, with two loops and one sink, its turn reads

    turn:
      take row
      run values            loop 0
      guard
      run gradients         loop 1
      run sinks             loop 2
      if batch ends after 1:
        next rate
        update

`rearrange` makes faster ones of it, with the same bits. Back ends print or run a step; they decide nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Optional, Union

from engines.rerolled.recover.groups import Phase
from engines.rerolled.recover.loops import Access, Area, Loop, Loops, Operand, Table

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
    """Whether so many rows are left, both in the stretch and in the batch."""

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


# --- the step --------------------------------------------------------------------------------------------------------

Span = tuple[int, int]
"""Start and stop of places in the workspace."""


class Skipping(NamedTuple):
    """What is skipped where an input is 0.0, and what must be finite for that."""

    inputs: Span
    weights: tuple[Span, ...]
    """What the inputs are multiplied with in the forward pass."""
    factors: tuple[Span, ...]
    """What the sinks multiply inputs with."""


@dataclass(frozen=True)
class Step:
    """A program over loops, with the places in the workspace that it needs besides theirs."""

    loops: Loops
    areas: tuple[Area, ...]
    """Those of the loops, then what rearrangements added."""
    routines: Mapping[str, tuple[Run, ...]]
    programs: Mapping[str, Program] = field(default_factory=dict)
    """Section -> its statements."""
    skips: Optional[Skipping] = None
    """Where inputs that are zero are skipped."""

    @property
    def workspace(self) -> int:
        return self.areas[-1].stop

    @property
    def away(self) -> int:
        """From a parameter to its gradient."""
        return self.loops.area("q").start - self.loops.area("p").start

    def area(self, name: str) -> Area:
        """The area of that name."""
        return next(area for area in self.areas if area.name == name)

    def with_area(self, name: str, size: int) -> tuple[Step, Area]:
        """The step with one more area at the end of the workspace; its size is rounded up to whole vectors."""
        start = self.workspace
        area = Area(name, start, start + -(-size // ALIGNMENT) * ALIGNMENT)
        return replace(self, areas=(*self.areas, area)), area

    def with_routine(self, name: str, runs: Iterable[Run]) -> Step:
        """The step with a routine more, or another one of that name."""
        return replace(self, routines={**self.routines, name: tuple(runs)})

    def with_programs(self, **programs: Program) -> Step:
        """The step with other sections."""
        return replace(self, programs={**self.programs, **programs})

    def rewritten(self, change: Callable[[Statement], Program]) -> Step:
        """The step with all of its sections rewritten."""
        return self.with_programs(**{name: rewrite(program, change) for name, program in self.programs.items()})

    def lines(self) -> Iterator[str]:
        """Text form."""
        for name, runs in self.routines.items():
            yield f"{name}:"
            yield from (f"  {text}" for text in _runs(runs))
        for name in SECTIONS:
            yield f"{name}:"
            yield from self._program(self.programs.get(name, ()), "  ")

    def _program(self, program: Program, indent: str) -> Iterator[str]:
        for statement in program:
            if isinstance(statement, If):
                yield f"{indent}if {statement.condition}:"
                yield from self._program(statement.then, indent + "  ")
                if statement.otherwise:
                    yield f"{indent}else:"
                    yield from self._program(statement.otherwise, indent + "  ")
            elif isinstance(statement, EachRow):
                yield f"{indent}for each {'row before it' if statement.before else f'of {statement.rows} rows'}:"
                yield from self._program(statement.body, indent + "  ")
            elif isinstance(statement, Guard):
                yield f"{indent}guard, else:" if statement.otherwise else f"{indent}guard"
                yield from self._program(statement.otherwise, indent + "  ")
            elif isinstance(statement, Copy):
                yield (
                    f"{indent}copy {self._place(statement.to)} <- {self._place(statement.source)} : {statement.size}"
                )
            elif isinstance(statement, TakeRows):
                yield f"{indent}take {statement.rows} rows to {self._place(statement.to)}"
            else:
                yield f"{indent}{statement}"

    def _place(self, place: Place) -> str:
        area = self.area_of(place.base)
        parts = [str(place.base - area.start)] if place.base > area.start or not place.per_row else []
        return f"{area.name}[{' + '.join([*parts, *([f'{place.per_row}*row'] if place.per_row else [])])}]"

    def area_of(self, place: int) -> Area:
        """The area that a place is in."""
        return next(area for area in self.areas if area.start <= place < area.stop)


ALIGNMENT = 8
"""Areas begin at multiples of it: doubles in the widest vector."""


def _runs(runs: Iterable[Run]) -> Iterator[str]:
    """Runs as text; neighbours that run in the same way share a line."""
    group: list[Run] = []
    for run in (*runs, None):
        if group and (run is None or run.number != group[-1].number + 1 or _how(run) != _how(group[0])):
            numbers = f"loop {group[0].number}" if len(group) == 1 else f"loops {group[0].number}-{group[-1].number}"
            yield f"{numbers}{_how(group[0])}"
            group = []
        if run is not None:
            group.append(run)


def _how(run: Run) -> str:
    return str(run).removeprefix(f"loop {run.number}")


# --- the plain step --------------------------------------------------------------------------------------------------


def plain(loops: Loops) -> Step:
    """Each row by itself; gradients are added up, and every parameter is updated after a batch."""
    of_phase = {
        phase: tuple(Run(number, loop) for number, loop in enumerate(loops.loops) if loop.phase == phase)
        for phase in Phase
    }
    p = loops.area("p")
    # An update would change them before they are given.
    gives_parameters = any(isinstance(o, Access) and p.start <= o.base < p.stop for o in loops.outputs)
    return Step(
        loops,
        loops.areas,
        {"values": of_phase[Phase.FORWARD], "gradients": of_phase[Phase.BACKWARD], "sinks": of_phase[Phase.SINK]},
        {
            "forward": (Take("inputs"), Take("parameters"), Perform("values"), Give("outputs")),
            "backward": (Take("gradients"), Perform("gradients"), Perform("sinks"), Give("gradients")),
            "enter": (Take("parameters"), Take("gradients")),
            "turn": (
                TakeRow(),
                Perform("values"),
                *((Give("outputs"),) if gives_parameters else ()),
                Guard(),
                Perform("gradients"),
                Perform("sinks"),
                If(BatchEnds(), (NextRate(), Update())),
            ),
            "leave": (
                Give("inputs"),
                *(() if gives_parameters else (Give("outputs"),)),
                Give("parameters"),
                Give("gradients"),
            ),
        },
    )


# --- what passes ask of loops ----------------------------------------------------------------------------------------


def span_of(operand: Operand, loop: Loop, segment: int) -> Span:
    """From the first place that an operand of that segment has to the one after its last; (0, 0) for a number."""
    if isinstance(operand, float):
        return (0, 0)
    if isinstance(operand, Table):
        return int(operand.places.min()), int(operand.places.max()) + 1
    return operand.extent(loop.counts, loop.segments[segment].counts)


def reaches(operand: Operand, loop: Loop, segment: int, span: Span) -> bool:
    """Whether an operand of that segment may have a place in the span."""
    start, stop = span
    if isinstance(operand, Table):
        return bool(((operand.places >= start) & (operand.places < stop)).any())
    first, last = span_of(operand, loop, segment)
    return first < stop and start < last


def reads(loop: Loop, span: Span) -> bool:
    """Whether the loop may read from the span."""
    return any(
        reaches(operand, loop, number, span)
        for number, segment in enumerate(loop.segments)
        for operand in segment.operands
    )
