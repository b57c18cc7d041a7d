"""The engines that compile recovered loops as C."""

from __future__ import annotations

from typing import Any

from engines.compiled import toolchains
from engines.compiled.c_engines import CEngine
from engines.compiled.c_source import Source
from engines.graph.tape import Tape
from engines.rerolled.c_loops import Form, c_source
from engines.rerolled.engine import check_numpy, reroll
from engines.rerolled.loops import Loops


class RerolledC(CEngine):
    """Loops recovered from the scalar tape, as C."""

    def __init__(self, name: str, compiler: str, flags: tuple[str, ...], form: Form, **facts: Any) -> None:
        super().__init__(name, compiler, flags, form, **facts)

    def check(self) -> None:
        check_numpy()
        super().check()

    def lower(self, tape: Tape) -> Loops:
        return reroll(tape)

    def generate(self, code: Loops) -> Source:
        return c_source(code, self.form)


ENGINES = (
    RerolledC("rerolled-tcc", "tcc", (), Form(width=1), idea="loops recovered from the scalar tape, by TCC", builds_on="tcc"),
    RerolledC("rerolled-gcc", "gcc", ("-O1", "-march=native", "-fexpensive-optimizations"), Form(width=8), idea="loops recovered from the scalar tape, in vectors, by gcc", builds_on="rerolled-tcc"),
    RerolledC("rerolled-clang", "clang", ("-O1", "-march=native"), Form(width=8), idea="loops recovered from the scalar tape, in vectors, by Clang", builds_on="rerolled-gcc"),
)
