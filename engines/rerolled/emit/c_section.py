"""A section of a step -> C statements, one or a few for each statement of the section."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Union

from zoomgrad.engines.kernel.c_tree import Block, Comment, For, Function, If, Statement, call
from zoomgrad.engines.rerolled.emit.c_nest import COUNT
from zoomgrad.engines.rerolled.recover.loops import VECTOR
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.language import Fact, Place, Program, Run
from zoomgrad.engines.rerolled.step.step import Step

_REASONS = {
    Fact.ALONE: "A whole batch, so its sums need not be kept as gradients.",
    Fact.UNBOUNDED: "Zeros are skipped only while all weights are known to be finite.",
}
"""A fact -> a comment for the branch where it holds."""
_CHANGED: dict[steps.Statement, str] = {
    steps.Give("parameters"): "t->rates != t->stretch->rates",
    steps.Give("gradients"): "t->stretch->learns",
}
"""What a stretch gives to the caller -> when it has changed it. Other doubles stay, even if a float can't hold them."""
_LISTS = {"live": "struct live", "lists": "struct live", "turned": "word"}
"""An area of lists -> the C type of a list, or of a mask."""
BASE, OWN_AREAS = "base", "xvgu"
"""What the places in OWN_AREAS count from: the C name of the workspace, for a row alone, or of the row's own places."""
_UPDATED = "t->state.gradients_are_zero = 1;"
_BUFFER_OF = {"inputs": "x", "outputs": "y", "parameters": "p", "gradients": "q"}

_ACTIONS = {
    steps.TAKE_ROW: "take_row(t, w + X, 0);",
    steps.NEXT_RATE: "t->state.rate = *t->rates++;",
    steps.SET_DUE: "t->state.due = 1;",
    steps.CLEAR_DUE: "t->state.due = 0;",
    steps.MEASURE_WEIGHTS: "t->state.bound = 1.0 + squares(w + WEIGHT, WEIGHT_COUNT);",
    steps.LIST_EVERY_INPUT: "list_every_input(live);",
    steps.LIST_INPUTS: "list_inputs(t, w + X, live);",
    steps.TURN_LISTS: f"turn_lists(lists, turned, {COUNT});",
    steps.CHECK_FACTORS: "check_factors(t, {base} + FACTOR, {lists}, {ends});",
}
_FACTS = {
    Fact.DUE: "t->state.due",
    Fact.ALONE: "{rows} == t->stretch->batch && t->state.gradients_are_zero",
    Fact.ENDS: "batch_ends(t, {rows})",
    Fact.EVERY_INPUT: "lists->count == LISTED",
    Fact.UNBOUNDED: "!(t->state.bound < LIMIT)",
}


def spelled(step: Step, place: Place) -> str:
    """A place in the workspace, relative to the start of its area."""
    area = step.area_of(place.base)
    further = f" + {place.base - area.start}" if place.base > area.start else ""
    return area.name.upper() + further + (f" + {place.per_row} * row" if place.per_row else "")


def identifier(name: str) -> str:
    """The C name of a routine."""
    return name.replace(" ", "_")


def arguments(step: Step, runs: Sequence[Run], rate: str = "rate") -> list[str]:
    """The arguments of a function over these runs."""
    together = any(run.rows > 1 for run in runs)
    lists = "live" if not together else "turned" if any(run.sums_rows for run in runs) else "lists"
    # A sink over nonzero inputs takes the rows from the masks of its inputs. Other runs go over rows one by one.
    counts = any(run.rows > 1 and not (run.is_live and run.sums_rows and not run.panel) for run in runs)
    return [
        "w",
        *([lists] if any(run.is_live for run in runs) else []),
        *([COUNT] if counts else []),
        *([rate] if any(run.takes_rate for run in runs) else []),
        *([BASE] if step.own and not together else []),
        *(["part", "parts"] if together and step.is_divided else []),
    ]


def _update_span(span: str) -> str:
    return f"update_span(w, {span}, t->state.rate, (double)t->stretch->batch);"


