"""Code -> the source of a back end: translation units of C, functions in Python, instructions, or a step for NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.columns import MOST_COLUMNS
from zoomgrad.engines.graph.tape import Tape
from zoomgrad.engines.kernel.c_text import Source, table
from zoomgrad.engines.kernel.c_tree import Text, defines, read, unit
from zoomgrad.engines.kernel.extension import LIMITED_API, MODULE
from zoomgrad.engines.machine.lines import straight
from zoomgrad.engines.machine.program import assemble as assemble_machine
from zoomgrad.engines.options import Options
from zoomgrad.engines.rerolled.emit.c import c_source as loops_in_c
from zoomgrad.engines.rerolled.fitted import fitted
from zoomgrad.engines.rerolled.step.step import Step
from zoomgrad.engines.rerolled.step.variants import variants_of
from zoomgrad.engines.straight.bytecode import assemble as assemble_bytecode
from zoomgrad.engines.straight.c_source import c_source, form_of
from zoomgrad.engines.straight.lower import Code
from zoomgrad.engines.straight.published import published_source
from zoomgrad.engines.straight.python_source import python_source
from zoomgrad.engines.translated.rpython import Rows


def emit(code: Any, options: Options) -> Any:
    """The source of the code: a Source, Bytecode, or a Step."""
    return EMITTERS[options.target](code, options)


def module(code: Code, options: Options, name: str = MODULE, parameters: Sequence[float] = ()) -> Source:
    """The C of an extension module of that name. parameters: the numbers to start with, if it is kept."""
    source = c_source(code, form_of(options))
    (kernel,) = source.units
    head = [
        Text([*LIMITED_API.splitlines(), "#define PY_SSIZE_T_CLEAN", "#include <Python.h>"]),
        defines(NAME=f'"{name}"', INIT=f"PyInit_{name}", STARTING_PARAMETERS=len(parameters)),
        defines(WORKSPACE=source.workspace, OUTPUTS=len(code.outputs), MOST_COLUMNS=MOST_COLUMNS + 1),  # for `predict`
        Text(table("starting_parameters", parameters)),
    ]
    return source._replace(units=["\n".join([unit(head), kernel, read("kernel/module.c")])])


def text(code: Any, options: Options) -> str:
    """The source of all variants of the code, as text."""
    variants = variants_of(code)
    titles = [f"/* Variant of the kernel: {variant}. */\n\n" if len(variants) > 1 else "" for variant in variants]
    return "\n".join(title + _text(emit(variant.code, options)) for title, variant in zip(titles, variants))


def _text(source: Any) -> str:
    if isinstance(source, Source):
        return source.text
    if not hasattr(source, "lines"):
        raise Unavailable(f"{type(source).__name__} has no text", "Use --stage tape.")
    lines = (*source.loops.lines(), *source.lines()) if isinstance(source, Step) else source.lines()
    return "".join(f"{line}\n" for line in lines)


def _c(code: Any, options: Options) -> Source:
    if isinstance(code, Tape):
        return published_source(code)
    if isinstance(code, Code):
        return c_source(code, form_of(options))
    return loops_in_c(code, fitted(options))


EMITTERS: dict[str, Callable[[Any, Options], Any]] = {
    "C": _c,
    "module": module,
    "Python": lambda code, _: python_source(code),
    "bytecode": lambda code, _: assemble_bytecode(code),
    "RPython": lambda tape, options: Rows(tape, options.jit),
    "machine": lambda code, options: assemble_machine(
        code if isinstance(code, Step) else straight(code), fitted(options), is_listed=False
    ),
    "NumPy": lambda code, _: code if isinstance(code, Step) else assemble_bytecode(code),
}
"""Target -> what makes its source of the code. A file that adds a target may emit a kernel, which is its own source."""
