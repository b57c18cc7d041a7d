"""One run of a function that records its graph, and notes whether it looks at a number.

A graph describes a function for all numbers only if the function never looks at one. So while it runs, the class Value
has hooks in place of its attributes. They act only in the run's thread, so others compute as before. The data that the
function takes are `Datum` objects: leaves that behave like the Python number of the call in every operation whose bits
a graph keeps. Everything else, such as `if x > 0` or `x / 255`, is a look.

A look is noted with its place, and answered with the number of the call. So the run takes the path of the run before
it, releases what it locks, and ends. Only `backward` and new numbers for Values are left out, because they last.
"""

from __future__ import annotations

import contextlib
import linecache
import re
import sys
import threading
from collections.abc import Iterator
from functools import cache
from typing import Any, Callable, NamedTuple, Optional

from zoomgrad.engines.graph.collector import paused
from zoomgrad.signature import NotTraced, Signature, put_together, take_apart

TRACING = threading.RLock()
"""Hooks are on the class, so one thread traces at a time."""

run: Optional[Run] = None
"""The run in progress. Only the thread that holds the lock sets it."""


class Run:
    """What a run has done so far."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.look: Optional[NotTraced] = None
        """The first look at a number."""
        self.copies: list[tuple[Any, Any]] = []
        """A leaf that the function has made of a datum, and the datum."""


def is_tracing() -> bool:
    """Whether this thread is in a run."""
    now = run  # another thread may end its run meanwhile
    return now is not None and now.thread == threading.get_ident()


class Traced(NamedTuple):
    """What one run of the function recorded."""

    returned: Signature
    """What the function returned. The first of its Values is the loss."""
    inputs: list[Any]
    sources: list[int]
    """Input -> the position of its number among the arguments'."""
    parameters: list[Any]
    """The leaves that stand for the call's Values come first, then those that the function reached itself."""
    places: list[int]
    """Position among the arguments' Values, for each of the former."""
    used: list[int]
    """Positions of the parameters that the loss depends on. A backward pass leaves other gradients alone."""


def trace(value: Any, function: Callable[..., Any], signature: Signature, plain: Any) -> Traced:
    """Run the function on Datums. plain: what it returned when it ran as it is, on the same arguments.

    Raises NotTraced if the graph would not hold for other numbers.
    """
    before = {id(v): v for root in _returned(value, plain).values for v in root.topo()}
    # A Value that was computed before the call is a leaf here.
    leaves = [value(v.data) if v._prev else v for v in signature.values]
    data: list[Any] = []

    def datum(number: float, kind: Any) -> Any:
        data.append(datum_class(value)(int(number) if kind.__name__.startswith("int") else number))
        return data[-1]

    recorded, result = _recorded(value, function, *put_together(signature, leaves, datum))
    if recorded.look is not None:
        raise recorded.look
    returned = _returned(value, result)
    loss, *outputs = returned.values
    if not loss._prev:  # the interpreter sets its gradient, and adds to all others
        raise NotTraced("its loss is a leaf, so there is nothing to compile", "Return the result of an operation.")
    if any(map(is_datum, outputs)):
        raise NotTraced("it returns a number of its arguments", "Return Values only.")
    computed = {id(v): v for root in (loss, *outputs) for v in root.topo() if v._prev}
    for v in computed.values():
        if id(v) in before:
            raise NotTraced(f"it uses the result of {v._op!r}, computed before the call", "Compute it inside.")
        if type(v.data).__name__ not in ("int", "float", "float64"):
            raise NotTraced(f"it computes with a {type(v.data).__name__}", "Use doubles; powers of positive numbers.")
    return _sorted(returned, data, recorded.copies, leaves, before)


def _returned(value: Any, result: Any) -> Signature:
    """What a function returned, taken apart."""
    loss = result[0] if isinstance(result, tuple) and result else result
    if not isinstance(loss, value):
        raise NotTraced(
            f"it returned a {type(loss).__qualname__} of {type(loss).__module__}, not zoomgrad's Value",
            "Return the loss, or a tuple of the loss and outputs: `from zoomgrad import Value`.",
        )
    returned = take_apart(value, result)
    if returned.objects:
        kind = type(returned.objects[0]).__name__
        raise NotTraced(f"it returns a {kind} beside the loss", "Return Values, numbers and texts.")
    return returned


