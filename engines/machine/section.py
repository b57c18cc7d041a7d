"""The sections of a step -> machine code, one or a few instructions for each statement.

Each section is a function without arguments that returns 1 in RAX, or 0 if a loss is not finite. `W` and `T` hold the
workspace and the state of training. A statement's method is in `WRITERS`, as in the C back end.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import ClassVar, Union

from zoomgrad.engines.machine.buffers.copies import COPY, RECTANGLE, copy_doubles, rectangles
from zoomgrad.engines.machine.buffers.functions import DESCEND, go_on
from zoomgrad.engines.machine.buffers.rows import READ_ROW
from zoomgrad.engines.machine.encode import R8, R9, R14, RAX, RBP, RCX, RDI, RSI, Mem, Reg, Vec
from zoomgrad.engines.machine.lists import LIST_INPUTS, Lists, point_to_list
from zoomgrad.engines.machine.target import BASE, W, Word, word
from zoomgrad.engines.rerolled.rearrange.rows import of_first_row
from zoomgrad.engines.rerolled.recover.loops import Access, Copy
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.language import Fact, Place, Program

_BUFFERS = {"inputs": Word.X, "outputs": Word.Y, "parameters": Word.P, "gradients": Word.Q}


class Section(Lists):
    """Writes sections."""

    def write(self, name: str) -> None:
        """Write the section of that name as a function."""
        self.code.label(name)
        if self.step.own:
            self.code.integer("mov", BASE, W)
        self._program(self.step.programs[name])
        self._return(1)

    def _return(self, value: int) -> None:
        self.code.integer("mov", RAX, value)
        self.code.plain("ret")

    def _program(self, program: Program) -> None:
        for statement in program:
            self.WRITERS[statement if isinstance(statement, steps.Action) else type(statement)](self, statement)

    # --- rows --------------------------------------------------------------------------------------------------------

    def _take_row(self, _: steps.Action) -> None:
        self.code.integer("lea", RDI, Mem(W, 8 * self.step.area("x").start))
        self.code.integer("mov", RAX, word(Word.ROW))
        self.code.call(READ_ROW)

    def _take_rows(self, statement: steps.TakeRows) -> None:
        """Take as many rows as are left in the batch and in the stretch, up to the statement's number."""
        code = self.code
        code.integer("mov", RCX, statement.rows)
        for total, done in ((Word.STEPS, Word.STEP), (Word.BATCH, Word.TAKEN)):
            code.integer("mov", RAX, word(total))
            code.integer("sub", RAX, word(done))
            with code.unless("ge", RAX, RCX):
                code.integer("mov", RCX, RAX)
        code.integer("mov", word(Word.COUNT), RCX)
        with code.counted_up(word(Word.CURRENT), word(Word.COUNT)):
            self._address(RDI, statement.to)
            code.integer("mov", RAX, word(Word.ROW))
            code.integer("add", RAX, word(Word.CURRENT))
            code.integer("mov", RCX, word(Word.ROWS))
            with code.repeated() as end:  # rows wrap around, and a stretch may have fewer than are taken together
                code.jump(end, "l", RAX, RCX)
                code.integer("sub", RAX, RCX)
            code.call(READ_ROW)
            if statement.lists:
                self._address(RSI, of_first_row(self.step, self.first))
                point_to_list(code, self.step, RDI, word(Word.CURRENT))
                code.call(LIST_INPUTS)

    def _each_row(self, statement: steps.EachRow) -> None:
        code, own = self.code, self.step.own
        assert own
        code.integer("mov", RAX, word(Word.COUNT))
        if statement.last:
            code.integer("sub", RAX, 1)
            code.integer("mov", word(Word.CURRENT), RAX)
            self._program(statement.body)
            return
        with code.unless("le", RAX, 0), code.counted_up(word(Word.CURRENT), word(Word.COUNT)):
            code.integer("imul", BASE, word(Word.CURRENT), 8 * own.per_row)
            code.integer("lea", BASE, Mem(BASE, 8 * own.base, W))
            self._program(statement.body)

    # --- passes ------------------------------------------------------------------------------------------------------

    def _perform(self, statement: steps.Perform) -> None:
        self.code.call(statement.routine)

    def _guard(self, statement: steps.Guard) -> None:
        """Record the loss; if it is finite, go on to the next row."""
        code = self.code
        loss, rest = Vec(0, 8), Vec(1, 8)
        self.evaluator.load(loss, Mem(self.base, 8 * self.step.loops.loss.base))
        code.integer("mov", RAX, word(Word.LOSSES))
        code.integer("mov", RCX, word(Word.STEP))
        self.evaluator.store(Mem(RAX, 0, RCX, 8), loss)
        code.vector("vsubsd", rest, loss, loss)  # NaN unless the loss is finite
        code.vector("vucomisd", rest, None, rest)
        with code.unless("np"):
            if statement.otherwise:
                code.integer("mov", RAX, word(Word.CURRENT))
                code.integer("mov", word(Word.COUNT), RAX)
            self._program(statement.otherwise)
            self._return(0)
        code.integer("add", word(Word.STEP), 1)
        go_on(code, word(Word.ROW), word(Word.ROWS))

    # --- copies ------------------------------------------------------------------------------------------------------

    def _move(self, statement: Union[steps.Take, steps.Give]) -> None:
        """Copy between a buffer of the caller's and the workspace."""
        code, step, what = self.code, self.step, statement.what
        takes = isinstance(statement, steps.Take)
        caller, own = (R8, R9) if takes else (R9, R8)
        if what == "numbers":
            code.integer("lea", caller, code.constant(struct.pack(f"<{len(step.loops.numbers)}d", *step.loops.numbers)))
        else:
            code.integer("mov", caller, word(_BUFFERS[what]))
        code.integer("lea", own, Mem(W, 8 * step.loops.gradient_offset * (what == "gradients")))
        table = b"".join(rectangles(copy, takes) for copy in self._copies(what))
        if table:
            code.integer("lea", RBP, code.constant(table))
            code.integer("mov", R14, len(table) // RECTANGLE)
            code.call(COPY)

    def _copies(self, what: str) -> Sequence[Copy]:
        """The places of a buffer's numbers, or of the numbers that loops read, in the workspace."""
        loops = self.step.loops
        if what in ("inputs", "numbers"):
            count, area = (loops.inputs, "x") if what == "inputs" else (len(loops.numbers), "k")
            return [Copy((1, count), Access(loops.area(area).start, (0, 1)), Access(0, (0, 1)))]
        return loops.output_copies if what == "outputs" else loops.copies

    def _copy(self, statement: steps.Copy) -> None:
        self._address(RSI, statement.source)
        self._address(RDI, statement.to)
        self.code.integer("mov", RCX, statement.size)
        copy_doubles(self.evaluator)

    def _address(self, to: Reg, place: Place) -> None:
        self.code.integer("lea", to, Mem(W, 8 * place.base))
        if place.per_row:
            self.code.integer("imul", RAX, word(Word.CURRENT), 8 * place.per_row)
            self.code.integer("add", to, RAX)

    # --- updates -----------------------------------------------------------------------------------------------------

    def _next_rate(self, _: steps.Action) -> None:
        self.code.integer("mov", RAX, word(Word.RATES))
        self.code.integer("mov", RCX, Mem(RAX))
        self.code.integer("mov", word(Word.RATE), RCX)
        self.code.integer("add", word(Word.RATES), 8)
        if any(run.due for runs in self.step.routines.values() for run in runs):
            width = self.evaluator.registers.width
            rate = Vec(0, 8 * width)
            self.evaluator.spread(rate, word(Word.RATE))
            self.code.vector("vmulpd", rate, rate, self.evaluator.constant(-1.0, width))
            self.evaluator.store(word(Word.MINUS_RATE), rate)

    def _update(self, statement: steps.Update) -> None:
        """Update parameters, and clear their gradients in the same pass."""
        code, p, q = self.code, self.step.area("p"), self.step.area("q")
        spans = [(0, p.stop - p.start)]
        if statement.but is not None:
            loop = self.step.loops.loops[statement.but]
            first, stop = (place - q.start for place in loop.target.extent(loop.counts))
            spans = [(0, first), (stop, p.stop - p.start)]
        for start, stop in spans:
            if start < stop:
                code.integer("lea", RSI, Mem(W, 8 * (p.start + start)))
                code.integer("lea", RDI, Mem(W, 8 * (q.start + start)))
                self.evaluator.load(Vec(0, 8), word(Word.RATE))
                self.evaluator.load(Vec(1, 8), word(Word.SIZE))
                code.integer("mov", RCX, stop - start)
                code.call(DESCEND)
        code.integer("mov", word(Word.ZERO), 1)

    def _set_due(self, action: steps.Action) -> None:
        self.code.integer("mov", word(Word.DUE), int(action == steps.SET_DUE))

    # --- control -----------------------------------------------------------------------------------------------------

    def _if(self, statement: steps.If) -> None:
        code, otherwise, end = self.code, self.code.new_label(), self.code.new_label()
        self._unless(statement.condition, otherwise)
        self._program(statement.then)
        if statement.otherwise:
            code.jump(end)
        code.label(otherwise)
        self._program(statement.otherwise)
        code.label(end)

    def _unless(self, condition: Fact, label: str) -> None:
        """Jump to the label unless the condition holds."""
        code = self.code
        rows = word(Word.COUNT) if self.step.own else 1
        if condition == Fact.DUE:
            code.jump(label, "ne", word(Word.DUE), 1)
        elif condition == Fact.ALONE:
            code.integer("mov", RAX, rows)
            code.jump(label, "ne", RAX, word(Word.BATCH))
            code.jump(label, "ne", word(Word.ZERO), 1)
        elif condition == Fact.ENDS:
            code.integer("mov", RAX, rows)
            code.integer("add", RAX, word(Word.TAKEN))
            code.integer("mov", word(Word.TAKEN), RAX)
            code.jump(label, "l", RAX, word(Word.BATCH))
            code.integer("mov", word(Word.TAKEN), 0)
        elif condition == Fact.EVERY_INPUT:
            code.jump(label, "ne", Mem(W, 8 * self.step.area("lists").start), self.count)
        else:
            assert condition == Fact.UNBOUNDED
            self.compare(word(Word.BOUND))
            code.jump(label, "a")

    WRITERS: ClassVar[dict[Union[steps.Action, type[steps.Statement]], Callable[..., None]]] = {
        **Lists.WRITERS,
        steps.TAKE_ROW: _take_row,
        steps.TakeRows: _take_rows,
        steps.Take: _move,
        steps.Give: _move,
        steps.Perform: _perform,
        steps.Guard: _guard,
        steps.NEXT_RATE: _next_rate,
        steps.Update: _update,
        steps.Copy: _copy,
        steps.SET_DUE: _set_due,
        steps.CLEAR_DUE: _set_due,
        steps.If: _if,
        steps.EachRow: _each_row,
    }
