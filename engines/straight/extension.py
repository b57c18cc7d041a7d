"""`tcc-extension`: straight-line C as a CPython extension module, to compare with the same C called through cffi."""

from __future__ import annotations

from collections.abc import Sequence

from zoomgrad.engines.graph.tape import Tape
from zoomgrad.engines.kernel import building, extension, toolchains
from zoomgrad.engines.kernel.c_text import Source
from zoomgrad.engines.kernel.program import Kernel
from zoomgrad.engines.straight.c_engines import FORMS, StraightC
from zoomgrad.engines.straight.c_source import c_source
from zoomgrad.engines.straight.lower import Code


class ExtensionEngine(StraightC):
    """The C wrapped as a CPython extension module."""

    def check(self) -> None:
        super().check()
        toolchains.find(self.compiler)
        extension.check_python("tcc")

    def generate(self, code: Code) -> Source:
        return extension.as_module(self._kernel(code), len(code.outputs))

    def module(self, tape: Tape, name: str, parameters: Sequence[float]) -> str:
        """The C of a module of that name, for `zoomgrad build`. parameters: the numbers to start with."""
        kernel = self._kernel(self.lower(tape))
        return extension.as_module(kernel, len(tape.outputs), name, parameters).units[0]

    def _kernel(self, code: Code) -> Source:
        return c_source(code, self.form, title="A Value graph as a CPython extension module")

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
