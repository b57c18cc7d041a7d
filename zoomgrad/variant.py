"""A traced function for arguments of one structure: its program, and the way from Values to buffers and back.

The leaves of the graph are inputs, whose numbers come with each call, and parameters: the Values that the function was
given, and those that it reached itself, which are called captured. A call copies the parameters' numbers into the
program and runs it forward. `backward` loads their gradients, lets the program add to them as the interpreter would,
and stores the sums.
"""

from __future__ import annotations

import hashlib
import operator
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from math import isfinite
from typing import Any, NamedTuple, Optional

from zoomgrad.arguments import Found, numbers_of, rebuilt
from zoomgrad.engines.arithmetic import check_arithmetic
from zoomgrad.engines.graph.linearize import linearize
from zoomgrad.engines.graph.tape import Tape
from zoomgrad.engines.kernel.program import Program
from zoomgrad.exactness import LARGEST_INT, Checks, ints_are_exact, raise_as_python
from zoomgrad.permitted import shown
from zoomgrad.tracing import Run, hooks_on, trace
from zoomgrad.watch import Watch

_NO_NUMBER = (struct.error, ZeroDivisionError, OverflowError, ValueError, TypeError)
"""What a forward pass raises if a number is no double, or from Python's operators."""

_data, _grad = operator.attrgetter("data"), operator.attrgetter("grad")


class Traced(NamedTuple):
    """What one run of the function recorded."""

    result: Any
    """What the function returned, with Values in it."""
    loss: Any
    outputs: list[Any]
    inputs: list[Any]
    sources: list[int]
    """Input -> the position of its number among the arguments'."""
    parameters: list[Any]
    given: list[int]
    """Position among the arguments' Values, for each parameter that is one of them; these come first."""
    baked: list[Any]
    """Leaves that the function made itself: constants."""
    idle: set[int]
    """Ids of parameters that only outputs depend on. A backward pass leaves their gradients alone."""
    run: Run

    def results(self) -> Iterator[Any]:
        """The Values of the graph that an operation computed."""
        for root in (self.loss, *self.outputs):
            for v in root.topo():
                if v._prev:
                    yield v


