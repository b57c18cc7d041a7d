"""The engines that compile recovered loops as C.

Clang would split vectors of 512 bits in two, unless told; gcc -O1 leaves out `vzeroupper`, without
-fexpensive-optimizations, and every call of libm then pays for it.
"""

from __future__ import annotations

import platform
from dataclasses import replace
from typing import Any

from engines.compiled import toolchains
from engines.compiled.c_engines import CORES, CEngine
from engines.compiled.c_source import Source
from engines.rerolled.c_loops import c_source
from engines.rerolled.c_nest import Form
from engines.rerolled.engine import Rerolled


class RerolledC(Rerolled, CEngine):
    """Loops recovered from the scalar tape, as C."""

    def check(self) -> None:
        super().check()
        self._native()

    def generate(self, code: Any) -> Source:
        return c_source(code, self._native())

    def _native(self) -> Form:
        """The form, with the vectors that this machine has."""
        form: Form = self.form
        if form.width == 1:
            return form
        defined = toolchains.macros(toolchains.find(self.compiler), tuple(f for f in self.flags if f.startswith("-m")))
        width = next((width for macro, width in WIDTHS.items() if macro in defined), 2)
        return replace(form, width=width, registers=32 if width == 8 or "__aarch64__" in defined else 16)


IS_X86 = platform.machine() in ("x86_64", "AMD64")
NATIVE = ("-march=native",) if IS_X86 else ("-mcpu=native",)
GCC = ("-O1", *NATIVE, "-fexpensive-optimizations")
CLANG = (*NATIVE, *(("-mprefer-vector-width=512",) if IS_X86 else ()))
# Not -ffast-math: it would switch the whole process to flush-to-zero.
FAST = ("-ffp-contract=fast", "-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math")

SCALARS = Form()
WIDTHS = {"__AVX512F__": 8, "__AVX__": 4}
"""What a compiler defines -> doubles in the widest vector."""
VECTORS = Form(width=8, rows=4, units=CORES)


def _engine(name: str, compiler: str, flags: tuple[str, ...], form: Form, **facts: Any) -> RerolledC:
    row_seconds = 1e-9 if compiler == "tcc" else 1e-10
    return RerolledC(
        name, compiler, flags, form, typical_row_seconds=row_seconds, typical_compile_row_seconds=4e-6, **facts
    )


ENGINES = (
    _engine("rerolled-tcc", "tcc", (), SCALARS, idea="loops recovered from the scalar tape, by TCC", builds_on="tcc"),
    _engine(
        "rerolled-gcc",
        "gcc",
        GCC,
        VECTORS,
        idea="loops recovered from the scalar tape, in vectors, by gcc",
        builds_on="rerolled-tcc",
    ),
    _engine(
        "rerolled-clang",
        "clang",
        ("-O1", *CLANG),
        VECTORS,
        idea="loops recovered from the scalar tape, in vectors, by Clang",
        builds_on="rerolled-gcc",
    ),
    _engine(
        "rerolled-clang-sparse",
        "clang",
        ("-O1", *CLANG),
        replace(VECTORS, sparse=True),
        idea="and terms whose input is exactly 0 skipped at run time",
        builds_on="rerolled-clang",
    ),
    _engine(
        "rerolled-clang-fast",
        "clang",
        ("-O2", *CLANG, *FAST),
        VECTORS,
        idea="and fused multiply-add, reassociated sums",
        builds_on="rerolled-clang",
        strict=False,
        error_bound=1e-9,
    ),
)
