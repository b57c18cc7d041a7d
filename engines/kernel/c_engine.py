"""An engine that compiles C: generate, compile, keep slow builds, load."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any, Callable, NamedTuple, NoReturn, Optional

from zoomgrad.engines.api import Store, Unavailable, Workload
from zoomgrad.engines.families import in_c
from zoomgrad.engines.families.trainer import Conduct
from zoomgrad.engines.graph.optimisers import Optimiser
from zoomgrad.engines.graph.tape import Tape
from zoomgrad.engines.kernel import building, object_cache, toolchains
from zoomgrad.engines.kernel.buffers import at_cache_line
from zoomgrad.engines.kernel.c_text import Source
from zoomgrad.engines.kernel.engine import Clock, CompiledEngine, Order
from zoomgrad.engines.kernel.library import Library, interface
from zoomgrad.engines.kernel.program import Buffers, Doubles, Kernel, Stretch

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def second_level_cache() -> int:
    """Bytes of a core's second-level cache; 0 if the system does not say."""
    folder = Path("/sys/devices/system/cpu/cpu0/cache/index2")
    try:
        level, size = ((folder / name).read_text(encoding="ascii").strip() for name in ("level", "size"))
    except (OSError, ValueError):
        return 0
    return int(size[:-1]) << 10 if level == "2" and re.fullmatch(r"[1-9][0-9]{0,5}K", size) else 0


class Variant(NamedTuple):
    """Code of a kernel that is fast for some batches."""

    name: str
    from_batch: int
    """The smallest batch that this variant serves. The next variant takes over at its own `from_batch`."""
    code: Any

    def __str__(self) -> str:
        return f"{self.name}, for batches from {self.from_batch} up"


def variant_for(batch: int, variants: Sequence[Variant]) -> Variant:
    """The variant to train with that batch."""
    return next((variant for variant in reversed(variants) if variant.from_batch <= batch), variants[0])


class Variants:
    """A Kernel in several variants. Each is built when a batch first needs it, because a program may never need it.

    All variants have the same workspace, buffers and bits. Calls other than `train` go to the one that was built first.
    """

    def __init__(
        self, variants: Sequence[Variant], first: Variant, kernel: Kernel, build: Callable[[Variant], Kernel]
    ) -> None:
        """Take the first variant's kernel. build: builds that of another variant."""
        self._variants = variants
        self._build = build
        self._first = first
        self._kernels = {first.name: kernel}
        self.workspace, self.set_input, self.forward = kernel.workspace, kernel.set_input, kernel.forward
        self.backward, self.zero_grad, self.update = kernel.backward, kernel.zero_grad, kernel.update
        self.late_seconds: dict[str, float] = {}
        """Variant -> seconds of its build, for variants other than the first."""
        self.late_variant = ""
        """The variant that the last `train` ran, if it is not the first."""

    def train(self, buffers: Buffers, stretch: Stretch) -> int:
        # Forward passes and empty stretches run in every variant.
        needs_its_own = stretch.learns and stretch.steps
        variant = variant_for(stretch.batch, self._variants) if needs_its_own else self._first
        if variant.name not in self._kernels:
            start = perf_counter()
            self._kernels[variant.name] = self._build(variant)
            self.late_seconds[variant.name] = perf_counter() - start
        self.late_variant = variant.name if variant is not self._first else ""
        return self._kernels[variant.name].train(buffers, stretch)


