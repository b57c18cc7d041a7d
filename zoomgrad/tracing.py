"""One run of a function, watched: which Values it makes, and whether it reads a number.

A graph describes a function for all numbers only if the function never looks at one. So while it runs, the class Value
has hooks in place of `data`, `grad`, `backward` and its copies. They look at the thread, so other threads compute as
before. The data that the function takes are `Datum` objects: leaves that behave like the Python number of the call in
every operation whose bits a graph keeps. Everything else, such as `if x > 0` or `x / 255`, counts as a look.

An error of an operation on Values is a look too, because the function may go on without the result.

A profile function notes what the run calls: the program's code, and whatever is not on the lists of `permitted.py`.

A look ends the run. Example: in `v = w * x; return v if v.data > 0 else -v`, the hook of `data` raises `Looked`, so
`trace` returns no graph but the place, `reads .data in loss.py, line 3`. Before its first trace, the function has run
to its end without hooks, so it is known to touch nothing that a run could leave behind, such as a lock.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Callable, NoReturn, Optional

from zoomgrad.engines import value_base
from zoomgrad.engines.graph import value as recording
from zoomgrad.engines.graph.collector import COLLECTOR
from zoomgrad.permitted import MODULES, is_permitted, place, shown
from zoomgrad.watch import ATTRIBUTES, BACKWARD, is_program

TRACING = threading.RLock()
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
        self.raising: list[Any] = []
        """Results of operations that raise an error for some numbers."""
        self.copies: list[tuple[Any, Any]] = []
        """A leaf that the function has made of a datum, and the datum."""
        self.ran: dict[int, types.CodeType] = {}
        """The program's code that has run, by its id."""
        self.called = ""
        """The first call that is not permitted, and its place; empty if there was none."""
        self.result: Any = None
        """What the function returned; None after a look."""
        self._printing: Any = None

    def looks(self, what: str) -> NoReturn:
        """End the run."""
        self.look = self.look or f"{what} in {_place()}"
        raise Looked

    def profile(self, frame: types.FrameType, event: str, function: Any) -> None:
        """Note a call. `sys.setprofile` describes the events."""
        if self._printing is not None:  # what `print` prints to is not part of the function
            if frame is self._printing and event.startswith("c_") and function is print:
                self._printing = None
        elif event == "call":
            code = frame.f_code
            if id(code) in self.ran:
                return
            if not _is_ours(frame) and is_program(None, code.co_filename):
                self.ran[id(code)] = code
            elif not _is_pure(frame) and not self.called:
                self.called = f"calls {frame.f_globals.get('__name__')}.{code.co_name} in {_place()}"
        elif event == "c_call" and not self.called and id(frame.f_code) in self.ran:
            if function is print:
                self._printing = frame
            elif not is_permitted(function):
                self.called = f"calls {shown(function)} in {_place()}"


def is_tracing() -> bool:
    """Whether this thread is in a run."""
    now = run  # another thread may end its run meanwhile
    return now is not None and now.thread == threading.get_ident()


def trace(hooks: Any, function: Callable[..., Any], arguments: Sequence[Any], named: dict[str, Any]) -> Run:
    """Run the function.

    hooks: a context manager, `hooks_on` a class or one that does nothing. Raises what the function raises.
    """
    global run
    with TRACING:
        started = Run()
        with hooks, _quiet_collector():
            run = started
            before = sys.getprofile()
            if before is not None and not isinstance(before, (types.FunctionType, types.MethodType)):
                started.called = "runs under a profiler written in C, which can't be suspended"
            try:
                if not started.called:
                    sys.setprofile(started.profile)
                started.result = function(*arguments, **named)
            except Looked:
                pass
            except Exception:
                if not started.look:  # else it is a consequence of the look
                    raise
            finally:
                if not started.called.startswith("runs under"):
                    sys.setprofile(before)
                run = None
        return started


@contextlib.contextmanager
def _quiet_collector() -> Iterator[None]:
    """Run no finalizers and no hooks of the garbage collector, which are not part of the function."""
    hooks = getattr(gc, "hooks", None)  # PyPy has hooks
    found = {name: getattr(hooks, name) for name in dir(hooks) if name.startswith("on_gc_")}
    before = {name: hook for name, hook in found.items() if hook is not None}
    with COLLECTOR.paused():
        try:
            for name in before:
                setattr(hooks, name, bool)  # not None: PyPy calls a hook some time after the collection
            yield
        finally:
            for name, hook in before.items():
                setattr(hooks, name, hook)


def _place() -> str:
    """The innermost frame of the program, else of anything that is not ours."""
    frames = [sys._getframe(1)]
    while frames[-1].f_back is not None:
        frames.append(frames[-1].f_back)
    frame = next((each for each in frames if is_program(None, each.f_code.co_filename)), frames[-1])
    return place(frame.f_code, frame.f_lineno)


