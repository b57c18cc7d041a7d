"""The engines that compile recovered loops as C."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engines.compiled import toolchains
from engines.compiled.c_engines import CORES, CEngine
from engines.compiled.c_source import Source
from engines.graph.tape import Tape
from engines.rerolled.c_loops import c_source
from engines.rerolled.c_nest import Form
from engines.rerolled.engine import check_numpy, reroll
from engines.rerolled.loops import Loops


class RerolledC(CEngine):
    """Loops recovered from the scalar tape, as C."""

    def __init__(self, name: str, compiler: str, flags: tuple[str, ...], form: Form, **facts: Any) -> None:
        super().__init__(
            name, compiler, flags, form, typical_row_seconds=2e-10, typical_compile_row_seconds=3e-6, **facts
        )

    def check(self) -> None:
        check_numpy()
        super().check()

    def lower(self, tape: Tape) -> Loops:
        return reroll(tape)

    def generate(self, code: Loops) -> Source:
        return c_source(code, self.form)


VECTORS = Form(width=8, units=CORES)

ENGINES = (
    RerolledC("rerolled-tcc", "tcc", (), Form(width=1), idea="loops recovered from the scalar tape, by TCC", builds_on="tcc"),
    RerolledC("rerolled-gcc", "gcc", ("-O1", "-march=native", "-fexpensive-optimizations"), VECTORS, idea="loops recovered from the scalar tape, in vectors, by gcc", builds_on="rerolled-tcc"),
    RerolledC("rerolled-clang", "clang", ("-O1", "-march=native", "-mprefer-vector-width=512"), VECTORS, idea="loops recovered from the scalar tape, in vectors, by Clang", builds_on="rerolled-gcc"),
    RerolledC("rerolled-clang-sparse", "clang", ("-O1", "-march=native", "-mprefer-vector-width=512"), replace(VECTORS, sparse=True), idea="and inputs that are exactly 0 skipped at run time", builds_on="rerolled-clang"),
    RerolledC("rerolled-clang-fast", "clang", ("-O2", "-march=native", "-ffp-contract=fast", "-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math"), VECTORS, idea="and fused multiply-add, reassociated sums: other bits, within a bound", builds_on="rerolled-clang", strict=False, error_bound=1e-9),
)
