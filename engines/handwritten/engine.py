"""How the engines without a Value run, which train whole models only: `mlp.c`, compiled for the machine that runs it.

The result is an ordinary Kernel. Its C depends on the workload's network instead of a graph: macros have the network's
sizes, so that loops have constant lengths, and its loss. The text includes no headers and needs only libm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Optional

from zoomgrad.engines import nn
from zoomgrad.engines.api import Network, Workload
from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.compiled.flags import WIDE, native
from zoomgrad.engines.compiled.load import load
from zoomgrad.engines.compiled.machine import widest
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.kernel.c_text import Source
from zoomgrad.engines.kernel.c_tree import Include, defines, unit
from zoomgrad.engines.kernel.library import interface
from zoomgrad.engines.kernel.program import Program
from zoomgrad.engines.kernel.trainer import CompiledTrainer
from zoomgrad.engines.options import Options
from zoomgrad.engines.row import Row, mlp_refusal


@dataclass(frozen=True, eq=False, repr=False)
class ByHand(Row):
    """C by hand for an MLP of two layers, with one sample per step."""

    # The compile time of its loops does not depend on their counts.
    typical_row_seconds: tuple[float, float] = (1e-10, 1e-8)
    options: Options = field(default_factory=partial(Options, compiler="clang", native=True))
    takes: Sequence[str] = ("generic", "fma")

    def check(self) -> None:
        self.lanes()  # asks the compiler now, not while phases are timed
        if self.options.fma:
            toolchains.check_fused(self.toolchain())
        interface()

    def toolchain(self) -> toolchains.Toolchain:
        """Return the newest Clang, or else the newest gcc. Raises Unavailable if there is neither."""
        return next(toolchains.usable(("clang", "gcc")))

    @property
    def flags(self) -> tuple[str, ...]:
        machine = (*native(), *WIDE) if self.options.native else ()
        fused = toolchains.FUSED if self.options.fma else ()
        # The C requests unrolling where it pays off. Elsewhere, unrolling would double the compile time.
        return (*toolchains.STRICT, "-O2", "-fno-unroll-loops", *machine, *fused)

    def lanes(self) -> int:
        """Doubles in a vector of the C. Raises Unavailable without a compiler."""
        # Without -mfma, which implies wider vectors.
        return widest(toolchains.macros(self.toolchain(), native() if self.options.native else ()))

    def source(self, network: Network, lanes: Optional[int] = None) -> str:
        """C for the network. lanes: doubles in a vector. None: asks a compiler, or raises Unavailable."""
        macros = {
            **dict(zip(("INPUTS", "HIDDEN", "OUTPUTS"), network.shape)),
            "LANES": lanes or self.lanes(),
            "CROSS_ENTROPY": int(network.loss == "cross_entropy"),
            "SPARSE": int(self.options.sparse),
        }
        files = ["rerolled/emit/vectors.h", "kernel/kernel.h", "kernel/rows.h", "kernel/training.h"]
        if self.options.sparse:
            macros.update(FIRST=0, LISTED=network.shape[0], FACTOR_COUNT=network.shape[1])  # for zeros.h
            files += ["rerolled/emit/live.h", "rerolled/emit/zeros.h"]
        return unit([defines(**macros), *map(Include, [*files, "handwritten/mlp.c", "kernel/train.c"])])

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
            source = Source([self.source(network)], workspace=0)
        clock.sizes["vector_doubles"] = self.lanes()
        program = Program(
            load(source, self.options, self.toolchain(), self.flags, clock),
            inputs=workload.row(0),
            parameters=nn.starting_parameters(workload),
            outputs=network.shape[-1],
            clock=clock,
        )
        trainer = CompiledTrainer(program, workload)
        clock.stop()
        return trainer
