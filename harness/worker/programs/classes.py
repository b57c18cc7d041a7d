"""Class statement -> the program's class, or one in C in its place, if both compute the same.

Python calls `builtins.__build_class__` for each class statement. `watch` puts a function in its place that lets Python
build the class as it is, and looks at one that may be like micrograd's Value. Nobody has an object of that class yet,
so another one may be returned. No source is read or changed. One line on standard error says what became of the class.
"""

from __future__ import annotations

import builtins
import contextlib
import os
import sys
import sysconfig
from typing import Any, NamedTuple

from zoomgrad.engines.api import Unavailable

WRONG_USE = 2
OTHERS = tuple(os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "purelib", "platlib"))  # noqa: PTH118
"""Folders of libraries, whose classes stay as they are."""


class WrongScript(Exception):
    """The program can't run as requested. The message gives the cause and the remedy."""


class Watch(NamedTuple):
    """Which classes to look at."""

    named: str
    """The only class to replace, by name; empty for every class that is like Value."""
    formulas: bool
    """See `probe.probe`."""
    seen: list[str]
    """The names of classes that were looked at, in order."""

    def start(self) -> None:
        """For the rest of the process."""
        build = builtins.__build_class__

        def build_class(body: Any, name: str, *bases: Any, **keywords: Any) -> Any:
            own = build(body, name, *bases, **keywords)
            is_candidate = name == self.named if self.named else _is_like_value(own)
            return self._choose(own, body.__code__) if is_candidate and isinstance(own, type) and _is_own(body) else own

        builtins.__build_class__ = build_class  # type: ignore[assignment]

    def _choose(self, own: Any, code: Any) -> Any:
        from zoomgrad.engines.native import build  # only now, because a start is short
        from zoomgrad.engines.native.dress import dress, let_find
        from zoomgrad.harness.worker.programs.probe import probe

        file = os.path.relpath(code.co_filename)
        place = f"{code.co_filename if file.startswith(os.pardir) else file}:{code.co_firstlineno}"
        try:
            value = build.load()
            if issubclass(own, value):
                return own  # derived from a class in C
            self.seen.append(own.__name__)
            look = probe(own, value, formulas=self.formulas, strict=bool(self.named))
        except Unavailable as none:
            look = none.reason
        if isinstance(look, str):
            tell(f"{place}: {own.__name__} runs as it is, because {look}")
            if self.named:
                os._exit(WRONG_USE)
            return own
        cls = dress(own, look, value)
        let_find(own, cls, "__class__")
        kept = ", ".join(name.strip("_") for name, method in look.methods.items() if not method)
        parts = f"runs in C, except {kept}" if kept else "runs in C"
        reason = f"which differ: {look.note}" if look.note else "because it computes the same"
        tell(f"{place}: {own.__name__} {parts}, {reason} (--keep leaves it as it is)")
        return cls


def _is_own(body: Any) -> bool:
    """Whether a class is the program's, not one of a library."""
    file = os.path.abspath(body.__code__.co_filename)  # noqa: PTH100
    module = str(body.__globals__.get("__name__"))
    return "micrograd" in module or not (module.startswith("zoomgrad.") or file.startswith(OTHERS))


def _is_like_value(own: Any) -> bool:
    names = {name for cls in getattr(own, "__mro__", (object,))[:-1] for name in vars(cls)}
    return {"__add__", "__mul__"} <= names and any("back" in name for name in names)


def tell(text: str) -> None:
    """Print a line on standard error, after what the program has printed. It may have closed both."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        sys.stderr.write(f"zoomgrad: {text}\n")
