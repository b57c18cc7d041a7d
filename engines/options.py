"""An engine's name -> its row of the table and its options: `rerolled-gcc+generic+threads=2`.

The row's name comes first, then options in the order of OPTIONS, each after a plus sign, so an engine has one name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Optional

from zoomgrad.engines.api import WrongOption
from zoomgrad.engines.compiled.machine import CORES

if TYPE_CHECKING:
    from zoomgrad.engines.row import Row

MOST_THREADS = 64


@dataclass(frozen=True)
class Options:
    """The choices that distinguish engines. A row of the table makes some, and a name changes others."""

    code: str = "lines"
    """What is compiled: `lines` (straight-line code), `loops` (recovered from the tape), or the `tape` itself."""
    target: str = "C"
    """A key of `zoomgrad.engines.compiled.emit.EMITTERS`."""
    compiler: str = ""
    """`tcc`, `gcc` or `clang`; empty for an engine without a compiler of C."""
    level: Optional[int] = None
    """Of optimisation; None for TCC, which has none."""
    native: bool = False
    """Whether C is compiled for this exact processor (`-march=native`)."""
    fma: bool = False
    """Whether the compiler may fuse products with the sums that use them."""
    threads: int = 0
    """The most threads that divide a step; 0: a step is not divided."""
    frozen: bool = False
    """Whether weights are constants of the C, and only the forward pass is compiled."""
    whole: bool = False
    """Whether each pass is one function."""
    sparse: bool = False
    """Whether terms with an input of exactly 0 are skipped."""
    fast: bool = False
    """Whether sums may be reassociated, and exp, tanh and some powers have bits of their own."""
    jit: bool = False
    """Whether RPython adds its JIT."""
    form: Any = None
    """The exact form of the C, for tests; None: as suits the compiler and this machine."""
    flags: Optional[tuple[str, ...]] = None
    """The exact flags of the compiler after those for strict bits, for tests; None: as the other options say."""


class Option(NamedTuple):
    """An option in a name."""

    field: str
    """The field of Options that it sets."""
    idea: str
    """What it changes. {} is the value."""
    examples: str
    """Engines that take it."""
    pattern: str = ""
    """A regular expression for the text after its equals sign."""
    value: Callable[[str], Any] = lambda _: True
    """That text -> the field's value."""


OPTIONS = {
    "O": Option("level", "compiled with -O{}", "rerolled-gcc+O=3 or rerolled-clang+O=2", "[0-3]", int),
    "native": Option("native", "compiled for this exact processor: -march=native", "clang-O1+native"),
    "generic": Option(
        "native",
        "compiled for every processor of this kind: no -march=native",
        "rerolled-gcc+generic or handwritten+generic",
        value=lambda _: False,
    ),
    "fma": Option(
        "fma",
        "products fused with the sums that use them: one rounding for two",
        "clang-O1+fma, rerolled-clang+fma or handwritten+fma",
    ),
    "threads": Option(
        "threads",
        "divided among at most {} threads",
        "rerolled-gcc+threads=4 or numpy+threads",
        "([1-9][0-9]?)?",
        lambda text: min(int(text or CORES), MOST_THREADS),
    ),
    "frozen": Option(
        "frozen", "weights are constants, and only the forward pass is compiled", "tcc+frozen or rerolled-gcc+frozen"
    ),
    "jit": Option("jit", "with RPython's JIT, whose translation takes minutes", "rpython+jit"),
}
"""Name -> option, in the order of a name."""


def check(row: Row, texts: Sequence[str]) -> tuple[Options, list[str]]:
    """The row's options with these changes, and the idea of each. Raises WrongOption."""
    options, ideas = row.options, dict[str, str]()

    def refuse(text: str, why: str, remedy: str = row.name) -> NoReturn:
        raise WrongOption(row.name, text, why, f"use {remedy}")

    for text in texts:
        name, equals, value = text.partition("=")
        option = OPTIONS.get(name)
        if option is None:
            nearest = difflib.get_close_matches(name, row.takes, n=1)
            refuse(text, "there is no such option", "+".join([row.name, *nearest]))
        if bool(equals) != bool(value) or not re.fullmatch(option.pattern, value, re.ASCII):
            refuse(text, "its value is wrong" if option.pattern else "it takes no value", option.examples)
        if name in row.refuses:
            refuse(text, row.refuses[name], option.examples)
        changed = replace(options, **{option.field: option.value(value)})
        if row.options.compiler and changed == row.options:
            refuse(text, "it already is so")
        if name not in row.takes:
            refuse(text, "it is for other engines", option.examples)
        if name in ideas:
            refuse(text, "it has this option already", f"{row.name}+{text}")
        options = changed
        ideas[name] = option.idea.format(getattr(options, option.field))
    ordered = sorted(texts, key=lambda text: [*OPTIONS].index(text.partition("=")[0]))
    if ordered != [*texts]:
        refuse("+".join(texts), "options have a fixed order", "+".join([row.name, *ordered]))
    if options.frozen and options.threads:
        refuse("frozen", "a frozen step is not divided", f"{row.name}+frozen")
    return options, [*ideas.values()]
