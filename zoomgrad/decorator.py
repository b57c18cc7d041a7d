"""One line compiles a loss function: `@zoomgrad.compiled()`, or with the name of an engine.

    @zoomgrad.compiled()
    def loss(model, xs, ys):
        return sum((model(x) - y) ** 2 for x, y in zip(xs, ys))

    for step in range(100):
        model.zero_grad()
        total = loss(model, xs, ys)
        total.backward()
        for p in model.parameters():
            p.data -= 0.05 * p.grad

As with `jax.jit`, the decorator declares that the function is pure: its result depends on its arguments, on the
parameters, and on what they hold. A call goes through these stages:

1. `signature.py` takes the arguments apart. Their structure selects a *variant*; a new one is compiled, and beyond
   `variants`, the one that was not used for the longest time is dropped.
2. `held.py` compares what the arguments' objects hold. If that has changed, the function is compiled again.
3. To compile, the function runs once as it is, and once to record its graph (`trace.py`). A function that looks at a
   number, draws random numbers, or changes an argument is not compiled.
4. `variant.py` copies the numbers into the program and runs it. The result is a Value with one operation (`loss.py`),
   whose gradients the program computes. Where a number is not finite, the function runs instead.
5. `check.py` runs the function beside its program on the first calls and at random later ones. If a bit differs, the
   function itself is used from then on.

A function that can't be compiled runs as it is at each call, and one warning gives the reason and the place; with
`strict=True`, it is the error `NotTraced`. docs/using.md lists which impurities are noticed, and when.
"""

from __future__ import annotations

import functools
import random
import sys
import threading
import types
import warnings
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Union

import zoomgrad
from zoomgrad import trace
from zoomgrad.check import compare, drawn, following, same
from zoomgrad.engines.arguments import whole
from zoomgrad.held import Held
from zoomgrad.signature import NotTraced, Signature, take_apart
from zoomgrad.variant import Refused, Variant

VARIANTS = 32
"""Default number of variants that a function keeps."""

MOST_TRACES = 8
"""How often a variant is traced, if what its arguments hold changes. After that, it runs as it is."""

_CHANGES = "it changes an argument", "Change a copy, or keep elsewhere what the function does not use."
_DRAWS = "it draws random numbers", "Draw them before the call, and pass them."

_DEPTH = threading.local()
"""`runs`: depth of nested uncompiled calls in this thread."""


class NotCompiled(UserWarning):
    """A compiled function runs as it is, because its graph would not hold for other numbers."""


def compiled(
    engine: str = "", *, strict: bool = False, variants: int = VARIANTS
) -> Callable[[Callable[..., Any]], Compiled]:
    """A decorator that runs a function's forward and backward pass as a program of that engine, or the default one.

    The function takes Values (in lists, tuples, dicts or a model), numbers, and constants such as names and flags. It
    returns the loss, or a tuple of the loss and outputs. strict: raise NotTraced where the function would run as it is.
    variants: how many structures of arguments to keep programs for.

    Raises UnknownName for the engine, TypeError for one that compiles nothing, and ValueError.
    """
    name: Any = engine
    if not isinstance(name, str):  # `@compiled` without a name passes the function
        raise TypeError("compiled takes the name of an engine\n  Write `@zoomgrad.compiled()`.")
    loaded = zoomgrad.load(name)
    if not loaded.compiles:
        raise TypeError(f"{engine} compiles nothing\n  Choose an engine such as `rerolled-clang` or `tcc`.")
    most = whole(variants, "variants", 1)
    return lambda function: Compiled(function, loaded, strict, most)


