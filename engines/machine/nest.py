"""Run -> loops in machine code: lanes in vectors, and blocks of sums that stay in registers.

`rerolled/emit/c_nest` defines strips, blocks and tiles. Lanes add in the order of the listing, so C has the same bits.

Example: `for i<16: v[i] = p[i] + sum(t<90: p[16 + i + 16*t] * x[t])` in vectors of 8, the first loop of
`mlp-90x16x10`. A round of the loop adds two terms. One pointer goes through `p` by 16 places a term, and another one
through `x` by 1:

        vmovupd zmm0, [rbx + 896]                  p[i], lanes 0 to 7
        vmovupd zmm1, [rbx + 960]                  lanes 8 to 15
        lea rsi, [rbx + 1024]
        lea rdi, [rbx]
        mov r8, 45
    l1:
        vbroadcastsd zmm2, [rdi]                   x[t]
        vmulpd zmm3, zmm2, [rsi]                   p[16 + i + 16*t], lanes 0 to 7
        vaddpd zmm0, zmm0, zmm3
        vmulpd zmm3, zmm2, [rsi + 64]              lanes 8 to 15
        vaddpd zmm1, zmm1, zmm3
        …                                          the second term
        add rsi, 256
        add rdi, 16
        sub r8, 1
        jne l1
        vmovupd [rbx + 14720], zmm0
        vmovupd [rbx + 14784], zmm1
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import chain
from typing import Any, Optional, Union

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.machine.across import Across, widths_across
from zoomgrad.engines.machine.block import RESERVE, Block, Source
from zoomgrad.engines.machine.encode import R14, RAX, RCX, Assembler, Mem, Reg
from zoomgrad.engines.machine.expression import Evaluator
from zoomgrad.engines.machine.libm.powers import powers_match_libm
from zoomgrad.engines.machine.lists import ENTRIES, point_to_list
from zoomgrad.engines.machine.registers import Known, OutOfRegisters, Registers
from zoomgrad.engines.machine.target import ALTERNATIVE, BASE, W, Word, word
from zoomgrad.engines.rerolled.form import Form, Strips, Vector, accesses, heights, steps_of, strips_of, with_a_lane
from zoomgrad.engines.rerolled.recover.loops import Access, Loop
from zoomgrad.engines.rerolled.recover.loops import Operand as LoopOperand
from zoomgrad.engines.rerolled.recover.nest import Stride
from zoomgrad.engines.rerolled.step.language import Panel, Run
from zoomgrad.engines.rerolled.step.series import Count
from zoomgrad.engines.rerolled.step.step import Step

ROUND = R14
"""Counts the rounds of a series. A function of libm restores it."""


class Writer(Evaluator):
    """Writes runs, and evaluates their terms."""

    def __init__(self, code: Assembler, step: Step, form: Form) -> None:
        registers = Registers(code, form.width, (BASE,) if step.own else ())
        super().__init__(registers, fast=form.is_fast, powers=powers_match_libm())
        self.step = step
        self.form = form

    def write(self, run: Run) -> None:
        """Write the instructions of a run, after its text."""
        self.code.comment(lambda: f"{run}: {self.step.line(run)}")
        if not run.rounds:
            self._loop(run, run.loop if run.loop.counts else with_a_lane(run.loop))
            return
        addresses = self.registers.reserved
        self.registers.reserved = (*addresses, ROUND)
        self.registers.reset()
        with self.code.counted_up(ROUND, run.rounds[0].counts[0]):
            for loop in run.rounds:
                self._loop(run, loop)
        self.registers.reserved = addresses
        self.registers.reset()

    def _loop(self, run: Run, loop: Loop) -> None:
        """Write a loop, in smaller blocks if its terms need more registers than there are."""
        start = self.code.place()
        for part in (1, 2, 4, 8, 16):
            try:
                return self._blocks(run, loop, part)
            except OutOfRegisters:
                self.code.back_to(start)
                self.registers.reset()
        raise Unavailable("a loop needs more registers than the processor has", ALTERNATIVE)

    def _blocks(self, run: Run, loop: Loop, part: int) -> None:
        """part: blocks have at most 1/part of the sums that registers usually hold."""
        if self.form.calls(loop):
            self.registers.prefer_kept()
            self.code.plain("vzeroupper")
        across = widths_across(run, loop, self.form) if part == 1 else []
        for tall, strips in strips_of(run, loop, self.form, part, across):
            nest = Nest(self, run, loop, strips, tall, part)
            if run.rows > 1:
                nest.write_tiles()
            else:
                nest.write(Across if across and strips.widths[0] > 1 else Block)


class Nest:
    """Loops over lanes around a block."""

    def __init__(self, writer: Writer, run: Run, loop: Loop, strips: Strips, most: int, part: int) -> None:
        """most: the most vectors of a block, or the rows of a tile. part: as for `Writer._blocks`."""
        self.writer = writer
        self.part = part
        self.code = writer.code
        self.run = run
        self.loop = loop
        self.strips = strips
        self.registers = writer.registers
        self.calls = writer.form.calls(loop)
        self.limits, self.steps = steps_of(run, loop, strips, most)
        self.packed: Optional[LoopOperand] = None
        """The operand whose lanes of this strip are in the panel."""
        self.index: list[Optional[Reg]] = [None] * len(self.limits)
        """The register that holds the current index of each lane count, if it moves."""
        if run.rounds:
            self.index[0] = ROUND

    # --- loops over lanes --------------------------------------------------------------------------------------------

    def write(self, block: type[Block]) -> None:
        """Write the nest of a run over one row."""
        lanes = self.strips.block(len(self.limits), self.steps[-2] if len(self.limits) > 1 else 1)
        values = chain([self.rate] if self.run.takes_rate else [], self._invariants(lanes))
        # If registers ran out, fewer sums are tried, with more registers free.
        with self.writer.fixed(values, reserve=(RESERVE + 2) * self.part):
            self._over_lanes(block(self, lanes).write)

    @property
    def rate(self) -> Known:
        """The rate of an update in place, or minus the rate of a deferred update, which so adds and has the weight, its
        second operand, in memory."""
        width = self.strips.widths[0]
        return Known(word(Word.MINUS_RATE), 8 * width) if self.run.due else Known(word(Word.RATE), 8 * width, width > 1)

    def _invariants(self, lanes: Sequence[Vector]) -> Iterator[Known]:
        """The values that no loop over lanes changes, to be read before it. Nothing if the nest has loops over terms,
        which need the registers, or calls, which save and restore them."""
        moved = [level for level in range(len(self.limits)) if self._moves(level)]
        if not moved or self.calls or any(segment.counts for segment in self.loop.segments):
            return
        for access in accesses(self.loop):
            if not any(access.lanes[level] for level in moved):
                source = self.source(access, ())
                yield from (source.value(each, 0, each.width) for each in lanes)

    def _moves(self, level: int) -> bool:
        """Whether a loop, not the block alone, goes over a lane count."""
        limit = self.limits[level]
        is_loop = limit > self.steps[level] or isinstance(limit, Count)
        return self.index[level] is not None or level == self.run.live_lane or is_loop

    def _over_lanes(self, body: Callable[[], None]) -> None:
        """Loops over the lane counts that neither ROUND nor tiles move."""
        with ExitStack() as loops:
            for level in range(len(self.limits)):
                if self.index[level]:
                    continue
                if level == self.run.live_lane:
                    self.index[level] = loops.enter_context(self.listed())
                    loops.callback(self.index.__setitem__, level, None)
                elif self._moves(level):
                    loops.enter_context(self._counted(level))
            body()

    @contextmanager
    def _counted(self, level: int) -> Iterator[None]:
        with self.registers.scope():
            index, limit = self.registers.integer(), self.limits[level]
            stop = self._count(limit) if isinstance(limit, Count) else limit
            self.index[level] = index
            with self.code.counted_up(index, stop, self.steps[level]):
                yield
            self.index[level] = None

    def _count(self, count: Union[int, Mem]) -> Reg:
        """A register with a count."""
        register = self.registers.integer()
        self.code.integer("mov", register, count if isinstance(count, Mem) else int(count))
        if isinstance(count, Count):
            self._add_moved(register, ROUND, count.change, 1)
        return register

    @contextmanager
    def counted_down(self, count: Union[int, Mem]) -> Iterator[None]:
        """A loop that runs as often as a count says. A count in memory, of rows, may be 0."""
        with self.registers.scope():
            counter = self._count(count)
            may_be_empty = self.code.unless("e", counter, 0) if isinstance(count, Mem) else nullcontext()
            with may_be_empty, self.code.counted_down(counter):
                yield

    def write_tiles(self) -> None:
        """Write the nest of a run over rows taken together: tiles of each height.

        The last lane count but one is the rows; for a sink it is the inputs, and the rows are its terms.
        """
        code = self.code
        with ExitStack() as loops:
            loops.enter_context(self.registers.scope())
            if self.strips.repeats > 1:
                loops.enter_context(self._counted(len(self.limits) - 1))
            if self.run.in_strips:
                loops.enter_context(self._counted(0))
            if self.run.panel and self.strips.widths[0] > 1:
                with self.registers.scope():
                    self._pack(self.run.panel)
            index = self.index[-2] = self.registers.integer()
            code.integer("mov", index, 0)
            inputs = left = self.limits[-2]
            for step in heights(self.steps[-2]):
                if self.run.sums_rows and left < step:
                    continue
                left %= step
                with code.repeated() as end:
                    code.integer("lea", RAX, Mem(index, step))
                    code.jump(end, "g", RAX, inputs if self.run.sums_rows else word(Word.COUNT))
                    skips = self.run.is_live and self.run.sums_rows
                    with code.unless("e", self._rows_of_input(), 0) if skips else nullcontext():
                        self._over_lanes(Block(self, self.strips.block(len(self.limits), step)).write)
                    code.integer("add", index, step)

    def _pack(self, panel: Panel) -> None:
        """Copy this strip's lanes of an operand to the panel, term by term."""
        code, registers, segment = self.code, self.registers, self.loop.segments[panel.segment]
        operand = self.packed = segment.operands[panel.slot]
        assert isinstance(operand, Access)
        strides: Any = operand.terms[0], operand.lanes[-1]
        term, apart = strides
        assert self.strips.lanes <= self.writer.form.strip
        source, to = registers.integer(), registers.integer()
        self._point(source, operand)
        code.integer("lea", to, Mem(W, 8 * panel.base))
        with self.counted_down(word(Word.COUNT) if self.run.sums_rows else segment.counts[0]):
            for (*_, first), lanes in self.strips.block(len(self.limits), 1):
                width = lanes if apart == 1 else 1  # lanes apart are copied singly
                for at in range(first, first + lanes, width):
                    vector = registers.vector(width)
                    self.writer.load(vector, Mem(source, 8 * apart * at))
                    self.writer.store(Mem(to, 8 * (at - self.strips.at)), vector)
                    registers.release(vector)
            code.integer("add", source, 8 * term)
            code.integer("add", to, 8 * self.strips.lanes)

    @contextmanager
    def listed(self) -> Iterator[Reg]:
        """A loop over a list, or over the bits of a mask: the register holds one input, or row, after the other."""
        code = self.code
        with self.registers.scope():
            entries, entry = self.registers.integer(), self.registers.integer()
            if self.run.sums_rows:  # the bits of a mask, of which each round clears the lowest
                again = code.new_label()
                code.integer("mov", entries, self._rows_of_input())
                code.label(again)
                code.integer("tzcnt", entry, entries)
                yield entry
                code.integer("lea", RAX, Mem(entries, -1))
                code.integer("and", entries, RAX)
                code.jump(again, "ne")
                return
            at = self.registers.integer()
            point_to_list(code, self.writer.step, entries, self.index[0] if self.run.rows > 1 else None)
            with code.unless("e", Mem(entries), 0), code.counted_up(at, Mem(entries)):
                code.integer("movsxd", entry, Mem(entries, ENTRIES, at, 4))
                yield entry

    def _rows_of_input(self) -> Mem:
        """The mask of the rows that do not skip the current input."""
        return Mem(W, 8 * self.writer.step.area("turned").start, self.index[0], 8)

    # --- addresses ---------------------------------------------------------------------------------------------------

    def _moving(self, lanes: Sequence[Stride]) -> list[tuple[Reg, Stride]]:
        """The lane counts that move an access: the register of each, and its stride."""
        return [(index, stride) for index, stride in zip(self.index, lanes) if index and stride]

    def _point(self, to: Reg, access: Access) -> Source:
        """Compute the address of an access for the current lanes."""
        self.code.integer("lea", to, Mem(self._base(access), 8 * access.base))
        for index, stride in self._moving(access.lanes):
            self._add_moved(to, index, stride, 8)
        return Source(to, 0, access.lanes)

    def _add_moved(self, to: Reg, index: Reg, stride: Stride, size: int) -> None:
        """Add a stride times an index, or an offset from a list, in units of that many bytes."""
        code = self.code
        if isinstance(stride, tuple):
            code.integer("lea", RAX, self._offsets(stride))
            code.integer("movsxd", RAX, Mem(RAX, 0, index, 4))
            code.integer("lea", to, Mem(to, 0, RAX, size))
        elif stride == 1:
            code.integer("lea", to, Mem(to, 0, index, size))
        else:
            code.integer("imul", RAX, index, size * stride)
            code.integer("add", to, RAX)

    def _simple(self, access: Access) -> Optional[Source]:
        """The source of an access that needs no pointer: nothing moves it, or one lane count by one place."""
        moving = self._moving(access.lanes)
        if not moving:
            return Source(self._base(access), 8 * access.base, access.lanes)
        if len(moving) == 1 and moving[0][1] == 1:
            return Source(self._base(access), 8 * access.base, access.lanes, index=moving[0][0], scale=8)
        return None

    def _base(self, access: Access) -> Reg:
        """The register with the address of place 0 of the access."""
        return BASE if self.run.rows == 1 and self.writer.step.is_own(access.base) else W

    def target(self) -> Source:
        """Where the sums are stored. RCX may hold its address for the next instructions."""
        return self._simple(self.loop.target) or self._point(RCX, self.loop.target)

    def source(self, operand: Access, counts: Sequence[int]) -> Source:
        """An operand of a segment with these counts; its pointers are taken from the pool."""
        if self.run.panel and operand is self.packed:
            pointer = self.registers.integer()
            self.code.integer("lea", pointer, Mem(W, 8 * (self.run.panel.base - self.strips.at)))
            return Source(pointer, 0, (*[0] * (len(self.limits) - 1), 1), terms=(self.strips.lanes,))
        moves = any(stride and count > 1 for stride, count in zip(operand.terms, counts))
        if not moves and (simple := self._simple(operand)):
            return simple
        source = self._point(self.registers.integer(), operand)
        offsets = operand.terms[0] if operand.terms else 0
        if isinstance(offsets, tuple):
            source.list, source.index, source.scale = self.registers.integer(), RAX, 8
            self.code.integer("lea", source.list, self._offsets(offsets))
        else:
            source.terms = operand.terms
        return source

    def _offsets(self, numbers: Sequence[int]) -> Mem:
        return self.code.constant(struct.pack(f"<{len(numbers)}i", *numbers))
