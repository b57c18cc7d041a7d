"""One run of a function, watched: which Values it makes, and whether it reads a number.

A graph describes a function for all numbers only if the function never looks at one. So while it runs, the class Value
has hooks in place of `data`, `grad`, `backward` and its copies. They look at the thread, so other threads compute as
before. The data that the function takes are `Datum` objects: leaves that behave like the Python number of the call in
every operation whose bits a graph keeps. Everything else, such as `if x > 0` or `x / 255`, counts as a look.

A look ends the run. Example: in `v = w * x; return v if v.data > 0 else -v`, the hook of `data` raises `Looked`, so
`trace` returns no graph but the place, `reads .data in loss.py, line 3`.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Callable, NoReturn, Optional

import engines.graph.value
from zoomgrad.watch import is_program

_TRACING = threading.RLock()
"""Hooks are on the class, so one thread traces at a time."""

run: Optional[Run] = None
"""The run in progress. Only the thread that holds the lock sets it."""


class Looked(BaseException):
    """Ends a run at its first look at a number. No `except Exception` of the program stops it."""


class Run:
    """What a run has done so far."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.look = ""
        """The first look at a number, and its place; empty if there was none."""
        self.made: list[Any] = []
        """Leaves that the function has made by calling Value."""
        self.operands: list[Any] = []
        """Leaves that the operators of the Value in Python have made of numbers."""
        self.copies: list[tuple[Any, Any]] = []
        """A leaf that the function has made of a datum, and the datum."""

    def looks(self, what: str) -> NoReturn:
        """End the run."""
        self.look = self.look or f"{what} in {_place()}"
        raise Looked


def is_tracing() -> bool:
    """Whether this thread is in a run."""
    now = run  # another thread may end its run meanwhile
    return now is not None and now.thread == threading.get_ident()


def trace(value: Any, function: Callable[..., Any], arguments: Sequence[Any], named: dict[str, Any]) -> Any:
    """Run the function with hooks. Returns the Run and the function's result, which is None after a look.

    Raises what the function raises.
    """
    global run
    with _TRACING:
        started = Run()
        with _hooks(value):
            run = started
            try:
                result = function(*arguments, **named)
            except Looked:
                result = None
            except Exception:
                if not started.look:  # else it is a consequence of the look
                    raise
                result = None
            finally:
                run = None
        return started, result


def _place() -> str:
    """The innermost frame of the program, else of anything that is not ours."""
    frames = [sys._getframe(1)]
    while frames[-1].f_back is not None:
        frames.append(frames[-1].f_back)
    frame = next((each for each in frames if is_program(None, each.f_code.co_filename)), frames[-1])
    code = frame.f_code
    return f"{code.co_name}, line {frame.f_lineno} of {code.co_filename.replace(chr(92), '/').rpartition('/')[2]}"


# --- hooks -----------------------------------------------------------------------------------------------------------

_OPERATORS = engines.graph.value.__dict__
"""Globals of the Value in Python, whose operators read `data` themselves."""


@contextlib.contextmanager
def _hooks(value: Any) -> Iterator[None]:
    """Put hooks on the class, and restore it."""
    hooks: dict[str, Any] = {"__init__": _constructor(value.__init__)}
    for name in ("data", "grad", "label"):
        hooks[name] = _attribute(name, getattr(value, name))
    for name in ("backward", "_contribute", "__copy__", "__deepcopy__", "__reduce__"):
        if name in vars(value):
            hooks[name] = _method(name, getattr(value, name))
    before = {name: vars(value)[name] for name in hooks}
    try:
        for name, hook in hooks.items():
            setattr(value, name, hook)
        yield
    finally:
        for name, attribute in before.items():
            setattr(value, name, attribute)


def _attribute(name: str, slot: Any) -> property:
    def read(v: Any) -> Any:
        if is_tracing() and sys._getframe(1).f_globals is not _OPERATORS:
            run.looks(f"reads .{name}")  # type: ignore[union-attr]
        return slot.__get__(v)

    def write(v: Any, new: Any) -> None:
        # No number depends on a label that nobody reads.
        if name != "label" and is_tracing() and sys._getframe(1).f_globals is not _OPERATORS:
            run.looks(f"changes .{name}")  # type: ignore[union-attr]
        slot.__set__(v, new)

    return property(read, write)


def _method(name: str, method: Any) -> Any:
    def hook(v: Any, *arguments: Any) -> Any:
        if is_tracing():
            run.looks(f"calls {name}()")  # type: ignore[union-attr]
        return method(v, *arguments)

    return hook


