"""Machine code -> Kernel."""

from __future__ import annotations

from types import SimpleNamespace

from zoomgrad.engines.kernel.buffers import CACHE_LINE
from zoomgrad.engines.kernel.library import Library, interface
from zoomgrad.engines.machine.buffers.functions import PROTOTYPES, label_of
from zoomgrad.engines.machine.memory import Memory, is_under_perf, write_symbols
from zoomgrad.engines.machine.program import Code


class MachineKernel(Library):
    """A Kernel over machine code. It is called as an object of C is."""

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
        super().__init__(SimpleNamespace(memory=memory, **functions), code.step.workspace + CACHE_LINE // 8)
