"""`tcc-extension`: straight-line C as a CPython extension module, to compare with the same C called through cffi."""

from __future__ import annotations

from engines.kernel import building, extension, toolchains
from engines.kernel.c_text import Source
from engines.kernel.program import Kernel
from engines.straight.c_engines import FORMS, StraightC
from engines.straight.c_source import c_source
from engines.straight.lower import Code


class ExtensionEngine(StraightC):
    """The C wrapped as a CPython extension module."""

    def check(self) -> None:
        super().check()
        toolchains.find(self.compiler)
        extension.check_python()

    def generate(self, code: Code) -> Source:
        kernel = c_source(code, self.form, title="A Value graph as a CPython extension module")
        return extension.as_module(kernel, len(code.outputs))

    @property
    def abi(self) -> str:
        return extension.abi()

    def load(self, built: building.Built, workspace: int) -> Kernel:
        return extension.Extension(str(built.path), workspace)


ENGINES = (
    ExtensionEngine(
        "tcc-extension",
        "tcc",
        extension.include_flags(),
        FORMS["tcc"],
        idea="the C wrapped as a CPython extension module, instead of cffi",
        builds_on="tcc",
        typical_row_seconds=5e-9,
        typical_compile_row_seconds=1e-5,
    ),
)
