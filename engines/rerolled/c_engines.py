"""The engines that compile recovered loops as C.

Suffixes, in this order: `-O3` (another level of optimisation), `-generic` (without -march=native, so only with vectors
that every processor of this kind has), `-fma` (fused multiply-add, not strict), `-threads` (a thread for each core, or
as many as `-threads4` says) and `-frozen` (weights are constants), as in `rerolled-clang-generic-frozen`.

Two flags need an explanation. Clang splits 512-bit vectors in two unless -mprefer-vector-width=512 is given. gcc -O1
omits `vzeroupper` unless -fexpensive-optimizations is given, and every call to libm is slower without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Optional, Union

from zoomgrad.engines.api import Unavailable, WrongSuffix
from zoomgrad.engines.graph.bind import bind
from zoomgrad.engines.graph.tape import Tape
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.kernel.building import BuildFailed, Built
from zoomgrad.engines.kernel.c_engine import CORES, Frozen, Variant, second_level_cache
from zoomgrad.engines.kernel.c_text import Source
from zoomgrad.engines.kernel.library import Library
from zoomgrad.engines.rerolled.emit.c import c_source
from zoomgrad.engines.rerolled.emit.c_merged import c_merged
from zoomgrad.engines.rerolled.engine import reroll_regular
from zoomgrad.engines.rerolled.family import RerolledFamily
from zoomgrad.engines.rerolled.form import Form
from zoomgrad.engines.rerolled.merged.merge import Merged
from zoomgrad.engines.rerolled.rearrange.freeze import freeze
from zoomgrad.engines.rerolled.recover.groups import Irregular
from zoomgrad.engines.rerolled.step.plain import plain
from zoomgrad.engines.rerolled.step.step import Step
from zoomgrad.engines.rerolled.step.variants import variants
from zoomgrad.engines.rerolled.widths import width_of
from zoomgrad.engines.straight import c_source as straight
from zoomgrad.engines.straight.c_engines import FORMS
from zoomgrad.engines.straight.lower import Code, lower
from zoomgrad.engines.suffixes import Suffixes, root
from zoomgrad.engines.threads import pool
from zoomgrad.engines.threads.pool import MOST_THREADS


class RerolledC(RerolledFamily):
    """Loops recovered from the scalar tape, as C. An irregular tape is C in straight lines, as that of `tcc`."""

    def check(self) -> None:
        super().check()
        _ = self.fitted  # asks the compiler now, not while phases are timed

    def variants(self, code: Any) -> Sequence[Variant]:
        return [Variant(*each) for each in variants(code)] if isinstance(code, Step) else super().variants(code)

    def generate(self, code: Any) -> Source:
        if isinstance(code, Code):
            return straight.c_source(code, self.lines)
        return c_merged(code, self.fitted) if isinstance(code, Merged) else c_source(code, self.fitted)

    @property
    def lines(self) -> straight.Form:
        """The form of the C in straight lines."""
        return FORMS[self.toolchain().family]

    @property
    def is_fast(self) -> bool:
        is_fast: bool = self.form.is_fast
        return is_fast

    @property
    def vector_doubles(self) -> int:
        width: int = self.fitted.width
        return width

    @property
    def fitted(self) -> Form:
        form: Form = self.form
        if form.width == 1:
            return form
        # Ignore -mfma, which would imply wider vectors.
        asked = tuple(flag for flag in self.flags if flag.startswith("-m") and flag not in toolchains.FUSED)
        tool = self.toolchain()
        defined = toolchains.macros(tool, asked)
        width = next((width for macro, width in WIDTHS.items() if macro in defined), 2)
        registers = 32 if defined & {"__AVX512VL__", "__aarch64__"} else 16
        cache = second_level_cache() or form.cache
        widest = replace(form, width=width, registers=registers, cache=cache)
        return replace(widest, width=width_of(tool, self.flags, widest))


class ThreadedRerolledC(RerolledC):
    """Recovered loops as C that divides its work among threads."""

    def check(self) -> None:
        super().check()
        try:
            pool.load(self.toolchain())  # building it counts as no phase
        except BuildFailed as failed:
            raise Unavailable(f"no pool of threads: {failed.reason}", failed.remedy) from None

    def load(self, built: Built, workspace: int) -> Library:
        library = Library(str(built.path), workspace)
        library.use_pool(pool.load(self.toolchain()), self.form.threads)
        return library

    def sizes(self, code: Union[Step, Code]) -> Mapping[str, float]:
        return {**super().sizes(code), "threads": self.form.threads}


class FrozenRerolledC(Frozen, RerolledC):
    """Recovered loops as C with the weights as constants, of the forward pass only."""

    def lower_workload(self, tape: Tape, parameters: Sequence[float]) -> Union[Step, Code]:
        try:
            return freeze(plain(reroll_regular(tape)), parameters)
        except Irregular:
            return lower(bind(tape, parameters))

    @property
    def lines(self) -> straight.Form:
        return replace(super().lines, trains=False)


NATIVE = (*toolchains.NATIVE, *(("-mprefer-vector-width=512",) if toolchains.IS_X86 else ()))
GCC = ("-O1", *toolchains.NATIVE, "-fexpensive-optimizations")
# Not -ffast-math, which would switch the whole process to flush-to-zero.
FAST = (
    *("-ffp-contract=fast", "-fassociative-math", "-freciprocal-math"),
    *("-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno"),
)

SCALARS = Form(rearrangements=("in place", "deferred", "in rounds"))
WIDTHS = {"__AVX512F__": 8, "__AVX__": 4}
"""A compiler's macro -> doubles in the widest vector."""
VECTORS = Form(width=8, units=CORES, rearrangements=("in place", "deferred", "rows together", "in rounds"))
SPARSE = replace(VECTORS, rearrangements=("in place", "zeros skipped", "deferred", "rows together", "in rounds"))


