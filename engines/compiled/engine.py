"""Workload -> Trainer, for every engine that compiles a graph.

What only compiling needs is imported in functions, because a list of engines must be quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Optional

from zoomgrad.engines.api import Unavailable, Workload
from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.compiled.flags import flags_of
from zoomgrad.engines.compiled.trace import Graph, trace
from zoomgrad.engines.graph.optimisers import SGD
from zoomgrad.engines.kernel import extension, toolchains
from zoomgrad.engines.kernel.library import interface
from zoomgrad.engines.kernel.program import Program
from zoomgrad.engines.kernel.trainer import CompiledTrainer
from zoomgrad.engines.native.build import recorder
from zoomgrad.engines.row import Row
from zoomgrad.engines.training import Trainer
from zoomgrad.engines.translated.rpython import translator


@dataclass(frozen=True, eq=False, repr=False)
class Compiled(Row):
    """An engine that compiles a graph."""

    rebuilds: bool = False
    compiles = True

    @cached_property
    def Value(self) -> Any:  # noqa: N802  (a class)
        return recorder()

    def check(self) -> None:
        """Import, find and build now what no timed phase should: stages, compilers, the recorder and NumPy."""
        import zoomgrad.engines.compile
        import zoomgrad.engines.lengths.prepare
        from zoomgrad.engines.rerolled.fitted import fitted

        options = self.options
        if options.code == "loops" or options.target == "machine":
            try:
                import numpy  # noqa: F401
            except ImportError:
                raise Unavailable("NumPy is not installed", "Install it with `pip install numpy`.") from None
            import zoomgrad.engines.rerolled.emit.numpy_runs
            import zoomgrad.engines.rerolled.reroll  # noqa: F401
        recorder()
        if options.compiler or options.target in ("machine", "RPython"):
            interface()
        if options.target == "machine":
            from zoomgrad.engines.machine import target
            from zoomgrad.engines.machine.libm.powers import powers_match_libm

            target.check()
            powers_match_libm()
        if options.target == "RPython":
            translator()
        if not options.compiler:
            return
        tool = toolchains.find(options.compiler)
        if options.fma:
            toolchains.check_fused(tool)
        if options.target == "module":
            extension.check_python("tcc")
        if options.code == "loops":
            fitted(options)

    def supports(self, workload: Workload) -> Optional[str]:
        if not self.options.frozen:
            return None
        if workload.learns:
            return "its weights are constants, so it can't train"
        return "weights are constants in steps of one length only" if workload.varies else None

    def _prepare(self, workload: Workload) -> Trainer:
        from zoomgrad.engines.compile import compile as compile_graph
        from zoomgrad.engines.lengths.prepare import prepare_lengths

        if workload.varies or (workload.learns and workload.optimiser is not SGD):
            return prepare_lengths(workload, self.options)
        clock = Clock()
        first = partial(trace, workload, workload.row(0))
        program = compile_graph(first, self.options, clock, batch=workload.batch)
        program.tape = None  # a trainer never needs it
        trainer = CompiledTrainer(program, workload)
        clock.stop()
        return trainer

    def compile(
        self, loss: Any, *, inputs: Sequence[Any], parameters: Sequence[Any], outputs: Sequence[Any] = ()
    ) -> Program:
        from zoomgrad.engines.compile import compile as compile_graph

        if self.options.frozen:
            raise Unavailable(
                f"{self.name} runs workloads only",
                "Name no parameters and leave out +frozen: all other leaves are constants.",
            )
        clock = Clock()
        program = compile_graph(lambda: Graph(loss, inputs, parameters, outputs), self.options, clock)
        clock.stop()
        return program

    def toolchain(self) -> Optional[toolchains.Toolchain]:
        return toolchains.find(self.options.compiler) if self.options.compiler else None

    @property
    def flags(self) -> tuple[str, ...]:
        return flags_of(self.options) if self.options.compiler else ()