def _recorded(value: Any, function: Callable[..., Any], arguments: Any, named: Any) -> tuple[Run, Any]:
    """Run the function with hooks."""
    global run
    with TRACING, paused(), _hooks_on(value):
        recorded = run = Run()
        try:
            return recorded, function(*arguments, **named)
        except Exception as error:
            text = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            remedy = "Use data only in sums and products with Values."
            raise recorded.look or NotTraced(f"it can't be traced ({text})", remedy) from error
        finally:
            run = None


def _sorted(
    returned: Signature, data: list[Any], copies: list[tuple[Any, Any]], arguments: list[Any], before: dict[int, Any]
) -> Traced:
    """Sort the graph's leaves into inputs and parameters; all others are constants.

    A leaf that the function also reached in the run before is a parameter. One that it makes is another each time.
    """
    sources = {id(v): place for place, v in enumerate(data)}
    sources.update([(id(v), sources[id(of)]) for v, of in copies])
    places = {id(v): place for place, v in enumerate(arguments)}
    leaves = {id(v): v for root in returned.values for v in root.topo() if not v._prev}
    inputs = [v for key, v in leaves.items() if key in sources]
    taken = [v for key, v in leaves.items() if key in places]
    reached = [v for key, v in leaves.items() if key in before and key not in places]
    of_loss = {id(v) for v in returned.values[0].topo()}
    used = [at for at, v in enumerate([*taken, *reached]) if id(v) in of_loss]
    origins, positions = [sources[id(v)] for v in inputs], [places[id(v)] for v in taken]
    return Traced(returned, inputs, origins, [*taken, *reached], positions, used)


# --- looks -----------------------------------------------------------------------------------------------------------

_REMEDIES = {
    r".*(?<![.\w])max\(": "Write `functools.reduce(lambda a, b: a.max(b), values)`: `Value.max` is part of the graph.",
    r".*\(__(index|hash)__\)": "Pass a one-hot target, and write `sum(t * v for t, v in zip(target, values))`.",
    "gets": "Keep the operand where the operation is defined, for example with `max`.",
    "reads|calls|changes": "Return that Value as an output, and use its number after the call.",
    "": "Prepare the data before the call.",
}
"""Pattern of a look and its line of code -> its remedy. The first that matches counts."""


def _look(what: str) -> None:
    """Note a look at a number, if it is the first."""
    if run is None or run.look is not None:
        return
    frame = sys._getframe(1)
    while frame.f_back is not None and is_library(frame.f_globals.get("__name__")):
        frame = frame.f_back
    code, line = frame.f_code, frame.f_lineno
    text = f"{what} {linecache.getline(code.co_filename, line)}"
    remedy = next(remedy for pattern, remedy in _REMEDIES.items() if re.match(pattern, text))
    file = code.co_filename.replace("\\", "/").rpartition("/")[2]
    run.look = NotTraced(f"it {what} in {code.co_name}, line {line} of {file}", remedy)


_LIBRARIES = {*getattr(sys, "stdlib_module_names", ()), "builtins", "zoomgrad", "numpy"} - {"__main__", "types"}
"""`types` has a namespace that programs use for state. CPython 3.9 has no such list, so `held` follows the library."""


def is_library(module: Any) -> bool:
    """Whether code of that name is zoomgrad's, NumPy's or the standard library's, not the program's."""
    return str(module).partition(".")[0] in _LIBRARIES


_OPERATORS = {__name__, "zoomgrad.engines.graph.value", "zoomgrad.engines.value_base"}
_OPERATORS |= {"zoomgrad.engines.native.dress", "zoomgrad.engines.native.attributes"}
"""Modules of the operators in Python, which read `data` themselves."""


def _looks() -> bool:
    """Whether the caller of a hook looks at a number in a run."""
    return is_tracing() and sys._getframe(2).f_globals.get("__name__") not in _OPERATORS


# --- hooks -----------------------------------------------------------------------------------------------------------

_LASTING = ("backward", "_contribute")  # their effects last, so a run leaves them out
_LOOKING = ("__hash__", "__repr__")
"""Python finds them without reading an attribute."""
_RAISING = ("__pow__", "__truediv__", "__rtruediv__", "exp", "log", "sigmoid")
"""Operations with errors, which the function could catch. Others raise none."""


@contextlib.contextmanager
def _hooks_on(value: Any) -> Iterator[None]:
    """Put hooks on the class, and restore it."""
    hooks = {"__init__": _constructor(value.__init__), "__setattr__": _write}
    hooks["__getattribute__"] = _reading(value.__getattribute__)
    hooks.update({name: _method(name, getattr(value, name)) for name in (*_LOOKING, *_RAISING)})
    before = {name: vars(value).get(name) for name in hooks}
    try:
        for name, hook in hooks.items():
            setattr(value, name, hook)
        yield
    finally:
        for name, attribute in before.items():
            if attribute is not None:
                setattr(value, name, attribute)
            else:
                delattr(value, name)


