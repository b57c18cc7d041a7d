"""The engines that compile C: a compiler, its optimisation, and the form of the C that it likes best.

Names: `tcc`, `gcc-O1`, `clang-19-O1`; then what departs from the compiler's own form: `-whole` (one function a pass),
`-p200` (functions of 200 primitives), `-array`, `-static`, `-globals` (where values live). The sweeps race these.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

from engines.compiled import toolchains
from engines.compiled.c_source import Form, Source, Storage, c_source
from engines.compiled.engine import Clock, CompiledEngine
from engines.compiled.library import Library, interface
from engines.compiled.lower import Code
from engines.compiled.program import Kernel

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
WHOLE = 30
"""And how much longer it takes as one function."""


class CEngine(CompiledEngine):
    """The tape as straight-line C, called through cffi."""

    def __init__(self, name: str, compiler: str, flags: tuple[str, ...], form: Any, **facts: Any) -> None:
        super().__init__(name, **facts)
        self.compiler = compiler
        self.flags = (*toolchains.STRICT, *flags)
        self.form = form

    def check(self) -> None:
        toolchains.find(self.compiler)
        interface()

    def source(self, code: Code) -> str:
        return "\n".join(self.generate(code).units)

    def generate(self, code: Code) -> Source:
        """The C, in this engine's form."""
        return c_source(code, self.form)

    def build(self, code: Code, clock: Clock, objects: Optional[Path]) -> Kernel:
        with clock.phase("generate"):
            source = self.generate(code)
        clock.sizes["source_bytes"] = source.size
        tool = toolchains.find(self.compiler)
        key = _key(tool, self.flags, source)
        kept = toolchains.kept(objects, key) if objects else None
        if kept:
            clock.sizes["object_bytes"] = kept.size
            kernel = self.load(kept, source)
            clock.phases.clear()  # nothing was compiled: this block has no compile time
            return kernel
        with contextlib.ExitStack() as stack:
            with clock.phase("compile"):
                built = stack.enter_context(toolchains.build(tool, source.units, self.flags))
            clock.sizes["object_bytes"] = built.size
            if objects and sum(clock.phases.values()) > KEPT_FROM_SECONDS:
                toolchains.keep(built, objects, key)
            with clock.phase("load"):
                return self.load(built, source)

    def load(self, built: toolchains.Built, source: Source) -> Kernel:
        """The object as a kernel."""
        return Library(str(built.path), source.workspace)


def _key(tool: toolchains.Toolchain, flags: tuple[str, ...], source: Source) -> str:
    """What an object is known by: all that it is made of."""
    parts = [*tool.command, tool.version, *flags, *source.units]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


_NAME = re.compile(
    r"(?P<compiler>(tcc|gcc|clang)(-\d+)?)(?P<level>-O[0-3])?"
    r"(?P<whole>-whole)?(-p(?P<piece>[1-9]\d{0,6}))?(-(?P<storage>array|static|globals))?"
)


def resolve(name: str) -> Optional[CEngine]:
    """The engine that such a name stands for; None where it is none of ours."""
    match = _NAME.fullmatch(name)
    if not match:
        return None
    compiler, level, storage = match["compiler"], match["level"], match["storage"]
    family = compiler.partition("-")[0]
    if (level is None) != (family == "tcc") or (match["whole"] and match["piece"]):
        return None
    form = FORMS[family]
    changes = []
    if match["whole"]:
        form = replace(form, piece=0, units=1)
        changes.append("one function a pass, as first published")
    if match["piece"]:
        form = replace(form, piece=int(match["piece"]))
        changes.append(f"functions of {form.piece} primitives")
    if storage:
        form = replace(form, storage=Storage[storage])
        changes.append(f"values: {form.storage.value}")
    plain = f"{compiler}{level or ''}"
    own = f"the tape as straight-line C, split into functions, by {compiler}{f' {level[1:]}' if level else ''}"
    return CEngine(
        name,
        compiler,
        (level,) if level else (),
        form,
        typical_row_seconds=5e-9,
        typical_compile_row_seconds=COMPILE_ROW_SECONDS[f"{family}{level or ''}"] * (1 if form.piece else WHOLE),
        idea="; ".join(changes) or own,
        builds_on=plain if changes else ("python-source" if family == "tcc" else "tcc"),
    )


def _known(*names: str) -> tuple[CEngine, ...]:
    return tuple(engine for name in names if (engine := resolve(name)))


ENGINES = _known("tcc", "gcc-O0", "gcc-O1", "gcc-O2", "clang-O0", "clang-O1", "clang-O2", "clang-O1-whole")
