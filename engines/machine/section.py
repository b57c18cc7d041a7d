"""The sections `turn` and `evaluate` of a step -> machine code, one or a few instructions for each statement.

Each section is a function without arguments that returns 1 in RAX, or 0 if a loss is not finite. `W` and `T` hold the
workspace and the state of training. A statement's method is in `_WRITERS`, as in the C back end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import ClassVar, Union

from zoomgrad.engines.columns import BYTES
from zoomgrad.engines.machine.encode import R8, R9, R10, RAX, RCX, RDI, RDX, RSI, RSP, Assembler, Mem, Reg, Vec
from zoomgrad.engines.machine.expression import Evaluator
from zoomgrad.engines.machine.lists import LIST_EVERY, LIST_INPUTS, Lists
from zoomgrad.engines.machine.registers import Registers
from zoomgrad.engines.machine.target import CALLEE_SAVED, COLUMN_BYTES, Column, T, Target, W, Word, word
from zoomgrad.engines.rerolled.recover.loops import Access, Operand
from zoomgrad.engines.rerolled.step import language as steps
from zoomgrad.engines.rerolled.step.language import Condition, Fact, Place, Program
from zoomgrad.engines.rerolled.step.step import Step

READ_ROW = "read_row"
"""The routine that reads row RAX of the columns to the address in RDI."""
_COMPARISONS: dict[Condition, list[tuple[Word, int, str]]] = {
    Fact.DUE: [(Word.DUE, 1, "ne")],
    Fact.ALONE: [(Word.BATCH, 1, "ne"), (Word.ZERO, 1, "ne")],
    Fact.BATCHED: [(Word.BATCH, 2, "l")],
}
"""A fact -> words, numbers, and the jump if a comparison fails."""


class Section:
    """Writes the statements of a section."""

    def __init__(self, code: Assembler, step: Step, target: Target) -> None:
        self.code = code
        self.step = step
        self.target = target
        self.evaluator = Evaluator(code, target, Registers(target, code))
        self.lists = Lists(code, step, target, self.evaluator) if step.skips else None

    def write(self, name: str) -> None:
        """Write the section of that name as a function."""
        self.code.label(name)
        self._program(self.step.programs[name])
        self._return(1)

    def _return(self, value: int) -> None:
        self.code.integer("mov", RAX, value)
        self.code.plain("ret")

    def _program(self, program: Program) -> None:
        for statement in program:
            if type(statement) not in self._WRITERS:
                raise NotImplementedError(f"machine code has no {type(statement).__name__}: add it to Section._WRITERS")
            self._WRITERS[type(statement)](self, statement)

    # --- rows --------------------------------------------------------------------------------------------------------

    def _take_row(self, _: steps.TakeRow) -> None:
        self.code.integer("mov", RDI, W)
        self.code.integer("mov", RAX, word(Word.ROW))
        self.code.call(READ_ROW)

    def _take_rows(self, statement: steps.TakeRows) -> None:
        """Take as many rows as are left in the batch and in the stretch, up to the statement's number."""
        code, again = self.code, self.code.new_label()
        code.integer("mov", RCX, statement.rows)
        for total, done in ((Word.STEPS, Word.STEP), (Word.BATCH, Word.TAKEN)):
            fits = code.new_label()
            code.integer("mov", RAX, word(total))
            code.integer("mov", RSI, word(done))
            code.integer("sub", RAX, RSI)
            code.integer("cmp", RAX, RCX)
            code.jump(fits, "ge")
            code.integer("mov", RCX, RAX)
            code.label(fits)
        code.integer("mov", word(Word.COUNT), RCX)
        code.integer("mov", word(Word.CURRENT), 0)
        code.label(again)
        self._address(RDI, statement.to)
        code.integer("mov", RAX, word(Word.ROW))
        code.integer("add", RAX, word(Word.CURRENT))
        self._wrap(RAX)
        code.call(READ_ROW)
        self._next_current(again)

    def _wrap(self, row: Reg) -> None:
        """Rows wrap around; a stretch may have fewer rows than are taken together."""
        code, again, end = self.code, self.code.new_label(), self.code.new_label()
        code.integer("mov", RCX, word(Word.ROWS))
        code.label(again)
        code.integer("cmp", row, RCX)
        code.jump(end, "l")
        code.integer("sub", row, RCX)
        code.jump(again)
        code.label(end)

    def _next_current(self, again: str) -> None:
        self.code.integer("add", word(Word.CURRENT), 1)
        self.code.integer("mov", RAX, word(Word.CURRENT))
        self.code.integer("cmp", RAX, word(Word.COUNT))
        self.code.jump(again, "l")

    def _each_row(self, statement: steps.EachRow) -> None:
        code, again, end = self.code, self.code.new_label(), self.code.new_label()
        if statement.last:
            code.integer("mov", RAX, word(Word.COUNT))
            code.integer("sub", RAX, 1)
            code.integer("mov", word(Word.CURRENT), RAX)
            self._program(statement.body)
            return
        code.integer("mov", word(Word.CURRENT), 0)
        code.integer("mov", RAX, word(Word.COUNT))
        code.integer("cmp", RAX, 0)
        code.jump(end, "le")
        code.label(again)
        self._program(statement.body)
        self._next_current(again)
        code.label(end)

    def _keep_earlier(self, _: steps.KeepEarlier) -> None:
        self.code.integer("mov", RAX, word(Word.CURRENT))
        self.code.integer("mov", word(Word.COUNT), RAX)

    # --- passes ------------------------------------------------------------------------------------------------------

    def _perform(self, statement: steps.Perform) -> None:
        self.code.call(statement.routine)

    def _guard(self, statement: steps.Guard) -> None:
        """Record the loss; if it is finite, go on to the next row."""
        code, finite, same = self.code, self.code.new_label("finite"), self.code.new_label()
        loss, rest = Vec(0, 8), Vec(1, 8)
        self.evaluator.load(loss, self._single(self.step.loops.loss))
        code.integer("mov", RAX, word(Word.LOSSES))
        code.integer("mov", RCX, word(Word.STEP))
        self.evaluator.store(Mem(RAX, 0, RCX, 8), loss)
        code.vector("vsubsd", rest, loss, loss)  # NaN unless the loss is finite
        code.vector("vucomisd", rest, None, rest)
        code.jump(finite, "np")
        self._program(statement.otherwise)
        self._return(0)
        code.label(finite)
        code.integer("add", word(Word.STEP), 1)
        code.integer("mov", RAX, word(Word.ROW))
        code.integer("add", RAX, 1)
        code.integer("cmp", RAX, word(Word.ROWS))
        code.jump(same, "ne")
        code.integer("mov", RAX, 0)
        code.label(same)
        code.integer("mov", word(Word.ROW), RAX)

    def _single(self, operand: Operand) -> Mem:
        if isinstance(operand, float):
            return self.evaluator.constant(operand, 1)
        assert isinstance(operand, Access)
        return Mem(W, 8 * operand.base)

    def _give(self, statement: steps.Give) -> None:
        assert statement.what == "outputs", statement
        code, number = self.code, Vec(0, 8)
        code.integer("mov", RAX, word(Word.STEP))
        code.integer("imul", RAX, word(Word.OUTPUTS_APART))
        code.integer("add", RAX, word(Word.OUTPUTS))
        for at, output in enumerate(self.step.loops.outputs):
            self.evaluator.load(number, self._single(output))
            self.evaluator.store(Mem(RAX, 8 * at), number)

    def _copy(self, statement: steps.Copy) -> None:
        self._address(RSI, statement.source)
        self._address(RDI, statement.to)
        width, size = self.target.width, statement.size
        self._loop(size // width, lambda: self._copy_vectors([width]), (RSI, RDI), 8 * width)
        rest = [1 << bit for bit in (2, 1, 0) if size % width >> bit & 1]
        self._copy_vectors(rest)

    def _copy_vectors(self, widths: Sequence[int]) -> None:
        at = 0
        for width in widths:
            register = Vec(0, 8 * width)
            self.evaluator.load(register, Mem(RSI, at))
            self.evaluator.store(Mem(RDI, at), register)
            at += 8 * width

    def _loop(self, rounds: int, body: Callable[[], None], pointers: Sequence[Reg], by: int) -> None:
        """Run the body in rounds, and move the pointers on after each. RCX counts."""
        if not rounds:
            return
        self.code.integer("mov", RCX, rounds)
        with self.code.counted_down(RCX):
            body()
            for pointer in pointers:
                self.code.integer("add", pointer, by)

    def _address(self, to: Reg, place: Place) -> None:
        self.code.integer("lea", to, Mem(W, 8 * place.base))
        if place.per_row:
            self.code.integer("imul", RAX, word(Word.CURRENT), 8 * place.per_row)
            self.code.integer("add", to, RAX)

    # --- updates -----------------------------------------------------------------------------------------------------

    def _next_rate(self, _: steps.NextRate) -> None:
        self.code.integer("mov", RAX, word(Word.RATES))
        self.code.integer("mov", RCX, Mem(RAX))
        self.code.integer("mov", word(Word.RATE), RCX)
        self.code.integer("add", word(Word.RATES), 8)

    def _update(self, _: steps.Update) -> None:
        """Update all parameters, vector by vector, and clear the gradients in the same pass."""
        code, width = self.code, self.target.width
        p, q = self.step.area("p"), self.step.area("q")
        alone, end = code.new_label(), code.new_label()
        size, rate = Vec(2, 8 * width), Vec(1, 8 * width)
        self.evaluator.spread(rate, word(Word.RATE))
        self.evaluator.spread(size, word(Word.SIZE))
        code.integer("cmp", word(Word.BATCH), 1)
        code.jump(alone, "e")
        self._descend(p.start, q.start, (p.stop - p.start) // width, divided=True)
        code.jump(end)
        code.label(alone)
        self._descend(p.start, q.start, (p.stop - p.start) // width, divided=False)
        code.label(end)
        for index in self.step.loops.unused:
            self._update_unused(index)
        code.integer("mov", word(Word.ZERO), 1)

    def _descend(self, p: int, q: int, rounds: int, *, divided: bool) -> None:
        """`p -= rate * q`, or `rate * q / batch` if divided; then `q = 0`."""
        code, width = self.code, self.target.width
        change, rate, size, old = (Vec(number, 8 * width) for number in range(4))

        def body() -> None:
            code.vector("vmulpd", change, rate, Mem(RDI))
            if divided:
                code.vector("vdivpd", change, change, size)
            self.evaluator.load(old, Mem(RSI))
            code.vector("vsubpd", old, old, change)
            self.evaluator.store(Mem(RSI), old)
            self.evaluator.clear(change)
            self.evaluator.store(Mem(RDI), change)

        code.integer("lea", RSI, Mem(W, 8 * p))
        code.integer("lea", RDI, Mem(W, 8 * q))
        self._loop(rounds, body, (RSI, RDI), 8 * width)

    def _update_unused(self, index: int) -> None:
        """Update a parameter that the graph does not use, because the caller may have set its gradient."""
        code, change, old = self.code, Vec(0, 8), Vec(3, 8)
        code.integer("mov", RSI, word(Word.PARAMETERS))
        code.integer("mov", RDI, word(Word.GRADIENTS))
        self.evaluator.load(change, word(Word.RATE))
        code.vector("vmulsd", change, change, Mem(RDI, 8 * index))
        code.vector("vdivsd", change, change, word(Word.SIZE))
        self.evaluator.load(old, Mem(RSI, 8 * index))
        code.vector("vsubsd", old, old, change)
        self.evaluator.store(Mem(RSI, 8 * index), old)
        self.evaluator.clear(change)
        self.evaluator.store(Mem(RDI, 8 * index), change)

    def _clear_seeded(self, _: steps.ClearSeeded) -> None:
        assert isinstance(self.step.loops.loss, Access)
        self.code.integer("mov", Mem(W, 8 * (self.step.loops.loss.base + self.step.away)), 0)

    def _set(self, statement: steps.SetDue) -> None:
        self.code.integer("mov", word(Word.DUE), int(statement.value))

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

    def _unless(self, condition: Condition, label: str) -> None:
        """Jump to the label unless the condition holds."""
        code = self.code
        if isinstance(condition, steps.Both):
            self._unless(condition.first, label)
            self._unless(condition.second, label)
        elif condition == Fact.ENDS:
            self._unless_batch_ends(1, label)
        elif condition == Fact.ENDS_WITH_ROWS:
            self._unless_batch_ends(word(Word.COUNT), label)
        elif condition == Fact.UNBOUNDED:
            unbounded = code.new_label()
            self._about_lists().unless_bounded(unbounded)
            code.jump(label)
            code.label(unbounded)
        elif condition == Fact.EVERY_INPUT_OF_ROWS:
            self._about_lists().unless_all_listed(label)
        elif condition == Fact.EVERY_INPUT:
            self._list(RSI)
            code.integer("cmp", Mem(RSI), self._about_lists().count)
            code.jump(label, "ne")
        else:
            for which, wanted, jump in _COMPARISONS[condition]:
                code.integer("cmp", word(which), wanted)
                code.jump(label, jump)

    def _unless_batch_ends(self, rows: Union[int, Mem], label: str) -> None:
        code = self.code
        code.integer("mov", RAX, rows)
        code.integer("add", RAX, word(Word.TAKEN))
        code.integer("mov", word(Word.TAKEN), RAX)
        code.integer("cmp", RAX, word(Word.BATCH))
        code.jump(label, "l")
        code.integer("mov", word(Word.TAKEN), 0)

    # --- zeros -------------------------------------------------------------------------------------------------------

    def _about_lists(self) -> Lists:
        assert self.lists is not None
        return self.lists

    def _measure_weights(self, _: steps.MeasureWeights) -> None:
        self._about_lists().measure_weights()

    def _list_inputs(self, statement: steps.ListInputs) -> None:
        self.code.integer("lea", RSI, Mem(W, 8 * self._about_lists().first))
        self._list(RDI)
        self.code.call(LIST_EVERY if statement.every else LIST_INPUTS)

    def _list(self, to: Reg) -> None:
        self.code.integer("lea", to, Mem(W, 8 * self.step.area("live").start))

    def _list_rows(self, statement: steps.ListRows) -> None:
        self._about_lists().list_rows(statement.at)

    def _turn_lists(self, _: steps.TurnLists) -> None:
        self._about_lists().turn()

    def _check_factors(self, statement: steps.CheckFactors) -> None:
        lists = self._about_lists()

        def ends(label: str) -> None:
            self.code.integer("mov", RAX, word(Word.TAKEN))
            if statement.at is None:
                self.code.integer("add", RAX, 1)
            else:
                self.code.integer("add", RAX, word(Word.COUNT))
            self.code.integer("cmp", RAX, word(Word.BATCH))
            self.code.jump(label, "ne")

        def address() -> None:
            if statement.at is None:
                self._list(RDI)
            else:
                lists.list_of_row(RDI)

        lists.check_factors(statement.at, ends, address)

    def _end_turn(self, _: steps.EndTurn) -> None:
        self._return(1)

    _WRITERS: ClassVar[dict[type[steps.Statement], Callable[..., None]]] = {
        steps.TakeRow: _take_row,
        steps.TakeRows: _take_rows,
        steps.Give: _give,
        steps.Perform: _perform,
        steps.Guard: _guard,
        steps.NextRate: _next_rate,
        steps.Update: _update,
        steps.ClearSeeded: _clear_seeded,
        steps.Copy: _copy,
        steps.SetDue: _set,
        steps.If: _if,
        steps.EachRow: _each_row,
        steps.KeepEarlier: _keep_earlier,
        steps.MeasureWeights: _measure_weights,
        steps.ListInputs: _list_inputs,
        steps.ListRows: _list_rows,
        steps.TurnLists: _turn_lists,
        steps.CheckFactors: _check_factors,
        steps.EndTurn: _end_turn,
    }


def write_loop(code: Assembler, name: str, section: str) -> None:
    """Write the function that runs a section until all steps are done, or a loss is not finite. RDI: W; RSI: T."""
    again, end = code.new_label(), code.new_label()
    with function(code, name, room=8):
        code.label(again)
        code.call(section)
        code.integer("cmp", RAX, 0)
        code.jump(end, "e")
        code.integer("mov", RAX, word(Word.STEP))
        code.integer("cmp", RAX, word(Word.STEPS))
        code.jump(again, "l")
        code.label(end)


def write_call(code: Assembler, name: str, routine: str) -> None:
    """Write the function that runs a routine once. RDI: W; RSI: T."""
    with function(code, name, room=16):
        code.call(routine)


@contextmanager
def function(code: Assembler, name: str, room: int) -> Iterator[None]:
    """A function for callers from C. room: bytes of stack, so that routines begin at a multiple of 16."""
    code.label(name)
    for register in CALLEE_SAVED:
        code.stack("push", register)
    code.integer("sub", RSP, room)
    code.integer("mov", W, RDI)
    code.integer("mov", T, RSI)
    yield
    code.plain("vzeroupper")
    code.integer("add", RSP, room)
    for register in reversed(CALLEE_SAVED):
        code.stack("pop", register)
    code.plain("ret")


def write_read_row(code: Assembler, target: Target) -> None:
    """Write the routine that reads row RAX of the columns to the address in RDI, as kernel/rows.h does.

    RDX goes through the columns, R8 counts them, RSI goes through a row's data, RCX counts inputs.
    """
    evaluator = Evaluator(code, target, Registers(target, code))
    is_bytes, is_class, following = (code.new_label(stem) for stem in ("bytes", "class", "next"))
    code.label(READ_ROW)
    code.integer("mov", R10, RAX)
    code.integer("mov", RDX, word(Word.COLUMNS))
    code.integer("mov", R8, word(Word.COLUMN_COUNT))
    with code.counted_down(R8):
        code.integer("mov", RSI, _of_column(Column.ROW_BYTES))
        code.integer("imul", RSI, R10)
        code.integer("add", RSI, _of_column(Column.DATA))
        code.integer("mov", RCX, _of_column(Column.WIDTH))
        code.integer("cmp", _of_column(Column.KIND), BYTES)
        code.jump(is_bytes, "e")
        code.jump(is_class, "g")
        _copy_doubles(code, evaluator, target.width)
        code.jump(following)
        code.label(is_bytes)
        _divide_bytes(code, evaluator, target.width)
        code.jump(following)
        code.label(is_class)
        _spread_class(code, evaluator)
        code.label(following)
        code.integer("add", RDX, COLUMN_BYTES)
    code.plain("ret")


def _of_column(which: Column) -> Mem:
    return Mem(RDX, 8 * which)


def _in_steps(code: Assembler, step: int, body: Callable[[], None], from_bytes: int) -> None:
    """Run the body while at least that many of RCX inputs are left. from_bytes: bytes of an input in the data."""
    again, end = code.new_label(), code.new_label()
    code.label(again)
    code.integer("cmp", RCX, step)
    code.jump(end, "l")
    body()
    code.integer("add", RSI, from_bytes * step)
    code.integer("add", RDI, 8 * step)
    code.integer("sub", RCX, step)
    code.jump(again)
    code.label(end)


def _copy_doubles(code: Assembler, evaluator: Evaluator, width: int) -> None:
    def copy(register: Vec) -> None:
        evaluator.load(register, Mem(RSI))
        evaluator.store(Mem(RDI), register)

    for step in (width, 1):
        _in_steps(code, step, partial(copy, Vec(0, 8 * step)), 8)


def _divide_bytes(code: Assembler, evaluator: Evaluator, width: int) -> None:
    """`byte / divisor` for each byte, as a sum of two products where the column says so."""
    number, divisor, high, low = (Vec(register, 8 * width) for register in range(4))
    one, slow = Vec(0, 8), code.new_label()
    for register, which in ((divisor, Column.DIVISOR), (high, Column.HIGH), (low, Column.LOW)):
        evaluator.spread(register, _of_column(which))

    def vector() -> None:
        whole = Vec(0, 4 * width)
        code.vector("vpmovzxbd", whole, None, Mem(RSI))
        code.vector("vcvtdq2pd", number, None, whole)

    def in_products() -> None:
        vector()
        code.vector("vmulpd", Vec(4, 8 * width), number, low)
        code.vector("vmulpd", number, number, high)
        code.vector("vaddpd", number, number, Vec(4, 8 * width))
        evaluator.store(Mem(RDI), number)

    def divided() -> None:
        vector()
        code.vector("vdivpd", number, number, divisor)
        evaluator.store(Mem(RDI), number)

    def single() -> None:
        code.integer("movzx", RAX, Mem(RSI))
        code.vector("vcvtsi2sd", one, divisor._replace(size=8), RAX)
        code.vector("vdivsd", one, one, divisor._replace(size=8))
        evaluator.store(Mem(RDI), one)

    code.integer("cmp", _of_column(Column.HIGH), 0)
    code.jump(slow, "e")
    _in_steps(code, width, in_products, 1)
    code.label(slow)
    _in_steps(code, width, divided, 1)
    _in_steps(code, 1, single, 1)


def _spread_class(code: Assembler, evaluator: Evaluator) -> None:
    """A label becomes inputs that are all 0.0, except the label's own, which is 1.0."""
    zero, one, beyond = Vec(0, 8), Vec(1, 8), code.new_label()
    code.integer("movzx", RAX, Mem(RSI))
    code.integer("mov", R9, RDI)
    evaluator.clear(zero)
    _in_steps(code, 1, lambda: evaluator.store(Mem(RDI), zero), 0)
    code.integer("cmp", RAX, _of_column(Column.WIDTH))
    code.jump(beyond, "ge")
    evaluator.load(one, evaluator.constant(1.0, 1))
    evaluator.store(Mem(R9, 0, RAX, 8), one)
    code.label(beyond)
