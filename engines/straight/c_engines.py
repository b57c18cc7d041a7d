"""The engines that compile straight-line C: a compiler, its optimisation level, and the form of C that suits it.

Names: `tcc`, `gcc-O1`, `clang-O2`, followed in this order by changes to the compiler's default form:
`-whole` (one function for each pass) or `-published` (the post's form); `-native` (for this exact processor); `-fma`
(fused, not strict); `-frozen` (weights are constants).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Optional

from zoomgrad.engines.api import WrongSuffix
from zoomgrad.engines.graph.bind import bind
from zoomgrad.engines.graph.tape import Tape
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.kernel.c_engine import CORES, CEngine, Frozen
from zoomgrad.engines.kernel.c_text import Source
from zoomgrad.engines.straight.c_source import Form, c_source
from zoomgrad.engines.straight.lower import Code, lower
from zoomgrad.engines.straight.published import published_source
from zoomgrad.engines.suffixes import Suffixes, root

FORMS = {
    "tcc": Form(piece=400),
    "gcc": Form(piece=100, units=CORES),
    "clang": Form(piece=400, units=CORES),
}
"""Sizes from docs/results.md. gcc and Clang are slow enough that one translation unit for each core pays off."""

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
"""Compiler and optimisation level -> rough compile time per row."""
WHOLE = (30, 3)
"""Factors on compile time for one function per pass: with optimisation, and without."""


class StraightC(CEngine):
    """The tape as straight-line C, called through cffi."""

    def lower(self, tape: Tape) -> Code:
        return lower(tape)

    def generate(self, code: Code) -> Source:
        return c_source(code, self.form)


class FrozenStraightC(Frozen, StraightC):
    """Straight-line C with the weights as constants, of the forward pass only."""

    def lower_workload(self, tape: Tape, parameters: Sequence[float]) -> Code:
        return lower(bind(tape, parameters))


class PublishedEngine(CEngine):
    """The tape as C in the form that was published first."""

    def lower(self, tape: Tape) -> Tape:
        """Return the tape, because the published form translates it line by line."""
        return tape

    def generate(self, code: Tape) -> Source:
        return published_source(code)


_FORM = {"form": "whole|published"}
_GENERIC = ("it has no -march=native to leave out", "use {engine}")
OPTIMISER = Suffixes({**_FORM, "native": "native", "fma": "fma", "frozen": "frozen"}, {"generic": _GENERIC})
"""For gcc and Clang."""
TCC = Suffixes(
    {**_FORM, "frozen": "frozen"},
    {
        "native": ("TCC has no such flag", "use gcc-O1-native or clang-O1-native"),
        "fma": ("TCC has no such flag", "use gcc-O2-fma or clang-O1-fma"),
        "generic": _GENERIC,
    },
)


def resolve(name: str) -> Optional[CEngine]:
    """Return the engine with that name, or None if it follows another rule. Raises WrongSuffix."""
    plain, rest = root(name, COMPILE_ROW_SECONDS)
    if not plain or rest.startswith("extension"):
        return None
    compiler, _, level = plain.partition("-")
    taken = (TCC if compiler == "tcc" else OPTIMISER).read(plain, rest)
    named = taken.get("form", "")
    if named == "published" and "frozen" in taken:
        why = "the published form stores every node and its gradient"
        raise WrongSuffix(f"{plain}-published", "frozen", why, f"use {plain}-frozen")
    flags = [f"-{level}"] if level else []
    facts: dict[str, Any] = {}
    changes = []
    form = FORMS[compiler]
    if named == "whole":
        form = replace(form, piece=0, units=1)
        changes.append("one function for each pass")
    elif named == "published":
        changes.append("as first published: two global arrays, one assignment for each node, three huge functions")
    if "native" in taken:
        flags += toolchains.NATIVE
        facts["native"] = True
        changes.append("compiled for this exact processor: -march=native")
    if "fma" in taken:
        flags += toolchains.FUSED
        facts |= {"strict": False, "error_bound": toolchains.FUSED_ERROR_BOUND}
        changes.append(toolchains.FUSED_IDEA)
    make: type[CEngine] = PublishedEngine if named == "published" else StraightC
    builds_on = plain if changes else ("python-source" if compiler == "tcc" else "tcc")
    if "frozen" in taken:
        make, form, builds_on = FrozenStraightC, replace(form, trains=False), name.removesuffix("-frozen")
        changes.append(Frozen.IDEA)
    own = f"the tape as straight-line C, split into functions, by {plain.replace('-', ' ')}"
    return make(
        name,
        compiler,
        tuple(flags),
        form,
        typical_row_seconds=5e-9,
        typical_compile_row_seconds=COMPILE_ROW_SECONDS[plain] * _slower(named, level),
        idea="; ".join(changes) or own,
        builds_on=builds_on,
        **facts,
    )


def _slower(form: str, level: str) -> int:
    """Factor on compile time of one function for each pass, compared with many."""
    if not form or not level:
        return 1
    return WHOLE[level == "O0"]


def _known(*names: str) -> tuple[CEngine, ...]:
    return tuple(engine for name in names if (engine := resolve(name)))


ENGINES = _known(
    *("tcc", "gcc-O0", "gcc-O1", "gcc-O2", "clang-O0", "clang-O1", "clang-O2", "clang-O1-whole"),
    *("tcc-published", "clang-O0-published", "clang-O1-published"),
)
