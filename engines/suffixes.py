"""Suffixes of engine names: `clang-O1-whole-native` is `clang-O1` with two choices changed.

A family of engines lists its choices in a fixed order, so each engine has exactly one name. Any other suffix raises
WrongSuffix, which gives the reason and the remedy in one line.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from zoomgrad.engines.api import WrongSuffix


class Known(NamedTuple):
    """A suffix that some family takes."""

    pattern: str
    where: str
    """The engines that take it."""
    examples: str


KNOWN = (
    Known("native", "straight-line C of gcc and Clang", "gcc-O1-native or clang-O1-native"),
    Known("generic", "C of recovered loops or by hand", "rerolled-gcc-generic or handwritten-generic"),
    Known("fma", "C of gcc and Clang", "clang-O1-fma, rerolled-clang-fma or handwritten-fma"),
    Known("frozen", "straight-line C and C of recovered loops", "tcc-frozen or rerolled-gcc-frozen"),
    Known("whole|published", "straight-line C", "tcc-whole or clang-O1-published"),
    Known("threads", "a peer or C of recovered loops", "numpy-threads or rerolled-gcc-threads"),
    Known("threads[1-9][0-9]?", "C of recovered loops by gcc and Clang", "rerolled-gcc-threads4"),
    Known("O[0-3]", "C of gcc and Clang", "gcc-O2, clang-O1 or rerolled-clang-O3"),
)

_WORDS = ("native", "generic", "fma", "whole", "published", "frozen", "threads")


@dataclass(frozen=True)
class Suffixes:
    """The choices of a family of engines."""

    choices: Mapping[str, str] = field(default_factory=dict)
    """Choice -> regular expression. A name has at most one suffix for each choice, in this order."""
    refusals: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Suffix that users may expect but the family lacks -> the reason, and the remedy as a template over {engine}."""

    def read(self, engine: str, suffixes: str) -> dict[str, str]:
        """Return choice -> suffix. Raises WrongSuffix.

        engine: the name before the suffixes. suffixes: the text after its hyphen, or an empty string.
        """
        taken: dict[str, str] = {}
        for suffix in suffixes.split("-") if suffixes else ():
            choice = next((name for name, pattern in self.choices.items() if re.fullmatch(pattern, suffix)), None)
            if choice is None:
                self._refuse(engine, suffix)
            if choice in taken:
                raise WrongSuffix(engine, suffix, f"it already has -{taken[choice]}", f"use {engine}-{suffix}")
            taken[choice] = suffix
        ordered = [taken[choice] for choice in self.choices if choice in taken]
        if ordered != [*taken.values()]:
            raise WrongSuffix(engine, suffixes, "suffixes have a fixed order", f"use {engine}-{'-'.join(ordered)}")
        return taken

    def _refuse(self, engine: str, suffix: str) -> NoReturn:
        refused = suffix if suffix in self.refusals else suffix.rstrip("0123456789")  # -threads4 as -threads
        if refused in self.refusals:
            why, remedy = self.refusals[refused]
            raise WrongSuffix(engine, suffix, why, remedy.format(engine=engine))
        known = next((known for known in KNOWN if re.fullmatch(known.pattern, suffix)), None)
        if known:
            raise WrongSuffix(engine, suffix, f"only {known.where} takes it", f"use {known.examples}")
        nearest = [word for word in difflib.get_close_matches(suffix, _WORDS, n=3) if self._takes(word)]
        remedy = f"did you mean {engine}-{nearest[0]}?" if nearest else f"use {engine}"
        raise WrongSuffix(engine, suffix, "there is no such suffix", remedy)

    def _takes(self, suffix: str) -> bool:
        return any(re.fullmatch(pattern, suffix) for pattern in self.choices.values())


def root(name: str, engines: Iterable[str]) -> tuple[str, str]:
    """Split a name into the longest engine name that it starts with and the suffixes; both may be empty."""
    plain = max((engine for engine in engines if f"{name}-".startswith(f"{engine}-")), key=len, default="")
    return plain, name[len(plain) + 1 :] if plain else ""


NONE = Suffixes()
"""For an engine that takes no suffixes."""