class NotTraced(Exception):
    """A function can't be compiled. Carries the reason and the remedy."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}\n  {remedy}")
        self.reason = reason
        self.remedy = remedy


_OF_VALUE = "Return that Value as an output, and use its number after the call."
_REMEDIES = {
    **dict.fromkeys(("reads", "calls", "changes"), _OF_VALUE),
    "gets": "Keep the operand where the operation is defined, for example with `max`.",
}
"""First word of a look -> its remedy."""


def record(value: Any, function: Callable[..., Any], found: Found) -> Traced:
    """Run the function on Datums. Raises NotTraced if it looks at a number, and what it raises itself."""
    (arguments, named), data, containers = rebuilt(value, found.structure, found)
    run = trace(hooks_on(value), function, arguments, named)
    result = run.result
    if run.look:
        raise NotTraced(
            f"it {run.look}", _REMEDIES.get(run.look.partition(" ")[0], "Prepare the data before the call.")
        )
    if any(len(a) != len(b) or any(map(operator.is_not, a, b)) for a, b in containers):
        raise NotTraced("it changes an argument", "Change a copy.")
    loss = result[0] if isinstance(result, tuple) and result else result
    if not isinstance(loss, value):
        raise NotTraced(
            f"it returned a {shown(type(loss))}, not a Value",
            "Return the loss, or a tuple of the loss and outputs, made of zoomgrad's Value.",
        )
    if not loss._prev:  # the interpreter sets its gradient, and adds to all others
        raise NotTraced("its loss is a leaf, so there is nothing to compile", "Return the result of an operation.")
    outputs = list(numbers_of(value, result))[1:]
    return _sorted_leaves(value, run, result, outputs, data, found)


def _sorted_leaves(value: Any, run: Run, result: Any, outputs: list[Any], data: list[Any], found: Found) -> Traced:
    loss = result[0] if isinstance(result, tuple) else result
    places = {id(v): place for place, v in enumerate(data)}
    copies = {id(v): places[id(of)] for v, of in run.copies}
    made = {id(v) for v in run.made}
    given = {id(v): place for place, v in enumerate(found.values)}
    traced = Traced(result, loss, outputs, [], [], [], [], [], set(), run)
    captured, seen = [], {id(v) for v in run.operands}
    is_held = _held(value)
    for root in (loss, *outputs):
        order = root.topo()
        for at in range(len(order)):  # without a name for the Value, which would count as a reference
            if order[at]._prev or id(order[at]) in seen:
                continue
            seen.add(id(order[at]))
            place = places.get(id(order[at]), copies.get(id(order[at])))
            if place is not None:
                traced.inputs.append(order[at])
                traced.sources.append(place)
            elif id(order[at]) in given:
                traced.parameters.append(order[at])
                traced.given.append(given[id(order[at])])
                traced.idle.update(() if root is loss else [id(order[at])])
            elif id(order[at]) in made:
                traced.baked.append(order[at])
            elif is_held(order, at):
                captured.append(order[at])
                traced.idle.update(() if root is loss else [id(order[at])])
    traced.parameters.extend(captured)
    return traced


@cache
def _held(value: Any) -> Callable[[list[Any], int], bool]:
    """A check whether more than a graph and a list hold a leaf. If so, it may be the program's own.

    The operators in C make a leaf of each number, which only one result holds. The run has noted those that the class
    in Python makes, so where objects have no count of references, every other leaf is the program's.
    """
    if not hasattr(sys, "getrefcount"):
        return lambda order, at: True

    def count(order: list[Any], at: int) -> int:
        return sys.getrefcount(order[at])

    order = (value(1.0) + 2.0).topo()
    alone = count(order, 1)
    return lambda order, at: count(order, at) > alone


# --- running ---------------------------------------------------------------------------------------------------------


class Variant:
    """The program of one structure, and buffers that only this class writes."""

    why = ""
    """Why each call runs the function itself; empty if it runs the program."""

    def __init__(self, engine: Any, found: Found, traced: Traced, graph: Any, tape: Tape, watch: Watch) -> None:
        self.graph = graph
        self.watch = watch
        self.objects = found.objects
        """Kept alive, because the structure names them by identity."""
        self.sources = traced.sources
        self.given = traced.given
        self.captured = traced.parameters[len(traced.given) :]
        self.baked = traced.baked
        self.calls = 0
        self.retraced = 0
        self._lock = threading.RLock()
        self._latest: Optional[Loss] = None
        """The loss of the program's last forward pass."""
        checks = Checks(traced.loss, traced.outputs)
        self.program: Program = engine.compile(
            traced.loss, inputs=traced.inputs, parameters=traced.parameters, outputs=[*traced.outputs, *checks.values]
        )
        self._checks = checks if checks.values else None
        self._outputs = len(traced.outputs)
        self._tape = tape
        self._exact: Any = None
        """Numbers, not all of them floats, for which doubles are exact."""
        self.take_result(engine.Value, traced)
        x, p, q, forward, backward = self.program.bound()
        self._passes = _packer(x), _packer(p), forward
        self._gradients = _packer(q), backward, q.tolist
        self._bits = struct.Struct(f"{len(p)}d").pack
        self._gather = _gather(traced.sources, len(found.numbers))
        self._is_in_order = traced.sources == list(range(len(found.numbers)))
        self.parameters = tuple(traced.parameters)
        self._idle = [at for at, v in enumerate(self.parameters) if id(v) in traced.idle]
        self._pick = _gather(traced.given, len(found.values))

    def take_result(self, value: Any, traced: Traced) -> None:
        """Return what that run returned, with numbers in place of Values. Raises NotTraced if it can't be copied."""
        places = {id(v): at for at, v in enumerate(traced.parameters)}
        self._shape, self._is_alone = _shape(value, traced.result, places), traced.result is traced.loss

    @classmethod
    def plain(cls, found: Found, why: str) -> Variant:
        """A variant that runs the function as it is."""
        variant = cls.__new__(cls)
        variant.why, variant.calls, variant.retraced, variant.objects = why, 0, 0, found.objects
        variant.captured, variant._pick = [], _gather([], 0)
        return variant

    def report(self) -> list[str]:
        """What it is, in lines of text."""
        if self.why:
            return [f"runs as it is: {self.why}"]
        captured = f", {len(self.captured)} of them captured" if self.captured else ""
        lines = [
            f"{_count(self.calls, 'call')}, {_count(len(self.parameters), 'parameter')}{captured}, "
            f"{_count(len(self.sources), 'input')}"
        ]
        if self.baked:
            shown = ", ".join(str(v.data) for v in self.baked[:8])
            lines.append(f"constants, because the function makes them: {shown}{', …' * (len(self.baked) > 8)}")
        if self.retraced:
            lines.append(f"traced again {_count(self.retraced, 'time')}, because what it uses changed")
        return lines

    def parameters_of(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The graph's parameters: some of the call's Values, and the captured ones."""
        return (*self._pick(values), *self.captured)

    def call(self, parameters: tuple[Any, ...], numbers: Sequence[float]) -> Any:
        """The loss, or what the function returns with numbers in place of Values. None if the function itself must run.

        It must if a number of the graph is not finite, because the function may raise an error then, and if a parameter
        is an int that doubles would round.
        """
        loss = Loss(self, parameters, self._gather(numbers), tuple(map(_data, parameters)), 0.0)
        if not _FLOAT.issuperset(map(type, loss.numbers)) and not self._is_exact(loss):
            return None
        with self._lock:
            try:
                self._run(loss)
            except _NO_NUMBER:
                return None
            outputs = list(self.program.outputs)
            if not isfinite(loss.data) or not all(map(isfinite, outputs)):
                return None
            if self._checks is not None and not self._checks.pass_on(outputs[self._outputs :]):
                return None
            self.calls += 1
            if self._is_alone:
                return loss
            return _filled(self._shape, iter([loss, *map(Output, outputs)]), parameters)

    def quick(self, parameters: tuple[Any, ...], fits: Callable[[Any, list[float]], bool]) -> Callable[[Any], Any]:
        """The function `call` for these parameters, if arguments fit and nothing has changed; else it returns None.

        fits: adds the numbers of the arguments to a list. This function takes most of the time of a small loss, so it
        reads nothing from the variant that it could know before.
        """
        compare, compared = self.watch.comparison()
        lock, gather = self._lock, None if self._is_in_order else self._gather
        if not self._is_alone or self._checks is not None or compare is None:

            def general(arguments: Any) -> Any:
                numbers: list[float] = []
                if not fits(arguments, numbers) or self.watch.has_changed():
                    return None
                return self.call(parameters, numbers)

            return general
        pack_inputs, pack_parameters, forward = self._passes
        acquire, release, floats = lock.acquire, lock.release, (float,) * len(parameters)

        def quick(arguments: Any) -> Any:
            inputs: Any = []
            if not fits(arguments, inputs) or not compare(compared):
                return None
            data = tuple(map(_data, parameters))
            if tuple(map(type, data)) != floats:
                return None
            if gather is not None:
                inputs = gather(inputs)
            acquire()
            try:
                check_arithmetic()
                self._latest = None
                pack_inputs(*inputs)
                pack_parameters(*data)
                number = forward()
                if not isfinite(number):
                    return None
                self.calls += 1
                self._latest = loss = Loss(self, parameters, inputs, data, number)
                return loss
            finally:
                release()

        return quick

    def _is_exact(self, loss: Loss) -> bool:
        """Whether doubles give what the ints among these numbers give."""
        numbers = loss.numbers
        if not all(map(_is_exact, numbers)):
            return False
        known = (numbers, tuple(loss.inputs))
        if known != self._exact:
            if not ints_are_exact(self._tape, loss.inputs, numbers):
                return False
            self._exact = known
        return True

    def _run(self, loss: Loss) -> None:
        """Run the forward pass with the numbers of that loss."""
        check_arithmetic()
        self._latest = None
        pack_inputs, pack_parameters, forward = self._passes
        pack_inputs(*loss.inputs)
        pack_parameters(*loss.numbers)
        loss._data = forward()
        self._latest = loss

    def _is_current(self, loss: Loss) -> bool:
        try:  # bytes, because zeros have signs, and NaN equals nothing
            return self._bits(*map(_data, loss.parameters)) == self._bits(*loss.numbers)
        except _NO_NUMBER:
            return False

    def backward(self, loss: Loss) -> None:
        """Add the gradients of that loss to those of the parameters.

        Raises RuntimeError if one has another number, and what Python's arithmetic raises.
        """
        if not self._is_current(loss):
            raise RuntimeError(
                "a Value of this loss has another number now than when the loss was computed\n"
                "  Call `backward` before the update, or call the compiled function again."
            )
        with self._lock:
            if self._latest is not loss:  # another pass came after its own
                self._run(loss)
            pack_gradients, backward, gradients = self._gradients
            before = tuple(map(_grad, loss.parameters))
            pack_gradients(*before)
            backward()
            after = gradients()
            if not all(map(isfinite, after)) and all(map(isfinite, before)):
                raise_as_python(self._tape, loss.inputs, loss.numbers)
            for v, g in zip(loss.parameters, after):
                v.grad = g
            for at in self._idle:
                loss.parameters[at].grad = before[at]
            loss.grad = 1.0


class Output:
    """A Value that the function returned: its number."""

    __slots__ = ("_data",)

    def __init__(self, data: float) -> None:
        self._data = data

    @property
    def data(self) -> float:
        """The number. It can't be changed, because the program would not notice."""
        return self._data

    def _refuse(self, *_: object) -> Any:
        raise TypeError(
            "the loss of a compiled function can't be part of another expression\n"
            "  Compute the whole loss in one compiled function, or use `.data` if only its number matters."
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __pow__ = __neg__ = relu = tanh = exp = log = sigmoid = max = _refuse
    backward = _refuse

    def __repr__(self) -> str:
        return f"Output(data={self.data})"


class Loss(Output):
    """The loss of one call. It has the number and the backward pass of a Value, and no operators.

    `backward` adds to the gradients of the Values that the call used. They must have the numbers of the call.
    """

    __slots__ = ("_variant", "grad", "inputs", "numbers", "parameters")

    def __init__(
        self,
        variant: Variant,
        parameters: tuple[Any, ...],
        inputs: Sequence[float],
        numbers: tuple[float, ...],
        data: float,
    ) -> None:
        self._variant: Optional[Variant] = variant
        self._data = data
        self.grad: float = 0
        self.parameters = parameters
        """The Values that receive gradients."""
        self.inputs = inputs
        self.numbers = numbers
        """Those of the parameters at the call."""

    def backward(self, *_: object) -> None:
        """Add the gradients. Raises RuntimeError the second time."""
        variant = self._variant
        if variant is None:
            raise RuntimeError("backward ran already on this loss\n  Call the compiled function again first.")
        variant.backward(self)
        self._variant = None

    def __repr__(self) -> str:
        return f"Value(data={self.data}, grad={self.grad})"


def graph_of(traced: Traced) -> tuple[Any, Tape]:
    """A description of the graph, equal if two runs recorded the same one, and its tape.

    Raises the errors of `linearize`.
    """
    tape = linearize(traced.loss, inputs=traced.inputs, parameters=traced.parameters, outputs=traced.outputs)
    columns = [bytes(tape.ops), *(bytes(memoryview(c).cast("B")) for c in (tape.left, tape.right, tape.index))]
    digest = hashlib.sha256(b"".join(columns)).digest()
    constants = tuple(map(repr, tape.constants))
    leaves = tuple(traced.sources), tuple(map(id, traced.parameters[len(traced.given) :])), tuple(traced.given)
    return (digest, constants, tape.loss, tape.outputs, leaves), tape


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _gather(places: list[int], length: int) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """A function that picks these places."""
    if places == list(range(length)):
        return lambda numbers: numbers
    if len(places) > 1:
        return operator.itemgetter(*places)
    return (lambda numbers: (numbers[places[0]],)) if places else (lambda numbers: ())


def _packer(buffer: Any) -> Callable[..., None]:
    """A function that stores its arguments in a buffer of doubles."""
    return partial(struct.Struct(f"{len(buffer)}d").pack_into, buffer, 0)


_FLOAT = {float}


def _is_exact(number: Any) -> bool:
    """Whether a double holds a parameter's number."""
    return type(number) is float or (type(number) is int and -LARGEST_INT <= number <= LARGEST_INT)


_HOLE = object()


def _shape(value: Any, result: Any, places: dict[int, int]) -> Any:
    """What a function returned, with a mark for each Value. places: parameters, which are returned themselves."""
    if isinstance(result, value):
        return places.get(id(result), _HOLE)
    if isinstance(result, (list, tuple)):
        parts = [_shape(value, each, places) for each in result]
        return (type(result) if type(result) in (list, tuple) else tuple, parts)
    if isinstance(result, dict):
        return (dict, list(result), [_shape(value, each, places) for each in result.values()])
    if result is not None and not isinstance(result, (int, float, str, bytes)):
        raise NotTraced(f"it returns a {shown(type(result))} beside the loss", "Return Values, and numbers or texts.")
    return (None, result)


def _filled(shape: Any, values: Any, parameters: tuple[Any, ...]) -> Any:
    if shape is _HOLE:
        return next(values)
    if type(shape) is int:
        next(values)
        return parameters[shape]
    kind, *rest = shape
    if kind is None:
        return rest[0]
    if kind is dict:
        return dict(zip(rest[0], [_filled(each, values, parameters) for each in rest[1]]))
    return kind(_filled(each, values, parameters) for each in rest[0])
