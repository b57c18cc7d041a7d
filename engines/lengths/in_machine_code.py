"""The conductor in machine code: `take` of `conductor`, with the update of `lanes_in_machine_code` in the loop."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from operator import index
from typing import Any

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.graph.optimisers import Optimiser
from zoomgrad.engines.kernel.buffers import address
from zoomgrad.engines.kernel.library import Library, interface
from zoomgrad.engines.kernel.program import Doubles
from zoomgrad.engines.lengths.conductor import Conductor, Member
from zoomgrad.engines.lengths.lanes import Lanes, NoLanes, numbers
from zoomgrad.engines.lengths.lanes_in_machine_code import COPIES, UpdateWriter, Word
from zoomgrad.engines.machine import target
from zoomgrad.engines.machine.buffers.functions import function, go_on
from zoomgrad.engines.machine.encode import R12, RAX, RCX, RDI, RDX, RSI, Assembler, Mem, Vec
from zoomgrad.engines.machine.libm.powers import powers_match_libm
from zoomgrad.engines.machine.memory import Memory
from zoomgrad.engines.machine.target import ALTERNATIVE, T, W, word

SET_INPUT, FORWARD, BACKWARD, COLUMNS, COLUMN_COUNT, X, WORKSPACE, Y = (Mem(R12, 8 * at) for at in range(8))
"""The words of the member at R12: functions of kernel.h, and what they take."""
MEMBER_BYTES = 64


class ConductorInMachineCode(Conductor):
    """Takes the steps over kernels whose functions have addresses."""

    def __init__(
        self, optimiser: Optimiser, is_fast: bool, members: Sequence[Member], buffers: Sequence[Doubles]
    ) -> None:
        """Raises OutOfRegisters or Unavailable."""
        super().__init__(optimiser, members, buffers)
        self._columns, self._of_members, width = [], array("q"), target.native_width()
        for kernel, shape, x, w, y in members:
            if not isinstance(kernel, Library):  # of NumPy
                raise Unavailable("a kernel in Python has no addresses", ALTERNATIVE)
            functions = map(kernel.address, ("set_input", "forward", "backward"))
            described = kernel.described(shape.columns)
            self._columns.append(described)
            columns = int(interface().cast("uintptr_t", described[0]))
            self._of_members.extend((*functions, columns, len(shape.columns), *map(_word, (x, w, y))))
        start = _word(self._of_members)
        self._starts = array("q", [start + MEMBER_BYTES * number for number in self._member_numbers])
        for_all_calls = (self._starts, self._places, *buffers)  # the words from MEMBERS on
        self._words = words = array("q", [*[0] * Word.MEMBERS, *map(_word, for_all_calls)])
        copies = array("d", bytes(8 * COPIES * len(numbers(optimiser))))

        def function_of(is_single: bool) -> Callable[[], None]:
            """The code for batches of one step, which need no division, or for others."""
            code = write_take(optimiser, width, len(buffers[0]), is_single, is_fast)
            return Memory(code).bound(words, copies)

        self._function = cache(function_of)
        self._function(True)

    def take(self, *arguments: Any) -> int:
        self._words[: len(arguments)] = array("q", map(_word, arguments))
        self._function(self._words[Word.BATCH] == 1)()
        return self._words[Word.STEP]


def write_take(optimiser: Optimiser, width: int, count: int, is_single: bool, is_fast: bool) -> Assembler:
    """The function that takes the steps of a call. RDI: the words; RSI: the numbers of an update.

    Raises OutOfRegisters.
    """
    code, loss, after = Assembler(), Vec(0, 8), "after"
    one = update = Lanes(optimiser, 1, is_single=is_single, is_fast=is_fast)
    if is_fast or powers_match_libm():
        with suppress(NoLanes):  # then all parameters are updated one by one
            update = Lanes(optimiser, width, is_single=is_single, is_fast=is_fast)
    with function(code, "take", room=8):
        code.integer("mov", T, RDI)
        code.integer("mov", W, RSI)
        code.integer("mov", word(Word.STEP), 0)
        with code.repeated() as end:
            code.integer("mov", RAX, word(Word.STEP))
            code.jump(end, "ge", RAX, word(Word.STEPS))
            code.integer("mov", RCX, word(Word.ROW))
            for register, which in ((R12, Word.MEMBERS), (RCX, Word.PLACES)):
                code.integer("mov", RAX, word(which))
                code.integer("mov", register, Mem(RAX, 0, RCX, 8))
            _call(code, SET_INPUT, (X, COLUMNS, COLUMN_COUNT))
            _call(code, FORWARD, (X, word(Word.BUFFERS), WORKSPACE, Y))
            code.integer("mov", RAX, word(Word.LOSSES))
            code.integer("mov", RCX, word(Word.STEP))
            code.vector("vmovsd_store", loss, None, Mem(RAX, 0, RCX, 8))
            code.vector("vsubsd", loss, loss, loss)  # NaN unless the loss is finite
            code.vector("vucomisd", loss, None, loss)
            code.jump(end, "p")
            code.integer("add", word(Word.STEP), 1)
            code.jump(after, "e", word(Word.LEARNS), 0)
            _call(code, BACKWARD, (X, word(Word.BUFFERS), WORKSPACE, word(Word.BUFFERS + 1)))
            code.integer("mov", RAX, word(Word.TAKEN))
            code.integer("add", RAX, 1)
            code.integer("mov", word(Word.TAKEN), RAX)
            code.jump(after, "l", RAX, word(Word.BATCH))
            code.integer("mov", word(Word.TAKEN), 0)
            UpdateWriter(code, width, one).write(update, count)
            code.label(after)
            go_on(code, word(Word.ROW), word(Word.ROWS))
    code.finish()
    return code


def _call(code: Assembler, callee: Mem, arguments: Sequence[Mem]) -> None:
    """Call a function of the member. A fourth argument may be in its register already."""
    for register, argument in zip((RDI, RSI, RDX, RCX), arguments):
        code.integer("mov", register, argument)
    code.integer("call", callee)


def _word(field: Any) -> int:
    """A number, or the address of a buffer of ours. A number of NumPy is a buffer, too."""
    return address(memoryview(field)) if isinstance(field, (array, memoryview)) else index(field)
