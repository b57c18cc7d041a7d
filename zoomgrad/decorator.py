"""One line compiles a loss function: `@zoomgrad.compiled("rerolled-clang")`.

    @zoomgrad.compiled("rerolled-clang")
    def loss(model, xs, ys):
        return sum((model(x) - y) ** 2 for x, y in zip(xs, ys))

    for step in range(100):
        model.zero_grad()
        total = loss(model, xs, ys)
        total.backward()
        for p in model.parameters():
            p.data -= 0.05 * p.grad

The first call runs the function as it is, traces it with its Values (`tracing.py`) and compiles the graph. Each later
call with arguments of the same structure copies its numbers into the program and runs that. The bits are those of the
function, including those of gradients that were there before.

A graph is right for other numbers only if the function would build it again. So each call looks up a *variant*:

1. `arguments.py` takes the arguments apart. Their structure, static arguments and objects select the variant. A new
   structure compiles another one; beyond `variants`, the one that was not used for the longest time is dropped.
2. `watch.py` compares what else the function can reach. If anything has changed, the function is traced again. If the
   graph is the same, its program stays.
3. The numbers of all Values that the graph uses are read at each call, whoever holds them.

The first run notes what the function calls and reaches. The function is traced only if all of that can be watched. If
the trace changes anything, such as a counter, that is put back, and the function is not compiled. Otherwise the
program's results are compared with those of the first run. A function that can't be compiled safely runs uncompiled at
each call. One warning gives the reason:

    @zoomgrad.compiled("tcc")
    def loss(w, x):
        v = w * x
        return v if v.data > 0 else v * 0.01      # NotCompiled: reads .data in loss, line 4

With `strict=True` these cases raise `NotTraced` instead.

A function is compiled only if all that it uses is known to be harmless (`permitted.py`). One that reads a clock, a
file, `globals()` or `os.environ`, asks whether two names are one object, or starts a thread runs uncompiled, and so
does one that reaches an object whose state can't be read, such as a deque.

Side effects of the function, such as printing, happen when it is traced and not when its program runs. `backward`
refuses to run when a Value of the loss has another number than at the call.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import pickle
import sys
import threading
import types
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

from zoomgrad import engines, tracing
from zoomgrad.arguments import Found, describe, matcher, numbers_of, take_apart
from zoomgrad.engines.arguments import whole
from zoomgrad.engines.graph.tape import Tape
from zoomgrad.permitted import OF_ARRAYS
from zoomgrad.tracing import Run
from zoomgrad.variant import Loss, NotTraced, Output, Traced, Variant, graph_of, record
from zoomgrad.watch import Followed, Watch, slots_of

VARIANTS = 8
"""Default number of variants that a function keeps."""

MOST_RETRACES = 8
"""How often one variant may compile another graph before it runs as it is."""


class _Plain(threading.local):
    """Depth of nested uncompiled calls in this thread."""

    runs = 0


_PLAIN = _Plain()


class NotCompiled(UserWarning):
    """A compiled function runs as it is, because its graph would not hold for other numbers."""


class CacheInfo(NamedTuple):
    """Counts of a compiled function."""

    calls: int
    """Calls that ran a program."""
    compilations: int
    variants: int
    most_variants: int
    dropped: int
    """Variants dropped to make room for others."""


def compiled(
    engine: str, *, strict: bool = False, variants: int = VARIANTS
) -> Callable[[Callable[..., Any]], Compiled]:
    """A decorator that runs a function's forward and backward pass as a program of that engine.

    The function takes Values (in lists, tuples, dicts or a model), numbers, and constants such as names and flags. It
    returns the loss, or a tuple of the loss and outputs. strict: raise NotTraced where the function would run as it is,
    and for Values that it makes itself. variants: how many structures of arguments to keep programs for.

    Raises UnknownName for the engine, TypeError for one that compiles nothing, and ValueError.
    """
    name: Any = engine
    if not isinstance(name, str):  # `@compiled` without a name passes the function
        raise TypeError('compiled takes the name of an engine\n  Write `@zoomgrad.compiled("rerolled-clang")`.')
    found = engines.load(name)
    if not hasattr(found, "compile"):
        raise TypeError(f"{engine} compiles nothing\n  Choose an engine such as `rerolled-clang` or `tcc`.")
    most = whole(variants, "variants", 1)
    return lambda function: Compiled(function, found, strict, most)


class Compiled(Followed):
    """A function from Values and data to a loss, which runs compiled."""

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_compilations",
        "_dropped",
        "_engine",
        "_function",
        "_latest",
        "_lock",
        "_most",
        "_strict",
        "_variants",
        "_warned",
    )
    """The function's own attributes are in the dictionary, which callers watch."""

    def __init__(self, function: Any, engine: Any, strict: bool, variants: int) -> None:
        inner = getattr(function, "__wrapped__", function)
        if not callable(function) or isinstance(function, type):
            raise TypeError(f"compiled takes a function, not {function!r}\n  Put @staticmethod above it, not below.")
        if inspect.isgeneratorfunction(inner) or inspect.iscoroutinefunction(inner):
            raise TypeError(f"{function!r} returns no loss when it is called\n  Compile the function that computes it.")
        self.__name__ = self.__qualname__ = type(function).__name__  # unless it has names of its own
        functools.update_wrapper(self, function)
        self._function = function
        self._engine = engine
        self._strict = strict
        self._most = variants
        self._variants: OrderedDict[Any, Variant] = OrderedDict()
        self._latest: Any = None
        self._lock = threading.RLock()
        self._compilations = self._dropped = 0
        self._warned: set[str] = set()

    def __get__(self, owner: Any, cls: Any = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if (tracing.run is not None and tracing.is_tracing()) or _PLAIN.runs:
            return self._function(*arguments, **named)
        quick = self._latest
        if quick is not None and not named:
            try:
                result = quick(arguments)
            except Exception:  # what this raises on purpose, it raises again below
                result = None
            if result is not None:
                return result
        if tracing.run is not None:  # in another thread, which may wait for this one
            return self._as_it_is(arguments, named)
        try:
            found = take_apart(self._engine.Value, (arguments, named))
        except (TypeError, ValueError, RecursionError) as problem:
            if self._strict:
                raise
            self._warn(NotTraced(*_two_lines(problem)))
            return self._as_it_is(arguments, named)
        with self._lock:
            self._latest = None
            variant, first = self._variant(found)
            parameters = variant.parameters_of(found.values)
            must_run = variant.why or self._is_special(found, variant.watch)
            if not named and not must_run:
                self._latest = _quick(self._engine.Value, variant, parameters, arguments)
        # No lock here: the program's own code must not hold it.
        result = None if must_run else variant.call(parameters, found.numbers)
        if result is not None:
            return result
        return self._as_it_is(arguments, named) if first is None else first.result

    def _is_special(self, found: Found, watch: Watch) -> bool:
        """Whether a Value of this call is also reached another way, or has attributes that the function may read."""
        value = self._engine.Value
        return any(
            id(v) in watch.values
            or (type(v) is not value and (getattr(v, "__dict__", None) or slots_of(type(v), value)))
            for v in found.values
        )

    def _as_it_is(self, arguments: Any, named: Any) -> Any:
        """Run the function, and those that it calls, without any program."""
        _PLAIN.runs += 1
        try:
            return self._function(*arguments, **named)
        finally:
            _PLAIN.runs -= 1

    def _variant(self, found: Found) -> tuple[Variant, Optional[Run]]:
        """The variant for these arguments, compiled if there is none or if what the function reaches has changed.

        Also the function's run as it is, if it has run.
        """
        known = self._variants.get(found.structure)
        if known is not None:
            self._variants.move_to_end(found.structure)
            if known.why or not known.watch.has_changed():
                return known, None
        first = self._first(found)
        try:
            made = self._made(found, known, first)
        except NotTraced as problem:
            if self._strict:
                raise
            made = Variant.plain(found, problem.reason)
            self._warn(problem)
        self._variants[found.structure] = made
        if len(self._variants) > self._most:
            self._variants.popitem(last=False)
            self._dropped += 1
        return made, first

    def _first(self, found: Found) -> Run:
        """The function's run as it is, which may raise any error."""
        arguments, named = found.arguments
        return tracing.trace(contextlib.nullcontext(), self._function, arguments, named)

    def _made(self, found: Found, known: Optional[Variant], first: Run) -> Variant:
        watch = self._watch(found, first)
        traced, graph, tape = self._traced(found, first, watch)
        if self._strict and traced.baked:
            raise NotTraced(
                f"it makes Values of its own, which become constants: {', '.join(map(repr, traced.baked[:4]))}",
                "Make them outside and pass them, or write plain numbers.",
            )
        if self._is_special(found, watch):
            raise NotTraced(
                "an argument is a Value that it also reaches another way, or one with attributes of its own",
                "Pass each Value once.",
            )
        if known is not None:
            if known.graph == graph:
                known.take_result(self._engine.Value, traced)
                known.watch = watch
                known.retraced += 1
                return known
            if known.retraced >= MOST_RETRACES:
                raise NotTraced(
                    f"what it uses besides its arguments changed {known.retraced} times",
                    "Pass what changes as an argument.",
                )
        variant = Variant(self._engine, found, traced, graph, tape, watch)
        self._verify(variant, found, first)
        variant.retraced = known.retraced + 1 if known is not None else 0
        self._compilations += 1
        return variant

    def _watch(self, found: Found, first: Run) -> Watch:
        """What the function can reach. Raises NotTraced if it may depend on something that nobody would notice."""
        kinds = {type(v) for v in found.values}
        named = [(each.__name__, each) for each in kinds] + [(type(each).__name__, each) for each in found.objects]
        try:
            with tracing.TRACING:  # no other thread's hooks are on the class
                watch = Watch(self._engine.Value, [(self.__name__, self._function), *named], first.ran)
        except TypeError as error:
            if self._strict:
                raise
            raise NotTraced(*_two_lines(error)) from error
        except Exception as error:  # an object that answers every question in its own way
            raise NotTraced(f"it reaches an object that raises {error!r}", "Pass numbers and Values.") from error
        _check_permitted(first, watch, found)
        return watch

    def _traced(self, found: Found, first: Run, watch: Watch) -> tuple[Traced, Any, Tape]:
        """A run of the function with Datums, its graph's description and tape. Puts back what the run has changed."""
        try:
            traced = record(self._engine.Value, self._function, found)
        except NotTraced:
            raise
        except Exception as error:
            raise NotTraced(
                f"it can't be traced ({type(error).__name__}: {str(error).partition(chr(10))[0]})",
                "Use data only in sums and products with Values.",
            ) from error
        finally:
            with tracing.TRACING:
                changed = watch.restore()
        if changed:
            raise NotTraced("it changes something that outlives the call", "Return what it keeps, and keep it outside.")
        try:
            graph, tape = graph_of(traced)
        except (ValueError, TypeError, AttributeError) as error:
            raise NotTraced(*_two_lines(error)) from error
        computed = {id(v) for root in numbers_of(self._engine.Value, first.result) for v in root.topo()}
        used = {id(v): v for v in traced.results()}
        for key in used.keys() & computed:
            raise NotTraced(f"it uses the result of {used[key]._op!r}, computed before the call", "Compute it inside.")
        for kind in {type(v.data).__name__ for v in used.values()} - {"int", "float", "float64"}:
            raise NotTraced(f"it computes with a {kind}", "Use doubles only, and powers of positive numbers.")
        for v in traced.run.raising:
            if id(v) not in used:
                raise NotTraced(f"it does not use the result of {v._op!r}, which may raise an error", "Remove it.")
        if traced.run.ran.keys() != first.ran.keys():
            raise NotTraced("it runs other code when it is traced", "Pass what differs as an argument.")
        _check_permitted(traced.run, watch, found)
        return traced, graph, tape

    def _verify(self, variant: Variant, found: Found, first: Run) -> None:
        """Compare this call's numbers with those of the function itself, which may treat data as no trace can see.

        Example: `isinstance(x, Value)` is true of a Datum. An engine that is not strict may differ by its bound.
        """
        parameters, bound = variant.parameters_of(found.values), self._engine.error_bound or 0.0
        plain = _numbers(self._engine.Value, first.result, parameters)
        result = variant.call(parameters, found.numbers)
        variant.calls = 0
        ours = plain if result is None else _numbers((Loss, Output, self._engine.Value), result, parameters)
        for (what, a), (other, b) in itertools.zip_longest(plain, ours, fillvalue=("a result", None)):
            near = a is not None and b is not None and abs(a - b) <= bound * max(1.0, abs(a))
            if a != b and (a == a or b == b) and not near:
                raise NotTraced(
                    f"{what} is {a} when it runs as it is, but {other} is {b} compiled",
                    "Let the result depend on the numbers of data only, not on their types or other attributes.",
                )

    def _warn(self, problem: NotTraced) -> None:
        if problem.reason not in self._warned:
            self._warned.add(problem.reason)
            warnings.warn(
                f"{self.__name__} runs as it is, not compiled: {problem.reason}\n  {problem.remedy}",
                NotCompiled,
                stacklevel=4,
            )

    def cache_info(self) -> CacheInfo:
        """Counts of calls and variants."""
        with self._lock:
            calls = sum(variant.calls for variant in self._variants.values())
            return CacheInfo(calls, self._compilations, len(self._variants), self._most, self._dropped)

    def report(self) -> str:
        """What is compiled, what is not and why, and what is a constant, as text."""
        with self._lock:
            info = self.cache_info()
            dropped = f", {info.dropped} dropped" if info.dropped else ""
            lines = [f"{self.__name__}: {self._engine.name}, {info.variants} of at most {self._most} variants{dropped}"]
            for structure, variant in self._variants.items():
                lines += [f"  {describe(structure)}", *(f"    {line}" for line in variant.report())]
            return "\n".join(lines)

    def clear(self) -> None:
        """Drop all variants."""
        with self._lock:
            self._variants.clear()
            self._latest = None

    def program(self, *arguments: Any, **named: Any) -> Trainable:
        """Compile a separate Program for these arguments, for training without Values: `.program` of the result.

        Its inputs are the arguments' numbers in order. Raises NotTraced where a call would run the function uncompiled.
        """
        with self._lock:
            found = take_apart(self._engine.Value, (arguments, named))
            first = self._first(found)
            traced, _, _ = self._traced(found, first, self._watch(found, first))
            leaves = dict(zip(traced.sources, traced.inputs))
            if len(leaves) < len(traced.sources):
                raise NotTraced("it makes several Values of one number", "Make one, or use the number as it is.")
            value = self._engine.Value
            inputs = [leaves[at] if at in leaves else value(number) for at, number in enumerate(found.numbers)]
            for v, number in zip(inputs, found.numbers):
                v.data = number
            program = self._engine.compile(
                traced.loss, inputs=inputs, parameters=traced.parameters, outputs=traced.outputs
            )
            return Trainable(program, tuple(traced.parameters))

    def __reduce__(self) -> str:
        """Pickle by name, as functions are, so that another process compiles it itself."""
        found: Any = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            found = getattr(found, name, None)
        if found is not self:
            raise pickle.PicklingError(
                f"{self.__qualname__} can't be pickled: {self.__module__} has no compiled function of that name\n"
                "  Compile it at the top level of a module, or pickle the Values and compile in the other process."
            )
        return str(self.__qualname__)

    def __repr__(self) -> str:
        return f"<{self.__name__}, compiled by {self._engine.name}>"


def _numbers(kinds: Any, result: Any, parameters: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """The numbers of what a function returned, then the gradients of its loss, which it leaves as they are."""
    found = list(numbers_of(kinds, result))
    if not found:
        return []
    # The function may reach others than its trace did.
    touched = [*parameters, *(found[0].topo() if hasattr(found[0], "topo") else ())]
    numbers, before = [("a result", v.data) for v in found], [v.grad for v in touched]
    try:
        for v in parameters:
            v.grad = 0.0
        found[0].backward()
        return numbers + [("a gradient", v.grad) for v in parameters]
    except (ArithmeticError, ValueError):  # `backward` raises it again when the program calls it
        return numbers
    finally:
        for v, grad in zip(touched, before):
            v.grad = grad


class Trainable(NamedTuple):
    """A program, and the Values whose numbers it started with."""

    program: Any
    parameters: tuple[Any, ...]
    """In the order of the program's parameters."""

    def write_back(self) -> None:
        """Give the Values the program's parameters."""
        for v, number in zip(self.parameters, list(self.program.parameters)):
            v.data = number


def _quick(value: type, variant: Variant, parameters: Any, arguments: tuple[Any, ...]) -> Any:
    """A function of the next call's arguments that runs the program; None if there is no quick check of them."""
    fits = matcher(value, arguments)
    return variant.quick(parameters, fits) if fits else None


def _two_lines(error: Exception) -> tuple[str, str]:
    reason, _, remedy = str(error).partition("\n")
    return reason, remedy.strip() or "Run it without the decorator."


def _check_permitted(run: Run, watch: Watch, found: Found) -> None:
    """Raise NotTraced if the function may depend on something that nobody would notice."""
    if run.called:
        raise NotTraced(f"it {run.called}", "Call it before, and pass what it returns.")
    if watch.objections:
        raise NotTraced(f"it {watch.objections[0]}", "Do that before the call, and pass the result.")
    if watch.unwatched:
        raise NotTraced(f"changes of {watch.unwatched[0]} would not be noticed", "Pass what it uses as an argument.")
    of_arrays = sorted(watch.attributes & OF_ARRAYS)
    if of_arrays and found.arrays:
        raise NotTraced(f"it uses .{of_arrays[0]}, which an array has", "Convert arrays before the call.")
