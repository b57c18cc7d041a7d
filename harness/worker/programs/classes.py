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
from typing import Any

from zoomgrad.engines.api import Unavailable

OTHERS = tuple(os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "purelib", "platlib"))  # noqa: PTH118
"""Folders of libraries, whose classes stay as they are."""


def watch(*, formulas: bool) -> list[str]:
    """Replace classes like Value for the rest of the process. Returns a list of the names of those looked at so far.

    formulas: see `probe.probe`.
    """
    build, seen = builtins.__build_class__, list[str]()

    def build_class(body: Any, name: str, *bases: Any, **keywords: Any) -> Any:
        own = build(body, name, *bases, **keywords)
        is_candidate = isinstance(own, type) and _is_like_value(own) and _is_own(body)
        return _choose(own, body.__code__, seen, formulas) if is_candidate else own

    builtins.__build_class__ = build_class  # type: ignore[assignment]
    return seen


def _choose(own: Any, code: Any, seen: list[str], formulas: bool) -> Any:
    """The class in C for the program's class, or the program's own. Tells which, and adds the name to `seen`."""
    from zoomgrad.engines.native import build  # only now, because a start is short
    from zoomgrad.engines.native.dress import dress, let_find
    from zoomgrad.harness.worker.programs.probe import probe

    file = os.path.relpath(code.co_filename)
    place = f"{code.co_filename if file.startswith(os.pardir) else file}:{code.co_firstlineno}"
    try:
        value = build.load()
        if issubclass(own, value):
            return own  # derived from a class in C
        seen.append(own.__name__)
        look = probe(own, value, formulas=formulas)
    except Unavailable as none:
        look = none.reason
    if isinstance(look, str):
        tell(f"{place}: {own.__name__} runs as it is, because {look}")
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


def _is_like_value(own: type) -> bool:
    names = {name for cls in own.__mro__[:-1] for name in vars(cls)}
    return {"__add__", "__mul__"} <= names and any("back" in name for name in names)


def tell(text: str) -> None:
    """Print a line on standard error, after what the program has printed. It may have closed both."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        sys.stderr.write(f"zoomgrad: {text}\n")