_OURS = (
    "zoomgrad.engines.native.build",
    "zoomgrad.engines.nn",
    "zoomgrad.engines.value_base",
    "zoomgrad.engines.arguments",
    "zoomgrad.engines.graph.",
    "zoomgrad.harness.worker.programs.stand_in",  # gives a Value the names of a class that it replaces
    "zoomgrad.tracing",
)
"""Modules of ours whose functions a traced function may call."""


def _is_ours(frame: types.FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith("zoomgrad.")


_OF_CONTEXT = ("_contextvars", "_immutables_map")
"""PyPy's modules in Python through which a library in C, such as NumPy, reads its settings."""


def _is_pure(frame: types.FrameType) -> bool:
    """Whether a library's function depends on its arguments only."""
    name, code = str(frame.f_globals.get("__name__")), frame.f_code
    if _is_ours(frame):
        # A compiled function may call another one.
        return name.startswith(_OURS) or (name == "zoomgrad.decorator" and code.co_name in ("__call__", "__get__"))
    asks: Optional[types.FrameType] = frame
    while asks is not None and asks.f_globals.get("__name__") in _OF_CONTEXT:
        asks = asks.f_back
    is_builtin = asks is not None and asks.f_code.co_filename.startswith("<builtin>")
    return is_builtin or name.partition(".")[0].lstrip("_") in MODULES


# --- hooks -----------------------------------------------------------------------------------------------------------

_OPERATORS = recording.__dict__
"""Globals of the Value in Python, whose operators read `data` themselves."""

_DERIVED = value_base.__dict__
"""Those of the operators that all classes share."""


def _is_operator(frame: types.FrameType) -> bool:
    names = frame.f_globals
    return names is _OPERATORS or names is _DERIVED or names is globals()


@contextlib.contextmanager
def hooks_on(value: Any) -> Iterator[None]:
    """Put hooks on the class, and restore it."""
    hooks: dict[str, Any] = {"__init__": _constructor(value.__init__)}
    for name in ATTRIBUTES:
        hooks[name] = _attribute(name, getattr(value, name))
    for name in (*BACKWARD, "__copy__", "__deepcopy__", "__reduce__", "__hash__", "__repr__"):
        if name in ("__hash__", "__repr__") or name in vars(value):
            hooks[name] = _method(name, getattr(value, name))
    for name in ("__pow__", "__truediv__", "__rtruediv__", "exp", "log", "sigmoid"):  # others raise no error
        hooks[name] = _operation(name, getattr(value, name))
    before = {name: vars(value).get(name) for name in hooks}
    try:
        for name, hook in hooks.items():
            setattr(value, name, hook)
        builtins.isinstance = _isinstance_hook
        yield
    finally:
        builtins.isinstance = _isinstance
        for name, attribute in before.items():
            if attribute is not None:
                setattr(value, name, attribute)
            else:
                delattr(value, name)


_isinstance = isinstance


def _isinstance_hook(found: Any, kinds: Any) -> bool:
    """`isinstance`, which says of data what it would say of the number."""
    if _is_datum(found) and is_tracing() and not _is_ours(sys._getframe(1)):
        if type(found).kind is None:
            run.looks("asks for the type of computed data")  # type: ignore[union-attr]
        says = issubclass(type(found).kind, kinds)
        if type(found).kind.__module__ == "numpy" and says != issubclass(int if _is_whole(found) else float, kinds):
            run.looks("asks for the type of an array's entry")  # type: ignore[union-attr]  # after tolist() another one
        return says
    return _isinstance(found, kinds)


def _attribute(name: str, slot: Any) -> property:
    def read(v: Any) -> Any:
        if is_tracing() and not _is_operator(sys._getframe(1)):
            run.looks(f"reads .{name}")  # type: ignore[union-attr]
        return slot.__get__(v)

    def write(v: Any, new: Any) -> None:
        # No number depends on a label that nobody reads.
        if name != "label" and is_tracing() and not _is_operator(sys._getframe(1)):
            run.looks(f"changes .{name}")  # type: ignore[union-attr]
        slot.__set__(v, new)

    return property(read, write)


def _method(name: str, method: Any) -> Any:
    def hook(v: Any, *arguments: Any) -> Any:
        if is_tracing():
            run.looks(f"calls {name}()")  # type: ignore[union-attr]
        return method(v, *arguments)

    return hook


def _operation(name: str, operate: Any) -> Any:
    def hook(*operands: Any) -> Any:
        if not is_tracing():
            return operate(*operands)
        assert run is not None
        try:
            out = operate(*operands)
        except Exception as error:
            run.looks(f"gets {type(error).__name__} from {name}")
        if out is not NotImplemented:
            run.raising.append(out)
        return out

    return hook


def _constructor(construct: Any) -> Any:
    in_python = isinstance(construct, types.FunctionType)

    def hook(v: Any, *arguments: Any, **named: Any) -> None:
        if not is_tracing():
            construct(v, *arguments, **named)
            return
        assert run is not None
        is_operator = sys._getframe(1).f_globals is _OPERATORS
        # Operators in C construct their result in the name of the function that uses them.
        if in_python and not is_operator and (arguments[1:2] or named.get("_children")) not in ((), ((),), None):
            run.looks("makes a Value with operands")
        number: Any = arguments[0] if arguments else named.get("data")
        if _is_datum(number):
            if number._prev:
                run.looks("makes a Value of computed data")
            construct(v, 0.0, *arguments[1:], **{key: each for key, each in named.items() if key != "data"})
            run.copies.append((v, number))
            return
        construct(v, *arguments, **named)
        if not is_operator:
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

_OF_OBJECTS = {f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge", "hash", "repr", "str", "format")}
_LOOKS = {name for name in (*dir(int), *dir(float)) if name.startswith("__") and not hasattr(object, name)}
_LOOKS |= _OF_OBJECTS | {"__complex__", "__matmul__", "__rmatmul__"}
"""Methods that need the number, except the arithmetic below."""


@cache
def datum_class(value: Any, kind: Any, is_whole: bool) -> Any:
    """The class of data for this class Value.

    kind: the number's class, such as float; None for the result of an operation on other kinds. is_whole: whether it is
    an int's.
    """

    def exactly(operate: Any) -> Any:
        def operator(v: Any, *others: Any) -> Any:
            # A negation multiplies by -1.
            if others and is_whole and _is_whole(others[0]) and others[0] is not _MINUS_ONE:
                _look("multiplies ints, which doubles may round")
            out = done(operate, v, *others)
            # An int has no negative zero.
            return kept(add(out, 0.0) if is_whole and all(map(_is_whole, others)) else out, v, *others)

        return operator

    def done(operate: Any, *operands: Any) -> Any:
        try:
            return operate(*operands)
        except Exception:  # a number might raise another one, or none
            return _look("uses data where no number is expected")

    def kept(out: Any, *operands: Any) -> Any:
        """The result as data, if all operands are."""
        if all(_is_datum(each) or type(each) in (int, float) for each in operands):
            kinds = {type(each).kind if _is_datum(each) else type(each) for each in operands}
            whole = all(map(_is_whole, operands))
            known = (int if whole else float) if kinds <= {int, float} else None
            _CLASS.__set__(out, datum_class(value, known, whole))
        elif not all(isinstance(each, value) for each in operands):
            _look("uses data with a number of another type")
        return out

    def adding(operate: Any) -> Any:
        def operator(v: Any, other: Any) -> Any:
            if _is_datum(other) or not isinstance(other, value):
                # `sum` calls this too, and it rounds floats as no sequence of additions does; ints may become too large
                _look("adds data to data or numbers")
            return kept(done(operate, v, other), v, other)

        return operator

    def subtract(v: Any, other: Any) -> Any:
        if _is_datum(other) or not isinstance(other, value):
            _look("adds data to data or numbers")
        return kept(done(add, v, -other), v, other)

    def subtracted(v: Any, other: Any) -> Any:
        if _is_datum(other) or not isinstance(other, value):
            _look("adds data to data or numbers")
        return kept(done(add, other, -v), v, other)

    def divide(v: Any, other: Any) -> Any:
        if _is_datum(other) or not isinstance(other, value):
            return _look("divides data, which a Value would round differently,")
        return v * other**-1

    def divided(v: Any, other: Any) -> Any:
        if _is_datum(other) or not isinstance(other, value):
            return _look("divides by data, which a Value would round differently,")
        return other * value.__pow__(v, -1)

    def _look(what: str) -> Any:
        if is_tracing():
            run.looks(what)  # type: ignore[union-attr]
        raise RuntimeError("data of a trace were used after it\n  Keep numbers, not what the function was given.")

    def looking(name: str) -> Any:
        ordinary = (
            getattr(value, name, None) if name in ("__eq__", "__ne__", "__hash__", "__repr__", "__str__") else None
        )

        def method(v: Any, *others: Any) -> Any:
            if is_tracing() or ordinary is None:
                return _look(f"needs the number of an input ({name})")
            return ordinary(v, *others)

        return method

    def attribute(v: Any, name: str) -> Any:
        # A number has other attributes, and an error for a missing one could be caught.
        if name != "__class__" and is_tracing() and not _is_ours(sys._getframe(1)):
            _look(f"uses .{name} of an input")
        return value.__getattribute__(v, name)

    def pretended(_: Any) -> Any:
        return kind if kind is not None else _look("asks for the type of computed data")

    add = value.__add__
    body: dict[str, Any] = {"__slots__": (), "is_datum": True, "kind": kind, "whole": is_whole}
    body.update({name: looking(name) for name in _LOOKS})
    body.update({name: exactly(getattr(value, name)) for name in ("__mul__", "__rmul__", "__neg__")})
    body.update({name: adding(getattr(value, name)) for name in ("__add__", "__radd__")})
    body.update(__sub__=subtract, __rsub__=subtracted, __getattribute__=attribute)
    body.update(__truediv__=divide, __rtruediv__=divided)
    # isinstance then says what it would say of the number
    return type("IntDatum" if is_whole else "Datum", (value,), {**body, "__class__": property(pretended)})


def _is_whole(number: Any) -> bool:
    return bool(type(number).whole) if _is_datum(number) else isinstance(number, int)