class Compiled:
    """A function from Values and data to a loss, which runs compiled."""

    def __init__(self, function: Any, engine: Any, strict: bool, variants: int) -> None:
        if not callable(function) or isinstance(function, type):
            raise TypeError(f"compiled takes a function, not {function!r}\n  Put @staticmethod above it, not below.")
        self.__name__ = self.__qualname__ = type(function).__name__  # unless it has names of its own
        functools.update_wrapper(self, function)
        self._function = function
        self._engine = engine
        self._strict = strict
        self._most = variants
        self._variants: OrderedDict[Any, Union[Refused, Variant]] = OrderedDict()
        self._lock = threading.RLock()
        self._chance = random.Random(1)
        self.compilations = 0
        """How many graphs it has compiled."""
        self._warned: set[str] = set()

    def __get__(self, owner: Any, cls: Any = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if getattr(_DEPTH, "runs", 0) or trace.is_tracing():
            return self._function(*arguments, **named)
        call = arguments, named
        if trace.run is not None:  # in another thread, which may wait for this one
            return self._as_it_is(call)
        try:
            signature = take_apart(self._engine.Value, call)
        except NotTraced as problem:
            self._refuse(problem)
            return self._as_it_is(call)
        with self._lock:
            variant, plain = self._variant(signature, call)
        # No lock here: the program's own code must not hold it.
        if not variant.why:
            return self._run(variant, signature, call, plain)
        return self._as_it_is(call) if plain is None else plain[0]

    def _as_it_is(self, call: Any) -> Any:
        """Run the function, and those that it calls, without any program."""
        _DEPTH.runs = getattr(_DEPTH, "runs", 0) + 1
        try:
            return self._function(*call[0], **call[1])
        finally:
            _DEPTH.runs -= 1

    def _variant(self, signature: Signature, call: Any) -> tuple[Any, Any]:
        """The variant for these arguments, compiled if there is none or if what they hold has changed.

        Also what the function returned when it ran as it is, in a tuple; None if it has not run.
        """
        known: Any = self._variants.get(signature.structure)
        if known is not None:
            self._variants.move_to_end(signature.structure)
            if known.why or not known.held.has_changed():
                return known, None
        held = Held(self._engine.Value, signature.objects)
        before = drawn()
        plain = (self._as_it_is(call),)
        variant: Union[Refused, Variant]
        try:
            if drawn() != before:
                raise NotTraced(*_DRAWS)
            after = take_apart(self._engine.Value, call)
            is_equal = after._replace(numbers=[]) == signature._replace(numbers=[])
            if held.has_changed() or not is_equal or not same(after.numbers, signature.numbers):
                raise NotTraced(*_CHANGES)
            if known is not None and known.traces == MOST_TRACES:
                raise NotTraced(f"what its arguments hold changed {MOST_TRACES} times", _CHANGES[1])
            traced = trace.trace(self._engine.Value, self._function, signature, plain[0])
            variant = Variant(self._engine, signature, traced, held, self._as_it_is)
            variant.traces = 1 if known is None else known.traces + 1
            self.compilations += 1
        except NotTraced as problem:
            variant = Refused(problem.reason, signature.objects)
            self._refuse(problem)
        self._variants[signature.structure] = variant
        if len(self._variants) > self._most:
            self._variants.popitem(last=False)
        return variant, plain

    def _run(self, variant: Variant, signature: Signature, call: Any, plain: Any) -> Any:
        """Run the program, and the function beside it if this call is to be checked.

        plain: what the function has returned, in a tuple; None if it has not run.
        """
        is_scheduled = plain is None and variant.calls + 1 >= variant.next_check
        if is_scheduled:
            plain = (self._as_it_is(call),)
        result = variant.call(signature, call)
        if result is None:
            return self._as_it_is(call) if plain is None else plain[0]
        if plain is not None:
            loss = result[0] if isinstance(result, tuple) else result
            parameters = loss.call.parameters
            gradients = partial(variant.gradients, loss.call, [0.0] * len(parameters))
            try:
                compare(self._engine.Value, plain[0], result, parameters, gradients, self._engine.error_bound or 0.0)
            except NotTraced as problem:
                self._variants[signature.structure] = Refused(problem.reason, signature.objects)
                self._refuse(problem)
                return plain[0]
        if is_scheduled:
            variant.next_check = following(variant.next_check, self._chance)
        return result

    def _refuse(self, problem: NotTraced) -> None:
        """Raise the problem, or warn once that the function runs as it is."""
        if self._strict:
            raise problem
        text = f"{self.__name__} runs as it is, not compiled: {problem}"
        if text not in self._warned:
            self._warned.add(text)
            frame, level = sys._getframe(1), 2
            while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("zoomgrad."):
                frame, level = frame.f_back, level + 1
            warnings.warn(text, NotCompiled, stacklevel=level)

    @property
    def calls(self) -> int:
        """How many calls ran a program."""
        with self._lock:
            return sum(variant.calls for variant in self._variants.values())

    def report(self) -> str:
        """What is compiled, what is not and why, as text."""
        with self._lock:
            count = f"{len(self._variants)} of at most {self._most} variants"
            lines = [f"{self.__name__}: {self._engine.name}, {count}"]
            return "\n".join([*lines, *(f"  {each.report()}" for each in self._variants.values())])

    def __reduce__(self) -> str:
        """Pickle by name, as functions are, so that another process compiles it itself."""
        return str(self.__qualname__)

    def __repr__(self) -> str:
        return f"<{self.__name__}, compiled by {self._engine.name}>"