def _engine(
    name: str, compiler: str, flags: tuple[str, ...], form: Form, make: type[RerolledC] = RerolledC, **facts: Any
) -> RerolledC:
    row_seconds = 1e-9 if compiler == "tcc" else 1e-10
    return make(name, compiler, flags, form, typical_row_seconds=row_seconds, typical_compile_row_seconds=4e-6, **facts)


ENGINES = (
    _engine("rerolled-tcc", "tcc", (), SCALARS, idea="loops recovered from the scalar tape, by TCC", builds_on="tcc"),
    _engine(
        "rerolled-gcc",
        "gcc",
        GCC,
        VECTORS,
        native=True,
        idea="loops recovered from the scalar tape, in vectors, by gcc",
        builds_on="rerolled-tcc",
    ),
    _engine(
        "rerolled-clang",
        "clang",
        ("-O1", *NATIVE),
        VECTORS,
        native=True,
        idea="loops recovered from the scalar tape, in vectors, by Clang",
        builds_on="rerolled-gcc",
    ),
    _engine(
        "rerolled-clang-sparse",
        "clang",
        ("-O1", *NATIVE),
        SPARSE,
        native=True,
        idea="plus skipping, at run time, terms whose input is exactly 0",
        builds_on="rerolled-clang",
    ),
    _engine(
        "rerolled-clang-fast",
        "clang",
        ("-O2", *NATIVE, *FAST),
        replace(VECTORS, is_fast=True),
        native=True,
        idea="plus fused multiply-add, reassociated sums and reciprocals, and its own exp, common powers and Adam",
        builds_on="rerolled-clang",
        strict=False,
        error_bound=1e-9,
    ),
)

_HAS_NATIVE = {"native": ("it already has -march=native", "use {engine}")}
_THREADS = {"threads": r"threads(?:[1-9]\d?)?"}


def _levels(own: int) -> dict[str, str]:
    """Another -O than the engine's own, so that each engine has one name."""
    return {"level": f"O[{''.join(level for level in '0123' if level != str(own))}]"}


def _has_level(own: int) -> dict[str, tuple[str, str]]:
    return {f"O{own}": (f"it already has -O{own}", "use {engine}")}


VECTORISED = Suffixes(
    {**_levels(1), "generic": "generic", "fma": "fma", **_THREADS, "frozen": "frozen"},
    {**_HAS_NATIVE, **_has_level(1)},
)
SUFFIXES = {
    "rerolled-tcc": Suffixes(
        {"frozen": "frozen"},
        {
            "generic": ("it has no -march=native to leave out", "use rerolled-gcc-generic or rerolled-clang-generic"),
            "fma": ("TCC has no such flag", "use rerolled-gcc-fma or rerolled-clang-fma"),
            "threads": ("vectors gain more", "use rerolled-gcc-threads or rerolled-clang-threads"),
            **{f"O{level}": ("TCC does not optimise", "use {engine}") for level in range(4)},
        },
    ),
    "rerolled-gcc": VECTORISED,
    "rerolled-clang": VECTORISED,
    "rerolled-clang-sparse": Suffixes(
        {**_levels(1), "generic": "generic", "fma": "fma"},
        {
            **_HAS_NATIVE,
            **_has_level(1),
            "threads": ("its lists of inputs are not divided", "use rerolled-clang-threads"),
            "frozen": ("a frozen step skips no zeros", "use rerolled-clang-frozen"),
        },
    ),
    "rerolled-clang-fast": Suffixes(
        {**_levels(2), "generic": "generic", **_THREADS, "frozen": "frozen"},
        {**_HAS_NATIVE, **_has_level(2), "fma": ("it already fuses", "use {engine}")},
    ),
}
"""Engine -> the suffixes that it takes."""


def resolve(name: str) -> Optional[RerolledC]:
    """Return an engine with suffixes, or None for other names. Raises WrongSuffix."""
    plain, rest = root(name, SUFFIXES)
    if not rest:
        return None
    taken = SUFFIXES[plain].read(plain, rest)
    base = next(engine for engine in ENGINES if engine.name == plain)
    flags, changes = base.flags, []
    facts: dict[str, Any] = {"strict": base.strict, "error_bound": base.error_bound, "native": base.native}
    form = base.form
    if "level" in taken:
        flags = tuple(f"-{taken['level']}" if flag.startswith("-O") else flag for flag in flags)
        changes.append(f"compiled with -{taken['level']}")
    if "generic" in taken:
        flags = tuple(flag for flag in flags if flag not in NATIVE)
        facts["native"] = False
        changes.append("compiled for every processor of this kind: no -march=native")
    if "fma" in taken:
        flags += toolchains.FUSED
        facts |= {"strict": False, "error_bound": toolchains.FUSED_ERROR_BOUND}
        changes.append(toolchains.FUSED_IDEA)
    make = RerolledC
    if "threads" in taken:
        if "frozen" in taken:
            raise WrongSuffix(
                name.removesuffix("-frozen"), "frozen", "a frozen step is not divided", f"use {plain}-frozen"
            )
        make = ThreadedRerolledC
        threads = min(int(taken["threads"].removeprefix("threads") or CORES), MOST_THREADS)
        form = replace(form, threads=threads, rearrangements=("in place", "deferred", "divided"))
        changes.append(f"divided among {threads} threads" if threads > 1 else "in the form for threads, on one thread")
    if "frozen" in taken:
        make, plain = FrozenRerolledC, name.removesuffix("-frozen")
        changes.append(Frozen.IDEA)
    # CEngine adds STRICT again.
    own = flags[len(toolchains.STRICT) :]
    return _engine(name, base.compiler, own, form, make, idea="; ".join(changes), builds_on=plain, **facts)