def _constructor(construct: Any) -> Any:
    def hook(v: Any, *arguments: Any, **named: Any) -> None:
        if not is_tracing():
            construct(v, *arguments, **named)
            return
        assert run is not None
        number: Any = arguments[0] if arguments else named.get("data")
        if _is_datum(number):
            if number._prev:
                run.looks("makes a Value of computed data")
            construct(v, 0.0, *arguments[1:], **{key: each for key, each in named.items() if key != "data"})
            run.copies.append((v, number))
            return
        construct(v, *arguments, **named)
        if sys._getframe(1).f_globals is not _OPERATORS:
            run.made.append(v)
        elif len(arguments) == 1:
            run.operands.append(v)

    return hook


# --- data ------------------------------------------------------------------------------------------------------------


def _is_datum(v: Any) -> bool:
    return getattr(type(v), "is_datum", False)


_MINUS_ONE = -1
_CLASS = vars(object)["__class__"]
"""Sets an object's class, although a Datum's own `__class__` says something else."""

_LOOKS = frozenset(
    f"__{name}__"
    for name in (
        "abs",
        "bool",
        "ceil",
        "divmod",
        "eq",
        "float",
        "floor",
        "floordiv",
        "format",
        "ge",
        "gt",
        "hash",
        "index",
        "int",
        "le",
        "lt",
        "mod",
        "ne",
        "pow",
        "rdivmod",
        "rfloordiv",
        "rmod",
        "round",
        "rpow",
        "trunc",
    )
)


@cache
def datum_classes(value: Any) -> tuple[Any, Any]:
    """The classes of data that are floats and of data that are ints, for this class Value."""

    def exactly(operate: Any) -> Any:
        def operator(v: Any, *others: Any) -> Any:
            # A negation multiplies by -1.
            if others and isinstance(v, int) and isinstance(others[0], int) and others[0] is not _MINUS_ONE:
                _look(v, "multiplies ints, which doubles may round")
            return kept(operate(v, *others), v, *others)

        return operator

    def kept(out: Any, *operands: Any) -> Any:
        """The result as data, if all operands are."""
        if all(_is_datum(each) or isinstance(each, (int, float)) for each in operands):
            _CLASS.__set__(out, whole if all(isinstance(each, int) for each in operands) else real)
        return out

    def adding(operate: Any) -> Any:
        def operator(v: Any, other: Any) -> Any:
            if isinstance(other, (int, float)):
                # `sum` calls this too, and it rounds floats as no sequence of additions does; ints may become too large
                _look(v, "adds data to data or numbers")
            return kept(operate(v, other), v, other)

        return operator

    def subtract(v: Any, other: Any) -> Any:
        return kept(add(v, -other), v, other)

    def subtracted(v: Any, other: Any) -> Any:
        return kept(add(-v, other) if isinstance(other, (int, float)) else add(other, -v), v, other)

    def divide(v: Any, other: Any) -> Any:
        if _is_datum(other) or not isinstance(other, value):
            return _look(v, "divides data, which a Value would round differently,")
        return v * other**-1

    def divided(v: Any, other: Any) -> Any:
        if _is_datum(other) or not isinstance(other, value):
            return _look(v, "divides by data, which a Value would round differently,")
        return other * power(v, -1)

    def _look(v: Any, what: str) -> Any:
        if is_tracing():
            run.looks(what)  # type: ignore[union-attr]
        raise RuntimeError("data of a trace were used after it\n  Keep numbers, not what the function was given.")

    def looking(name: str) -> Any:
        ordinary = getattr(object, name, None)

        def method(v: Any, *others: Any) -> Any:
            if is_tracing() or ordinary is None:
                return _look(v, f"needs the number of an input ({name})")
            return ordinary(v, *others)

        return method

    power, add = value.__pow__, value.__add__
    body: dict[str, Any] = {"__slots__": (), "is_datum": True}
    body.update({name: exactly(getattr(value, name)) for name in ("__mul__", "__rmul__", "__neg__")})
    body.update({name: adding(getattr(value, name)) for name in ("__add__", "__radd__")})
    body.update(__sub__=subtract, __rsub__=subtracted)
    body.update({name: looking(name) for name in _LOOKS}, __truediv__=divide, __rtruediv__=divided)
    # isinstance then says what it would say of the number
    real: Any = type("Datum", (value,), {**body, "__class__": property(lambda _: float)})
    whole: Any = type("IntDatum", (value,), {**body, "__class__": property(lambda _: int)})
    return real, whole
