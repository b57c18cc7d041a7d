"""An engine that compiles C: generate, compile, keep slow builds, load."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, Optional

from engines.api import KEPT_FROM_SECONDS, Unavailable, Workload
from engines.graph.tape import Tape
from engines.kernel import building, object_cache, toolchains
from engines.kernel.c_text import Source
from engines.kernel.engine import Clock, CompiledEngine
from engines.kernel.library import Library, interface
from engines.kernel.program import Kernel

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class CEngine(CompiledEngine):
    """An engine that compiles C and calls it through cffi. Subclasses define `lower`, `generate` and `fusable`."""

    def __init__(self, name: str, compiler: str, flags: tuple[str, ...], form: Any, **facts: Any) -> None:
        super().__init__(name, **facts)
        self.compiler = compiler
        self.flags = (*toolchains.STRICT, *flags)
        self.form = form

    def check(self) -> None:
        tool = toolchains.find(self.compiler)
        if "-mfma" in self.flags:
            toolchains.check_fused(tool)
        interface()

    def toolchain(self) -> toolchains.Toolchain:
        """The compiler on this machine. Raises Unavailable."""
        return toolchains.find(self.compiler)

    @property
    def vector_doubles(self) -> int:
        """Doubles in the widest vector type in the C. A compiler may also vectorise scalar code."""
        return 1

    def fusable(self, tape: Tape) -> Any:
        """Count the sums of a step that a compiler could fuse with a product."""
        raise NotImplementedError

    def source(self, code: Any) -> str:
        return "\n".join(self.generate(code).units)

    def generate(self, code: Any) -> Source:
        """Generate the C in this engine's form."""
        raise NotImplementedError

    def kernel(self, tape: Tape, frozen: Optional[Sequence[float]] = None) -> Source:
        """The C of a tape for a standalone build: one translation unit, in which only the kernel's interface is public.

        It defines HAS_LOAD if `load(p, w)` must run before the first forward pass with new parameters. frozen: the
        parameters, for a kernel with nothing but a forward pass. It has them as constants, or it defines HAS_LOAD.
        Raises Unavailable if this form of C can't be frozen.
        """
        raise NotImplementedError

    def build(self, code: Any, clock: Clock, objects: Optional[Path]) -> Kernel:
        with clock.phase("generate"):
            source = self.generate(code)
        units = len(source.units)
        clock.sizes.update(
            source_bytes=source.size,
            translation_units=units,
            parallel_compilers=min(units, CORES),
            vector_doubles=self.vector_doubles,
        )
        tool = self.toolchain()
        with contextlib.ExitStack() as stack:
            # The key asks the compiler for its macros, so skip it for most programs: they compile too fast to be kept.
            if objects and os.path.lexists(objects):
                kept = stack.enter_context(object_cache.kept(objects, self._key(tool, source)))
            else:
                kept = None
            if kept:
                clock.sizes["object_bytes"] = kept.size
                with building.loading():
                    kernel = self.load(kept, source)
                clock.phases.clear()  # nothing was compiled, so this block has no compile time
                return kernel
            with clock.phase("compile"):
                built = stack.enter_context(building.build(tool, source.units, self.flags))
            clock.sizes["object_bytes"] = built.size
            if objects and sum(clock.phases.values()) > KEPT_FROM_SECONDS:
                object_cache.keep(built, objects, self._key(tool, source))
            with clock.phase("load"), building.loading():
                return self.load(built, source)

    def load(self, built: building.Built, source: Source) -> Kernel:
        """Load the object as a kernel. Raises OSError or ImportError if the system refuses it."""
        return Library(str(built.path), source.workspace)

    @property
    def abi(self) -> str:
        """The interpreter's ABI, if objects depend on it; empty if they are called through cffi."""
        return ""

    def _key(self, tool: toolchains.Toolchain, source: Source) -> str:
        """The cache key of an object: a hash of everything that goes into it, and of the target machine."""
        target = sorted(toolchains.macros(tool, self.flags))  # -march=native depends on the processor
        parts = [*tool.command, tool.version, *self.flags, *target, self.abi, *source.units]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


class Frozen(CEngine):
    """An engine with the suffix `-frozen`: weights are constants of the C, and only the forward pass is compiled.

    It runs workloads that do not learn, such as `digits-forward`. The engine without the suffix runs them too, with its
    ordinary program, so the two differ in nothing else. As a base class, list it before the family's class.
    """

    IDEA = "weights are constants, and only the forward pass is compiled"

    def supports(self, workload: Workload) -> Optional[str]:
        return "its weights are constants, so it can't train" if workload.learns else super().supports(workload)

    def lower_workload(self, tape: Tape, parameters: Sequence[float]) -> Any:
        raise NotImplementedError

    def compile(self, *_: Any, **__: Any) -> NoReturn:
        """Raise Unavailable, because the parameters of a Program can change."""
        raise Unavailable(
            f"{self.name} runs workloads only",
            "Leave out the suffix, and name no parameters: all other leaves are constants.",
        )

    def kernel(self, tape: Tape, frozen: Optional[Sequence[float]] = None) -> NoReturn:
        raise Unavailable(
            f"{self.name} makes no standalone builds", f"Leave out the suffix: `--engine {self.builds_on} --frozen`."
        )
