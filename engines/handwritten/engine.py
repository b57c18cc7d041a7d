"""The engines that know no Value: the C of `mlp_source`, compiled for the machine it runs on.

The object is a Kernel like any other; only its maker differs, who was told the network instead of finding it in a
graph.
"""

from __future__ import annotations

import contextlib
import platform
from pathlib import Path
from typing import Any, Optional

from engines import nn
from engines.api import Unavailable, Workload
from engines.compiled import toolchains
from engines.compiled.engine import Clock, CompiledTrainer
from engines.compiled.library import Library, interface
from engines.compiled.program import Program
from engines.handwritten.mlp_source import mlp_source, workspace

LOSSES = ("cross_entropy", "squared_error")

# Compilers shun the wide registers for what they vectorise themselves, and would halve our vectors with it.
_WIDE = ("-march=native", "-mprefer-vector-width=512")
# Where unrolling pays the C says so; elsewhere it would take as long as all the rest of compiling.
FLAGS = (*toolchains.STRICT, "-O2", "-fno-unroll-loops", *(_WIDE if platform.machine() in ("x86_64", "AMD64") else ()))


class HandwrittenEngine:
    """An MLP of two layers in C, one sample a step."""

    strict = True
    error_bound = None
    typical_row_seconds = 1e-10
    typical_compile_row_seconds = 1e-8  # loops compile as fast, however often they run
    Value: Any = None
    nn: Any = None

    def __init__(self, name: str, *, sparse: bool, idea: str, builds_on: str) -> None:
        self.name = name
        self.sparse = sparse
        self.idea = idea
        self.builds_on = builds_on

    def check(self) -> None:
        compiler()
        interface()

    def supports(self, workload: Workload) -> Optional[str]:
        network = workload.network
        if network is None:
            return "it is written for MLPs, and this model is none"
        if len(network.shape) != 3:
            return f"it is written for two layers of weights, and this model has {len(network.shape) - 1}"
        if network.activation != "relu" or not network.last_linear:
            last = "" if network.last_linear else ", the last one included"
            return f"it is written for ReLU and a linear last layer, and this model has {network.activation}{last}"
        if network.loss not in LOSSES:
            return f"it is written for {' and '.join(LOSSES)}, and this loss is {network.loss}"
        if network.samples != 1:
            return f"it is written for one sample a step, and a step of this workload has {network.samples:,}"
        return None

    def source(self, workload: Workload) -> str:
        """The C for that workload. Raises ValueError where the engine does not support it."""
        refusal = self.supports(workload)
        network = workload.network
        if refusal or network is None:
            raise ValueError(f"{self.name} can't run {workload.name}: {refusal}\n  Ask `supports` first.")
        return mlp_source(network, sparse=self.sparse)

    def prepare(self, workload: Workload, *, objects: Optional[Path] = None) -> CompiledTrainer:
        clock = Clock()
        with clock.phase("generate"):
            source = self.source(workload)
        network = workload.network
        assert network is not None  # else there is no source
        # Never kept among the objects: it compiles in less than a second.
        with contextlib.ExitStack() as stack:
            with clock.phase("compile"):
                built = stack.enter_context(toolchains.build(compiler(), [source], FLAGS))
            with clock.phase("load"):
                kernel = Library(str(built.path), workspace(network))
        clock.sizes.update(source_bytes=len(source), object_bytes=built.size)
        program = Program(
            kernel,
            inputs=workload.row(0),
            parameters=[leaf.data for leaf in workload.model(nn.bind(_Leaf)).parameters()],
            outputs=network.shape[-1],
            phases=clock.phases,
            sizes=clock.sizes,
        )
        return CompiledTrainer(program, workload)

    def __repr__(self) -> str:
        return f"<engine {self.name}>"


class _Leaf:
    """Enough of a Value to hold a starting parameter."""

    def __init__(self, data: float) -> None:
        self.data = data


def compiler() -> toolchains.Toolchain:
    """The newest Clang, or the newest gcc where there is no Clang. Raises Unavailable where there is neither."""
    try:
        return toolchains.find("clang")
    except Unavailable as no_clang:
        try:
            return toolchains.find("gcc")
        except Unavailable:
            raise Unavailable("there is neither clang nor gcc on PATH", no_clang.remedy) from None


ENGINES = (
    HandwrittenEngine(
        "handwritten",
        sparse=False,
        idea="no graph, but the C that a good engineer writes by hand for this MLP: neurons as lanes of vectors",
        builds_on="clang-O2",
    ),
    HandwrittenEngine(
        "handwritten-sparse",
        sparse=True,
        idea="inputs that are exactly 0 are skipped in the first layer",
        builds_on="handwritten",
    ),
)
