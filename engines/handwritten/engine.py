"""The engines without a Value: `mlp.c`, compiled for the machine that runs it.

Suffixes, in this order: `-generic` (without -march=native, so only with vectors that every processor of this kind has)
and `-fma` (fused multiply-add, not strict), as in `handwritten-sparse-generic`.

The result is an ordinary Kernel. Its C depends on the workload's network instead of a graph.
"""

from __future__ import annotations

import contextlib
from typing import Any, Optional

from zoomgrad.engines import nn
from zoomgrad.engines.api import Store, Workload
from zoomgrad.engines.graph.optimisers import SGD
from zoomgrad.engines.handwritten.mlp_source import WIDTHS, mlp_source, workspace
from zoomgrad.engines.kernel import building, toolchains
from zoomgrad.engines.kernel.engine import Clock
from zoomgrad.engines.kernel.library import Library, interface
from zoomgrad.engines.kernel.program import Program
from zoomgrad.engines.kernel.trainer import CompiledTrainer
from zoomgrad.engines.suffixes import Suffixes, root

LOSSES = ("cross_entropy", "squared_error")

# The C requests unrolling where it pays off. Elsewhere, unrolling would double the compile time.
FLAGS = (*toolchains.STRICT, "-O2", "-fno-unroll-loops")
# Without this flag, compilers avoid the widest registers and split our vectors in two.
NATIVE = (*toolchains.NATIVE, "-mprefer-vector-width=512") if toolchains.IS_X86 else ()
GENERIC_LANES = 2
"""Doubles in a vector on x86-64 and AArch64 without extensions."""


class HandwrittenEngine:
    """An MLP of two layers in C, with one sample per step."""

    typical_row_seconds = 1e-10
    typical_compile_row_seconds = 1e-8  # the compile time of loops does not depend on their counts
    Value: Any = None
    nn: Any = None

    def __init__(
        self, name: str, *, sparse: bool, idea: str, builds_on: str, generic: bool = False, fused: bool = False
    ) -> None:
        self.name = name
        self.sparse = sparse
        self.idea = idea
        self.builds_on = builds_on
        self.native = bool(NATIVE) and not generic
        self.strict = not fused
        self.error_bound = toolchains.FUSED_ERROR_BOUND if fused else None
        # Set LANES, because -mfma implies wider vectors.
        machine = NATIVE if self.native else (f"-DLANES={GENERIC_LANES}",)
        self.flags = (*FLAGS, *machine, *(toolchains.FUSED if fused else ()))

    def check(self) -> None:
        tool = self.toolchain()
        if not self.strict:
            toolchains.check_fused(tool)
        interface()
        _ = self.vector_doubles  # asks the compiler now, not while phases are timed

    def toolchain(self) -> toolchains.Toolchain:
        """Return the newest Clang, or else the newest gcc. Raises Unavailable if there is neither."""
        return next(toolchains.usable(("clang", "gcc")))

    @property
    def vector_doubles(self) -> int:
        """Doubles in the widest vector type of the C."""
        if not self.native:
            return GENERIC_LANES
        defined = toolchains.macros(self.toolchain(), toolchains.NATIVE)
        return next((lanes for macro, lanes in WIDTHS.items() if macro in defined), GENERIC_LANES)

    def supports(self, workload: Workload) -> Optional[str]:
        network = workload.network
        if network is None:
            return "it is written for MLPs, and this model is not an MLP"
        if len(network.shape) != 3:
            return f"it is written for two layers of weights, and this model has {len(network.shape) - 1}"
        if network.activation != "relu" or not network.last_linear:
            last = "" if network.last_linear else " on all layers"
            return f"it is written for ReLU and a linear last layer, and this model has {network.activation}{last}"
        if network.loss not in LOSSES:
            return f"it is written for {' and '.join(LOSSES)}, and this loss is {network.loss}"
        if workload.optimiser is not SGD:
            return f"it is written for plain descent, and this optimiser is {workload.optimiser.name}"
        if network.samples != 1:
            return f"it is written for one sample per step, and a step of this workload has {network.samples:,}"
        return None

    def source(self, workload: Workload) -> str:
        """The C for that workload. Raises ValueError if the engine does not support it."""
        refusal = self.supports(workload)
        network = workload.network
        if refusal or network is None:
            raise ValueError(f"{self.name} can't run {workload.name}: {refusal}\n  Call `supports` first.")
        return mlp_source(network, sparse=self.sparse)

    def prepare(self, workload: Workload, *, objects: Optional[Store] = None) -> CompiledTrainer:
        clock = Clock()
        with clock.phase("generate"):
            source = self.source(workload)
        network = workload.network
        assert network is not None  # `source` has checked it
        # The object is never kept, because it compiles in less than a second.
        with contextlib.ExitStack() as stack:
            with clock.phase("compile"):
                built = stack.enter_context(building.build(self.toolchain(), [source], self.flags))
            with clock.phase("load"), building.loading():
                kernel = Library(str(built.path), workspace(network))
        clock.sizes.update(
            source_bytes=len(source),
            object_bytes=built.size,
            translation_units=1,
            parallel_compilers=1,
            vector_doubles=self.vector_doubles,
        )
        program = Program(
            kernel,
            inputs=workload.row(0),
            parameters=nn.starting_parameters(workload),
            outputs=network.shape[-1],
            phases=clock.phases,
            sizes=clock.sizes,
        )
        trainer = CompiledTrainer(program, workload)
        clock.stop()
        return trainer

    def __repr__(self) -> str:
        return f"<engine {self.name}>"


ENGINES = (
    HandwrittenEngine(
        "handwritten",
        sparse=False,
        idea="no graph: C that a good engineer writes by hand for this MLP, with neurons as lanes of vectors",
        builds_on="clang-O2",
    ),
    HandwrittenEngine(
        "handwritten-sparse",
        sparse=True,
        idea="plus skipping, in the first layer, inputs that are exactly 0",
        builds_on="handwritten",
    ),
)

SUFFIXES = Suffixes({"generic": "generic", "fma": "fma"}, {"native": ("it already has -march=native", "use {engine}")})


def resolve(name: str) -> Optional[HandwrittenEngine]:
    """Return an engine with suffixes, or None for other names. Raises WrongSuffix."""
    plain, rest = root(name, [engine.name for engine in ENGINES])
    if not rest:
        return None
    taken = SUFFIXES.read(plain, rest)
    changes = {
        "generic": "compiled for every processor of this kind: no -march=native",
        "fma": toolchains.FUSED_IDEA,
    }
    return HandwrittenEngine(
        name,
        sparse=next(engine.sparse for engine in ENGINES if engine.name == plain),
        idea="; ".join(changes[choice] for choice in taken),
        builds_on=plain,
        generic="generic" in taken,
        fused="fma" in taken,
    )
