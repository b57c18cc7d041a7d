"""Step -> one piece of machine code: routines, sections and the functions that Python calls. Machine code -> Kernel."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import NamedTuple

from zoomgrad.engines.kernel.buffers import CACHE_LINE
from zoomgrad.engines.kernel.library import Library, interface
from zoomgrad.engines.machine.buffers.copies import write_copy
from zoomgrad.engines.machine.buffers.functions import PROTOTYPES, label_of, write_functions
from zoomgrad.engines.machine.buffers.rows import write_rows
from zoomgrad.engines.machine.encode import Assembler
from zoomgrad.engines.machine.lines import write_lines
from zoomgrad.engines.machine.memory import Memory, is_under_perf, write_symbols
from zoomgrad.engines.machine.nest import Writer
from zoomgrad.engines.machine.section import Section
from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.step.shared import share_runs
from zoomgrad.engines.rerolled.step.step import Step


class MachineCode(NamedTuple):
    """Machine code before it is loaded."""

    step: Step
    form: Form
    assembler: Assembler

    def lines(self) -> Iterator[str]:
        """The listing: address, bytes and instruction; before a loop, its text."""
        return assemble(self.step, self.form).assembler.listing()


def assemble(step: Step, form: Form, *, is_listed: bool = True) -> MachineCode:
    """Write the code of a step."""
    code, step = Assembler(is_listed), step if step.lines_of else share_runs(step)
    writer = Writer(code, step, form)
    for name, lines in step.lines_of.items():
        write_lines(writer, name, lines)
    for name, runs in step.routines.items():
        code.label(name)
        for run in runs:
            writer.write(run)
        code.plain("ret")
    write_rows(writer)
    write_copy(writer)
    section = Section(step, writer)
    if step.skips:
        section.write_routines()
    for name in step.programs:
        section.write(name)
    write_functions(writer, step)
    code.finish()
    return MachineCode(step, form, code)


class MachineKernel(Library):
    """A Kernel over machine code, called like compiled C."""

    def __init__(self, code: MachineCode) -> None:
        memory, labels, cast = Memory(code.assembler), code.assembler.labels, interface().cast
        functions = {
            name: cast(prototype, memory.start + labels[label_of(name)])
            for name, prototype in PROTOTYPES.items()
            if label_of(name) in labels
        }
        if is_under_perf():
            names = code.assembler.called.union(map(label_of, functions))
            write_symbols(memory.start, {name: labels[name] for name in names}, len(code.assembler.code))
        super().__init__(SimpleNamespace(memory=memory, **functions), code.step.workspace + CACHE_LINE // 8)