class Section:
    """Writes a section. buffers: the prefix of the caller's buffers, `t->` in a stretch of training."""

    def __init__(self, step: Step, buffers: str) -> None:
        self.step = step
        self.buffers = buffers
        self.shares: dict[steps.Divided, Function] = {}
        """For each division so far, the function that computes a part of it."""
        self.base, self.rows = (BASE, COUNT) if step.own else ("w", "1")
        self.first, self.last = "0", COUNT
        """The rows of a loop over those taken together: from, and up to but not including."""

    def statements(self, program: Program) -> list[Statement]:
        first: list[Statement] = ["number *const w = t->w;"] if self.buffers else []
        if self.step.own:
            first.append(f"number *const UNUSED {BASE} = w;")
        for name, kind in _LISTS.items():
            if any(area.name == name for area in self.step.areas):
                first.append(f"{kind} *const UNUSED {name} = ({kind} *)(w + {name.upper()});")
        return [*first, *self._program(program)]

    def _program(self, program: Program) -> list[Statement]:
        return [written for statement in program for written in self._WRITERS[type(statement)](self, statement)]

    def _act(self, action: steps.Action) -> list[Statement]:
        ends = f"t->taken + {self.rows} == t->stretch->batch"
        lists = "lists + row" if self.step.own else "live"
        return [_ACTIONS[action].format(base=self.base, lists=lists, ends=ends)]

    def _move(self, statement: Union[steps.Take, steps.Give]) -> list[Statement]:
        if statement == steps.Take("numbers"):  # not a statement for each: gcc takes 4 ms for one
            return [f"memcpy(w + K, numbers, {len(self.step.loops.numbers)} * sizeof(number));"]
        buffer, takes = f"{self.buffers}{_BUFFER_OF[statement.what]}", isinstance(statement, steps.Take)
        if statement.what == "inputs":
            to, source = ("w + X", buffer) if takes else (buffer, "w + X")
            copy = f"memcpy({to}, {source}, INPUTS * sizeof(number));"
        else:
            what = "outputs" if statement.what == "outputs" else "parameters"
            place = "w + (Q - P)" if statement.what == "gradients" else "w"  # from a parameter to its gradient
            copy = f"move_{what}({place}, (double *){buffer}, {int(not takes)});"
        changed = _CHANGED.get(statement) if self.buffers else None
        return [If(changed, [copy]) if changed else copy]

    def _take_rows(self, statement: steps.TakeRows) -> list[Statement]:
        taken = f"long long {COUNT} = rows_to_take(t, {statement.rows});"
        to = self._place(statement.to)
        lists = [f"list_inputs(t, {to}, lists + row);"] if statement.lists else []
        return [taken, For("row", self.last, [f"take_row(t, {to}, row);", *lists], start=self.first)]

    def _perform(self, statement: steps.Perform) -> list[Statement]:
        runs = self.step.routines[statement.routine]
        return [call(identifier(statement.routine), arguments(self.step, runs, "t->state.rate"))]

    def _guard(self, statement: steps.Guard) -> list[Statement]:
        earlier = [f"{COUNT} = row;"] if statement.otherwise else []
        return [If(f"!record(t, {self.base}[LOSS])", [*earlier, *self._program(statement.otherwise), "return 0;"])]

    def _update(self, statement: steps.Update) -> list[Statement]:
        spans = ["0, ROOM"]
        if statement.but is not None:
            loop, p = self.step.loops.loops[statement.but], self.step.area("q").start
            first, stop = (place - p for place in loop.target.extent(loop.counts))
            spans = [f"0, {self.step.whole_vectors(first)}", f"{stop // VECTOR * VECTOR}, ROOM"]
        return [*map(_update_span, spans), _UPDATED]

    def _copy(self, statement: steps.Copy) -> list[Statement]:
        to, source = self._place(statement.to), self._place(statement.source)
        return [f"memcpy({to}, {source}, {statement.size} * sizeof(number));"]

    def _if(self, statement: steps.If) -> list[Statement]:
        then, otherwise = (self._program(branch) for branch in (statement.then, statement.otherwise))
        reason = _REASONS.get(statement.condition)
        comment = [Comment(reason)] if reason and statement.then else []
        condition = _FACTS[statement.condition].format(rows=self.rows)
        return [If(condition, [*comment, *then], otherwise)]

    def _each_row(self, statement: steps.EachRow) -> list[Statement]:
        if statement.last:
            last = f"const long long row = {COUNT} - 1;"
            return [Block([last, *self._program(statement.body)])]
        assert self.step.own
        base = f"number *const UNUSED {BASE} = w + OWN - X + {self.step.own.per_row} * row;"
        return [For("row", self.last, [base, *self._program(statement.body)], start=self.first)]

    def _divided(self, divided: steps.Divided) -> list[Statement]:
        """Let threads compute parts of the body. Only what cannot be divided comes before or after it."""
        before: list[Statement] = []
        after: list[Statement] = []
        if divided.by == "rows":
            self.first, self.last = "first", "last"
            body = self._program(divided.body)
            self.first, self.last = "0", COUNT
            if isinstance(divided.body[0], steps.TakeRows):
                before = [body.pop(0)]
            bounds = {"first": f"{COUNT} * part / parts", "last": f"{COUNT} * (part + 1) / parts"}
            body = [*(f"const long long {name} = {bound};" for name, bound in bounds.items()), *body]
        elif divided.body == (steps.Update(),):
            body = [
                "const long long vectors = (ROOM + LANES - 1) / LANES;",
                "const long long first = vectors * part / parts * LANES;",
                "const long long last = vectors * (part + 1) / parts * LANES;",
                _update_span("first, last"),
            ]
            after = [_UPDATED]
        else:
            body = self._program(divided.body)
        if divided not in self.shares:
            taken = ("struct training *t", f"UNUSED long long {COUNT}", "long long part", "long long parts")
            name = f"share{len(self.shares)}"
            self.shares[divided] = Function("static void", name, taken, ["number *const w = t->w;", *body])
        return [*before, f"divide(&t->crew, {self.shares[divided].name}, t, {COUNT});", *after]

    def _place(self, place: Place) -> str:
        return f"w + {spelled(self.step, place)}"

    _WRITERS: ClassVar[dict[type[steps.Statement], Callable[..., list[Statement]]]] = {
        steps.Action: _act,
        steps.Take: _move,
        steps.Give: _move,
        steps.TakeRows: _take_rows,
        steps.Perform: _perform,
        steps.Guard: _guard,
        steps.Update: _update,
        steps.Copy: _copy,
        steps.If: _if,
        steps.EachRow: _each_row,
        steps.Divided: _divided,
    }
