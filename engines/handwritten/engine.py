"""How the engines without a Value run: `mlp.c`, compiled for the machine that runs it.

The result is an ordinary Kernel. Its C depends on the workload's network instead of a graph.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Optional

from zoomgrad.engines import nn
from zoomgrad.engines.api import Workload
from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.handwritten.mlp_source import WIDTHS, mlp_source, workspace
from zoomgrad.engines.kernel import building, toolchains
from zoomgrad.engines.kernel.library import Library, interface
from zoomgrad.engines.kernel.program import Program
from zoomgrad.engines.kernel.trainer import CompiledTrainer
from zoomgrad.engines.options import Options
from zoomgrad.engines.row import Row, mlp_refusal

# The C requests unrolling where it pays off. Elsewhere, unrolling would double the compile time.
FLAGS = (*toolchains.STRICT, "-O2", "-fno-unroll-loops")
# Without this flag, compilers avoid the widest registers and split our vectors in two.
NATIVE = (*toolchains.NATIVE, "-mprefer-vector-width=512") if toolchains.IS_X86 else ()
GENERIC_LANES = 2
"""Doubles in a vector on x86-64 and AArch64 without extensions."""


@dataclass(frozen=True, eq=False, repr=False)
class ByHand(Row):
    """C by hand for an MLP of two layers, with one sample per step."""

    # The compile time of its loops does not depend on their counts.
    typical_row_seconds: tuple[float, float] = (1e-10, 1e-8)
    options: Options = field(default_factory=partial(Options, compiler="clang", native=True))
    takes: Sequence[str] = ("generic", "fma")

    def check(self) -> None:
        tool = self.toolchain()
        if self.options.fma:
            toolchains.check_fused(tool)
        interface()
        self._vector_doubles()  # asks the compiler now, not while phases are timed

    def toolchain(self) -> toolchains.Toolchain:
        """Return the newest Clang, or else the newest gcc. Raises Unavailable if there is neither."""
        return next(toolchains.usable(("clang", "gcc")))

    @property
    def flags(self) -> tuple[str, ...]:
        # Set LANES, because -mfma implies wider vectors.
        machine = NATIVE if self.options.native and NATIVE else (f"-DLANES={GENERIC_LANES}",)
        return (*FLAGS, *machine, *(toolchains.FUSED if self.options.fma else ()))

    def supports(self, workload: Workload) -> Optional[str]:
        network = workload.network
        if network and len(network.shape) != 3:
            return f"it is written for two layers of weights, and this model has {len(network.shape) - 1}"
        if network and (network.activation != "relu" or not network.last_linear):
            last = "" if network.last_linear else " on all layers"
            return f"it is written for ReLU and a linear last layer, and this model has {network.activation}{last}"
        return mlp_refusal(workload, ("relu",))

    def _prepare(self, workload: Workload) -> CompiledTrainer:
        clock = Clock()
        network = workload.network
        assert network is not None  # `supports` has checked it
        with clock.phase("generate"):
            text = mlp_source(network, sparse=self.options.sparse)
        # The object is never kept, because it compiles in less than a second.
        with contextlib.ExitStack() as stack:
            with clock.phase("compile"):
                built = stack.enter_context(building.build(self.toolchain(), [text], self.flags))
            with clock.phase("load"), building.loading():
                kernel = Library(interface().dlopen(str(built.path)), workspace(network))
        clock.sizes.update(
            source_bytes=len(text),
            object_bytes=built.size,
            translation_units=1,
            parallel_compilers=1,
            vector_doubles=self._vector_doubles(),
        )
        program = Program(
            kernel,
            inputs=workload.row(0),
            parameters=nn.starting_parameters(workload),
            outputs=network.shape[-1],
            clock=clock,
        )
        trainer = CompiledTrainer(program, workload)
        clock.stop()
        return trainer

    def _vector_doubles(self) -> int:
        """Doubles in the widest vector type of the C."""
        if not self.options.native:
            return GENERIC_LANES
        defined = toolchains.macros(self.toolchain(), toolchains.NATIVE)
        return next((lanes for macro, lanes in WIDTHS.items() if macro in defined), GENERIC_LANES)
