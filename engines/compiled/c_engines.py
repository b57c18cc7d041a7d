"""The engines that compile C: a compiler, its optimisation, and the form of the C that it likes best.

Names: `tcc`, `gcc-O1`, `clang-19-O1`; then, in this order, what departs from the compiler's own form:
`-whole` (one function a pass), `-published` (the post's form) or `-p200` (functions of 200 primitives);
`-array`, `-static` or `-globals` (where values live); `-native` (for this very processor); `-fma` (fused, not strict).
The sweeps race these.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

from engines.api import WrongSuffix
from engines.compiled import objects as kept_objects
from engines.compiled import toolchains
from engines.compiled.c_source import Form, Source, Storage, c_source
from engines.compiled.engine import Clock, CompiledEngine
from engines.compiled.fusable import Fusable, fusable, fusable_as_published
from engines.compiled.library import Library, interface
from engines.compiled.lower import lower
from engines.compiled.program import Kernel
from engines.compiled.published import published_source
from engines.graph.tape import Tape
from engines.suffixes import Suffixes

KEPT_FROM_SECONDS = 10.0
"""A build that takes longer is kept for the run's later blocks."""

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

FORMS = {
    "tcc": Form(piece=400),
    "gcc": Form(piece=100, units=CORES),
    "clang": Form(piece=400, units=CORES),
}
"""Sizes from docs/sweeps.md. gcc and Clang are slow enough for a translation unit on each core."""

COMPILE_ROW_SECONDS = {
    "tcc": 6e-6,
    "gcc-O0": 8e-5,
    "gcc-O1": 1.6e-4,
    "gcc-O2": 2e-4,
    "gcc-O3": 2e-4,
    "clang-O0": 2e-5,
    "clang-O1": 9e-5,
    "clang-O2": 1.6e-4,
    "clang-O3": 1.6e-4,
}
"""Compiler and optimisation -> about how long a row takes to compile."""
WHOLE = (30, 3)
"""How much longer that takes as one function a pass: where the compiler optimises, and where it does not."""


class CEngine(CompiledEngine):
    """The tape as straight-line C, called through cffi."""

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
        """The compiler as it stands here. Raises Unavailable."""
        return toolchains.find(self.compiler)

    @property
    def vector_doubles(self) -> int:
        """Doubles of the widest vector that the C names; a compiler may find vectors in scalar code by itself."""
        return 1

    def fusable(self, tape: Tape) -> Fusable:
        """Sums of a step that could be fused with a product, whatever the C makes of them."""
        return fusable(lower(tape))

    def source(self, code: Any) -> str:
        return "\n".join(self.generate(code).units)

    def generate(self, code: Any) -> Source:
        """The C, in this engine's form."""
        return c_source(code, self.form)

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
            # The key asks the compiler for its macros: most programs compile too fast to be kept, and need none.
            if objects and os.path.lexists(objects):
                kept = stack.enter_context(kept_objects.kept(objects, self._key(tool, source)))
            else:
                kept = None
            if kept:
                clock.sizes["object_bytes"] = kept.size
                with toolchains.loading():
                    kernel = self.load(kept, source)
                clock.phases.clear()  # nothing was compiled: this block has no compile time
                return kernel
            with clock.phase("compile"):
                built = stack.enter_context(toolchains.build(tool, source.units, self.flags))
            clock.sizes["object_bytes"] = built.size
            if objects and sum(clock.phases.values()) > KEPT_FROM_SECONDS:
                kept_objects.keep(built, objects, self._key(tool, source))
            with clock.phase("load"), toolchains.loading():
                return self.load(built, source)

    def load(self, built: toolchains.Built, source: Source) -> Kernel:
        """The object as a kernel. Raises OSError or ImportError where the system refuses it."""
        return Library(str(built.path), source.workspace)

    @property
    def abi(self) -> str:
        """What else of an interpreter an object depends on; empty where it is called through cffi."""
        return ""

    def _key(self, tool: toolchains.Toolchain, source: Source) -> str:
        """What an object is known by: all that it is made of, and the machine that it is made for."""
        target = sorted(toolchains.macros(tool, self.flags))  # -march=native means another processor elsewhere
        parts = [*tool.command, tool.version, *self.flags, *target, self.abi, *source.units]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