class CEngine(CompiledEngine):
    """An engine that compiles C and calls it through cffi. Subclasses define `lower` and `generate`."""

    bakes_parameters = False
    """Whether the parameters' numbers are in the C."""

    def __init__(self, name: str, compiler: str, flags: tuple[str, ...], form: Any, **facts: Any) -> None:
        super().__init__(name, **facts)
        self.compiler = compiler
        self.flags = (*toolchains.STRICT, *flags)
        self.form = form

    def check(self) -> None:
        super().check()
        tool = toolchains.find(self.compiler)
        if "-mfma" in self.flags:
            toolchains.check_fused(tool)
        interface()

    def toolchain(self) -> toolchains.Toolchain:
        """The compiler on this machine. Raises Unavailable."""
        return toolchains.find(self.compiler)

    @property
    def fitted(self) -> Any:
        """The form of the C on this machine."""
        return self.form

    @property
    def vector_doubles(self) -> int:
        """Doubles in the widest vector type in the C. A compiler may also vectorise scalar code."""
        return 1

    @property
    def is_fast(self) -> bool:
        """Whether exp, powers and a family's updates may have other bits than those of libm and Python."""
        return False

    def source(self, code: Any) -> str:
        found = self.variants(code)
        texts = []
        for variant in found:
            title = [f"/* Variant of the kernel: {variant}. */\n"] if len(found) > 1 else []
            texts += [*title, *self.generate(variant.code).units]
        return "\n".join(texts)

    def generate(self, code: Any) -> Source:
        """Generate the C in this engine's form."""
        raise NotImplementedError

    def variants(self, code: Any) -> Sequence[Variant]:
        """The kernel's variants in the order of their batches. The first one begins with batches of 1."""
        return [Variant("every batch", 1, code)]

    def conductor(self, optimiser: Optimiser) -> Conduct:
        if self.abi:  # its kernels are modules, which give no addresses
            return super().conductor(optimiser)
        tool = self.toolchain()
        if self.is_fast:
            flags = self.flags
        else:
            # The update has the bits of the Python text, so leave out flags that change rounding.
            target = (flag for flag in self.flags if flag.startswith("-m") and flag not in toolchains.FUSED)
            flags = (*toolchains.STRICT, *(("-O2",) if tool.family != "tcc" else ()), *target)
        lib = in_c.load(tool, flags, optimiser, self.vector_doubles, is_fast=self.is_fast)
        return partial(in_c.ConductorInC, lib, optimiser)

    def shared_copy(self, numbers: array[float]) -> Doubles:
        copy: Doubles = at_cache_line(numbers)
        return copy

    @contextlib.contextmanager
    def compilers(self, clock: Clock, objects: Optional[Store]) -> Iterator[Optional[building.Waiting]]:
        # On a single core, an early compiler would only slow down the lowering. A user's graph may be kept, so
        # `kernel_of` looks first. A race starts one in each block, or its blocks would differ.
        is_users = objects is not None and objects.most_bytes is not None
        if CORES == 1 or (is_users and may_be_kept(objects)):
            yield None
            return
        with contextlib.ExitStack() as stack:
            with clock.phase("compile"):
                compilers = stack.enter_context(building.waiting(self.toolchain(), self.flags))
            yield compilers

    def kernel_of(self, tape: Tape, parameters: Sequence[float], clock: Clock, order: Order) -> Kernel:
        objects = order.objects
        if not objects or objects.most_bytes is None:
            return super().kernel_of(tape, parameters, clock, order)
        order = order._replace(name=cache(lambda: self._name_of_graph(tape, parameters, order)))
        if not may_be_kept(objects):
            return super().kernel_of(tape, parameters, clock, order)
        with clock.phase("load"):
            kernel = self._kept_graph(tape, parameters, clock, order)
        if kernel:
            return kernel
        with self.compilers(clock, None) as compilers:
            return super().kernel_of(tape, parameters, clock, order._replace(compilers=compilers))

    def _kept_graph(self, tape: Tape, parameters: Sequence[float], clock: Clock, order: Order) -> Optional[Kernel]:
        """The kernel that a user's cache keeps for this graph; None if there is none."""
        assert order.objects
        assert order.name
        found = self._kept(order.objects, order.name())
        if found is None:
            return None
        kernel, facts = found
        clock.sizes.update(facts["sizes"])
        clock.sizes["parallel_compilers"] = min(facts["sizes"]["translation_units"], CORES)
        variants = [Variant(name, from_batch, None) for name, from_batch in facts["variants"]]
        if len(variants) == 1:
            return kernel
        later = order._replace(compilers=None, name=None)

        def build(variant: Variant) -> Kernel:
            by_name = {its.name: its.code for its in self.variants(self.lower_workload(tape, parameters))}
            return self._build(by_name[variant.name], Clock(), later)

        return Variants(variants, variant_for(order.batch, variants), kernel, build)

    def build(self, code: Any, clock: Clock, order: Order) -> Kernel:
        variants = self.variants(code)
        first = variant_for(order.batch, variants)
        kernel = self._build(first.code, clock, order, [(variant.name, variant.from_batch) for variant in variants])
        if len(variants) == 1:
            return kernel
        later = order._replace(compilers=None, name=None)  # each of them compiles one unit
        return Variants(variants, first, kernel, lambda variant: self._build(variant.code, Clock(), later))

    def _build(
        self,
        code: Any,
        clock: Clock,
        order: Order,
        variants: Sequence[tuple[str, int]] = (),
        facts: Mapping[str, Any] = MappingProxyType({}),
    ) -> Kernel:
        """Build a kernel, or load a kept object with the same source.

        variants: the name and smallest batch of each. facts: what else to keep with the object.
        """
        objects = order.objects
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
        name = order.name or cache(lambda: self._name_of_source(tool, source))
        if objects and not order.name and may_be_kept(objects):
            with clock.phase("load"):
                found = self._kept(objects, name())
            if found:
                kernel, kept = found
                clock.sizes["object_bytes"] = kept["sizes"]["object_bytes"]
                if objects.most_bytes is None:
                    clock.phases.clear()  # nothing was compiled, so this block of a race has no compile time
                return kernel
        with contextlib.ExitStack() as stack:
            with clock.phase("compile"):
                built = stack.enter_context(building.build(tool, source.units, self.flags, waiting=order.compilers))
            clock.sizes["object_bytes"] = built.size
            seconds = _build_seconds(clock, objects) if objects else 0.0
            with clock.phase("load"), building.loading():
                kernel = self.load(built, source.workspace)
            if objects and seconds > objects.from_seconds:
                known = {"workspace": source.workspace, "sizes": clock.sizes, "variants": variants}
                object_cache.keep(built, objects, name(), {**facts, **known})
            return kernel

    def _kept(self, objects: Store, name: str) -> Optional[tuple[Kernel, Mapping[str, Any]]]:
        """The kernel of a kept object, and what was kept with it.

        None if there is none, or if it can't be loaded, so that it is replaced.
        """
        with object_cache.kept(objects, name) as kept, contextlib.suppress(building.BuildFailed):
            if kept:
                with building.loading():
                    return self.load(kept, kept.facts["workspace"]), kept.facts
        return None

    def load(self, built: building.Built, workspace: int) -> Kernel:
        """Load the object as a kernel. Raises OSError or ImportError if the system refuses it."""
        return Library(str(built.path), workspace)

    @property
    def abi(self) -> str:
        """The interpreter's ABI, if objects depend on it; empty if they are called through cffi."""
        return ""

    def _name_of_graph(self, tape: Tape, parameters: Sequence[float], order: Order) -> str:
        """The name of the object of a graph: a hash of everything that its source depends on, our own code included.

        Empty if our code has changed since it was imported.
        """
        ours = object_cache.code_signature()
        written = (self.name, self.fitted, order.batch, order.is_passes)
        facts = (tape.constants, tape.loss, tape.outputs, tape.inputs, tape.parameters, *written)
        numbers = array("d", parameters if self.bakes_parameters else ())
        found = digest([*self._target(self.toolchain()), ours, repr(facts)])
        for column in (tape.ops, tape.left, tape.right, tape.index, numbers):
            found.update(column)
        return name_of(found) if ours else ""

    def _name_of_source(self, tool: toolchains.Toolchain, source: Source) -> str:
        """The name of the object of this source: a hash of everything that goes into it."""
        return name_of(digest([*self._target(tool), *source.units]))

    def _target(self, tool: toolchains.Toolchain) -> list[str]:
        """What an object depends on besides its source: the compiler, its flags, and the target machine."""
        target = sorted(toolchains.macros(tool, self.flags))  # -march=native depends on the processor
        return [*tool.command, tool.version, platform.machine(), *self.flags, *target, self.abi]


def name_of(found: Any) -> str:
    """The name of a kept object with that hash."""
    name: str = found.hexdigest()[:32]
    return name


def digest(parts: Sequence[str]) -> Any:
    """A hash of all parts, to which more can be added."""
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape"))  # a path may be undecodable


def may_be_kept(objects: Optional[Store]) -> bool:
    """Whether anything is kept there. Looking for a certain object needs the compiler's macros, which may take long."""
    return objects is not None and os.path.lexists(objects.folder)


def _build_seconds(clock: Clock, objects: Store) -> float:
    """The time that counts for `from_seconds`. A user's program is traced again in any case."""
    saved = clock.phases if objects.most_bytes is None else ("lower", "generate", "compile")
    return sum(clock.phases[phase] for phase in saved)


class Frozen(CEngine):
    """An engine with the suffix `-frozen`: weights are constants of the C, and only the forward pass is compiled.

    It runs workloads that do not learn, such as `digits-forward`. The engine without the suffix runs them too, with its
    ordinary program, so the two differ in nothing else. As a base class, list it before the family's class.
    """

    IDEA = "weights are constants, and only the forward pass is compiled"
    bakes_parameters = True

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
