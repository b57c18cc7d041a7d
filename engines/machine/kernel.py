"""Machine code -> Kernel."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from zoomgrad.engines.columns import Column
from zoomgrad.engines.kernel.library import Library, interface
from zoomgrad.engines.machine.buffers.functions import ALIGNMENT, PROTOTYPES, label_of
from zoomgrad.engines.machine.buffers.rows import high_and_low
from zoomgrad.engines.machine.memory import Memory, is_under_perf, write_symbols
from zoomgrad.engines.machine.program import Code


class MachineKernel(Library):
    """A Kernel over machine code. It is called as an object of C is, but has more to know of columns."""

    def __init__(self, code: Code) -> None:
        memory, labels, cast = Memory(code.assembler), code.assembler.labels, interface().cast
        functions = {
            name: cast(prototype, memory.start + labels[label_of(name)])
            for name, prototype in PROTOTYPES.items()
            if label_of(name) in labels
        }
        if is_under_perf():
            called = {line.operands[0] for line in code.assembler.lines if line.name == "call"}
            names = called.union(map(label_of, functions)) & labels.keys()  # without functions of libm
            write_symbols(memory.start, {name: labels[name] for name in names}, len(code.assembler.code))
        super().__init__(SimpleNamespace(memory=memory, **functions), code.step.workspace + ALIGNMENT // 8)

    def described(self, columns: Sequence[Column]) -> tuple[Any, list[Any]]:
        structures, alive = super().described(columns)
        words = [
            bytes(self._ffi.buffer(self._ffi.addressof(at))) + struct.pack("<dd", *high_and_low(column.divisor))
            for at, column in zip(structures, columns)
        ]
        described = self._ffi.new("char[]", b"".join(words))
        return self._ffi.cast("struct column *", described), [*alive, described]