class PublishedEngine(CEngine):
    """The tape as C in the form that was published first."""

    def lower(self, tape: Tape) -> Tape:
        """Nothing: the published form is a translation of the tape, line by line."""
        return tape

    def generate(self, code: Tape) -> Source:
        return published_source(code)

    def fusable(self, tape: Tape) -> Fusable:
        return fusable_as_published(tape)


_NAME = re.compile(
    r"(?P<compiler>(tcc|gcc|clang)(-\d+)?)(?P<level>-O[0-3])?(-(?!extension)(?P<suffixes>[a-z0-9-]*[a-z0-9]))?"
)

_FORM = {
    "piece": r"whole|published|p[1-9]\d{0,6}",
    "storage": "|".join(storage.name for storage in Storage if storage is not Storage.locals),
}
_GENERIC = ("it has no -march=native to leave out", "use {engine}")
OPTIMISER = Suffixes({**_FORM, "native": "native", "fma": "fma"}, {"generic": _GENERIC})
"""What gcc and Clang take."""
TCC = Suffixes(
    _FORM,
    {
        "native": ("TCC has no such flag", "use gcc-O1-native or clang-O1-native"),
        "fma": ("TCC has no such flag", "use gcc-O2-fma or clang-O1-fma"),
        "generic": _GENERIC,
    },
)


def resolve(name: str) -> Optional[CEngine]:
    """The engine that such a name stands for; None where it is none of ours. Raises WrongSuffix."""
    match = _NAME.fullmatch(name)
    if not match:
        return None
    compiler, level = match["compiler"], match["level"] or ""
    family = compiler.partition("-")[0]
    if bool(level) == (family == "tcc"):
        return None
    plain = f"{compiler}{level}"
    taken = (TCC if family == "tcc" else OPTIMISER).read(plain, match["suffixes"] or "")
    piece, storage = taken.get("piece", ""), taken.get("storage", "")
    if piece == "published" and storage:
        raise WrongSuffix(f"{plain}-published", storage, "it has arrays of its own", f"use {plain}-whole-{storage}")
    flags = [level] if level else []
    facts: dict[str, Any] = {}
    changes = []
    form = FORMS[family]
    if piece == "whole":
        form = replace(form, piece=0, units=1)
        changes.append("one function a pass")
    elif piece == "published":
        changes.append("as first published: two global arrays, one assignment a node, three huge functions")
    elif piece:
        form = replace(form, piece=int(piece[1:]))
        changes.append(f"functions of {form.piece} primitives")
    if storage:
        form = replace(form, storage=Storage[storage])
        changes.append(f"values: {form.storage.value}")
    if "native" in taken:
        flags += toolchains.NATIVE
        facts["native"] = True
        changes.append("compiled for this very processor: -march=native")
    if "fma" in taken:
        flags += toolchains.FUSED
        facts |= {"strict": False, "error_bound": toolchains.FUSED_ERROR_BOUND}
        changes.append(toolchains.FUSED_IDEA)
    own = f"the tape as straight-line C, split into functions, by {compiler}{f' {level[1:]}' if level else ''}"
    make = PublishedEngine if piece == "published" else CEngine
    return make(
        name,
        compiler,
        tuple(flags),
        form,
        typical_row_seconds=5e-9,
        typical_compile_row_seconds=COMPILE_ROW_SECONDS[f"{family}{level}"] * _slower(piece, level),
        idea="; ".join(changes) or own,
        builds_on=plain if changes else ("python-source" if family == "tcc" else "tcc"),
        **facts,
    )


def _slower(piece: str, level: str) -> int:
    """How much longer one function a pass takes to compile than many."""
    if piece not in ("whole", "published") or not level:
        return 1
    return WHOLE[level == "-O0"]


def _known(*names: str) -> tuple[CEngine, ...]:
    return tuple(engine for name in names if (engine := resolve(name)))


ENGINES = _known(
    *("tcc", "gcc-O0", "gcc-O1", "gcc-O2", "clang-O0", "clang-O1", "clang-O2", "clang-O1-whole"),
    *("tcc-published", "clang-O0-published", "clang-O1-published"),
)
