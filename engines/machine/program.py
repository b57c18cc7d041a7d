"""Step -> one piece of machine code: routines, sections and the functions that Python calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Union

from zoomgrad.engines.machine.buffers.copies import write_copy
from zoomgrad.engines.machine.buffers.functions import label_of, write_functions
from zoomgrad.engines.machine.buffers.rows import write_rows
from zoomgrad.engines.machine.encode import Assembler
from zoomgrad.engines.machine.expression import Evaluator
from zoomgrad.engines.machine.nest import Writer
from zoomgrad.engines.machine.registers import Registers
from zoomgrad.engines.machine.section import Section
from zoomgrad.engines.machine.target import Target
from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.step.language import Run
from zoomgrad.engines.rerolled.step.series import Series
from zoomgrad.engines.rerolled.step.step import Step


class Described(NamedTuple):
    """A run, or a series of runs, as a comment of the listing. Its text takes longer to make than its code."""

    step: Step
    runs: Union[Run, Series]

    def __str__(self) -> str:
        if isinstance(self.runs, Series):
            return f"; {self.step.line_of_series(self.runs)}"
        return f"; {self.runs}: {self.step.line(self.runs)}"


class Code(NamedTuple):
    """Machine code before it is loaded."""

    step: Step
    bytes: bytes
    functions: dict[str, int]
    """Function of kernel.h -> its offset."""
    symbols: dict[str, int]
    """Name -> offset of everything that is called, and where the last one ends."""
    end: int
    of_libm: dict[str, int]
    """Function of libm -> the offset of its address, which is not filled in."""
    assembler: Assembler

    def lines(self) -> Iterator[str]:
        """The listing: address, bytes and instruction; before a loop, its text."""
        return self.assembler.listing()


def assemble(step: Step, form: Form) -> Code:
    """Write the code of a step."""
    code, target, step = Assembler(), Target(form.width), step.pruned()
    writer = Writer(code, step, form, target)
    for name, runs in step.routines.items():
        code.label(name)
        for run in runs:
            series = step.in_series.get(run.number)
            if not series:
                code.comment(Described(step, run))
                writer.write(run)
            elif run.number == series.first:
                code.comment(Described(step, series))
                writer.write_series(series)
        code.plain("ret")
    evaluator = Evaluator(code, target, Registers(target, code))
    write_rows(code, evaluator, target)
    write_copy(code, evaluator, target)
    section = Section(code, step, target, evaluator)
    if step.skips:
        section.write_routines()
    for name in step.programs:
        section.write(name)
    functions = write_functions(code, step, target, evaluator)
    end = len(code.code)
    content, labels = code.finish()
    at = {name: labels[label_of(name)] for name in functions}
    symbols = {name: labels[name] for name in (*code.called, *map(label_of, functions))}
    return Code(step, content, at, symbols, end, {name: labels[name] for name in code.functions}, code)