def _reading(read: Callable[[Any, str], Any]) -> Any:
    def hook(v: Any, name: str) -> Any:
        is_method = name == "__class__" or (callable(getattr(type(v), name, None)) and not name.startswith("_"))
        if _looks() and (name in _LASTING or not is_method):
            _look(f"reads .{name}")
            if name in _LASTING:
                return lambda: None
        return read(v, name)

    return hook


def _write(v: Any, name: str, new: Any) -> None:
    """In place of `__setattr__`."""
    attribute: Any = getattr(type(v), name, None)
    if not isinstance(new, str) and _looks():  # a label, or what the program calls an operation
        _look(f"changes .{name}")
    elif hasattr(type(attribute), "__set__"):  # CPython 3.9 refuses the `__setattr__` of a class in C
        attribute.__set__(v, new)
    else:
        v.__dict__[name] = new


def _method(name: str, method: Any) -> Any:
    def hook(*operands: Any) -> Any:
        if is_tracing() and name in _LOOKING:
            _look(f"calls {name}()")
        try:
            return method(*operands)
        except Exception as error:
            if is_tracing():
                _look(f"gets {type(error).__name__} from {name}")
            raise

    return hook


def _constructor(construct: Any) -> Any:
    def hook(v: Any, *arguments: Any, **named: Any) -> None:
        number: Any = arguments[0] if arguments else named.pop("data", None)
        if is_tracing() and is_datum(number):
            if number._prev:
                _look("makes a Value of computed data")
            run.copies.append((v, number))  # type: ignore[union-attr]
            number = number.data
        construct(v, number, *arguments[1:], **named)

    return hook


# --- data ------------------------------------------------------------------------------------------------------------

_ARITHMETIC = [f"__{name}__" for name in ("add", "radd", "sub", "rsub", "mul", "rmul", "neg", "pow")]
_QUOTIENTS = ["__truediv__", "__rtruediv__"]
_OF_OBJECTS = [f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge", "hash", "repr", "str", "format")]
_OF_NUMBERS = [name for name in dir(int) + dir(float) if name.startswith("__") and not hasattr(object, name)]
_OF_VALUES = ["exp", "log", "max", "relu", "sigmoid", "tanh", "__deepcopy__"]
"""NumPy's functions would call them."""


def is_datum(v: Any) -> bool:
    """Whether it stands for a number of the call."""
    return hasattr(type(v), "is_datum")


@cache
def datum_class(value: Any) -> Any:
    """The class of data for this class Value. Whatever it does not compute itself is a look at the number."""

    def look(name: str) -> Callable[..., Any]:
        def method(*operands: Any) -> Any:
            if is_tracing():
                _look(f"needs the number of an input ({name})")
            elif name in _OF_OBJECTS:
                return getattr(object, name)(*operands)
            number, *others = (v.data if is_datum(v) else v for v in operands)
            answer = getattr(number, name)(*others)
            # An int leaves operations with floats to them.
            return getattr(float(number), name)(*others) if answer is NotImplemented else answer

        return method

    def operation(name: str) -> Callable[..., Any]:
        """An operation that doubles compute as Python does. Its result is data if all operands are."""
        needs_number = look(name)

        def method(v: Any, *others: Any) -> Any:
            is_data = all(is_datum(each) or type(each) in (int, float) for each in others)
            # `sum` begins with the int 0, and rounds floats as no sequence of additions does. A quotient of numbers is
            # rounded once, and one of Values twice.
            is_other = others[:1] == (0,) if name == "__radd__" else name in _QUOTIENTS
            if not is_tracing() or not (is_data or isinstance(others[0], value)) or (is_data and is_other):
                return needs_number(v, *others)
            out = getattr(value, name)(v, *others)
            if is_data:
                object.__setattr__(out, "__class__", type(v))
            return out

        return method

    body: dict[str, Any] = {"__slots__": (), "is_datum": True}
    body.update({name: look(name) for name in (*_OF_OBJECTS, *_OF_NUMBERS, *_OF_VALUES)})
    body.update({name: operation(name) for name in (*_ARITHMETIC, *_QUOTIENTS)})
    return type("Datum", (value,), body)
