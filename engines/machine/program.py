"""Step -> one piece of machine code: routines, sections and the functions that Python calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from zoomgrad.engines.machine.buffers.copies import write_copy
from zoomgrad.engines.machine.buffers.functions import write_functions
from zoomgrad.engines.machine.buffers.rows import write_rows
from zoomgrad.engines.machine.encode import Assembler
from zoomgrad.engines.machine.nest import Writer
from zoomgrad.engines.machine.section import Section
from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.step.step import Step


class Code(NamedTuple):
    """Machine code before it is loaded."""

    step: Step
    assembler: Assembler

    def lines(self) -> Iterator[str]:
        """The listing: address, bytes and instruction; before a loop, its text."""
        return self.assembler.listing()


def assemble(step: Step, form: Form) -> Code:
    """Write the code of a step."""
    code, step = Assembler(), step.pruned()
    writer = Writer(code, step, form)
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
    return Code(step, code)
