"""The program of one structure of arguments, and the way from Values to its buffers and back.

The leaves of the graph are inputs, whose numbers come with each call, and parameters: the Values among the arguments,
and those that the function reached itself, which are called captured. A call copies the parameters' numbers into the
program and runs it forward. `backward` loads their gradients, lets the program add to them as the interpreter would,
and stores the sums.
"""

from __future__ import annotations

import hashlib
import operator
import struct
import threading
from collections.abc import Sequence
from functools import partial
from math import isfinite
from typing import Any, Callable, Optional

from zoomgrad.check import Schedule
from zoomgrad.engines.graph.arithmetic import check_arithmetic
from zoomgrad.engines.graph.linearize import linearize
from zoomgrad.engines.graph.tape import Tape
from zoomgrad.exactness import Checks, raise_as_python
from zoomgrad.held import Held
from zoomgrad.loss import continue_below, loss_class, output_class
from zoomgrad.signature import NotTraced, Signature, describe
from zoomgrad.trace import Traced

_NO_NUMBER = (struct.error, ZeroDivisionError, OverflowError, ValueError, TypeError)
"""What a forward pass raises if a number is no double, or from Python's operators."""

_SMALL = 2**20
"""Larger ints among Values may lead to ints that doubles round."""

_data, _grad = operator.attrgetter("data"), operator.attrgetter("grad")


class Plain:
    """In place of a program: each call runs the function itself."""

    def __init__(self, signature: Signature, why: str) -> None:
        self.why = why
        self.text = describe(signature)
        self.objects = signature.objects
        """Kept alive, because the structure names them by identity."""
        self.calls = 0

    def fits(self, signature: Signature) -> bool:
        """Whether it holds for these arguments, which have its structure."""
        return True

    def report(self) -> str:
        """What it is, as text."""
        return f"runs as it is: {self.why}"


class Variant(Plain):
    """The program of one structure, and buffers that only this class writes."""

    def __init__(
        self,
        engine: Any,
        signature: Signature,
        traced: Traced,
        held: Held,
        schedule: Schedule,
        again: Any,
    ) -> None:
        """again: runs the function as it is, for a loss in another expression."""
        super().__init__(signature, "")
        self.graph, self._tape = graph_of(traced)
        self.schedule, self.again = schedule, again
        self.noise: set[tuple[int, str]] = set()
        """What changed and led to no other graph."""
        self.retraced = self.recompiled = 0
        self._value = engine.Value
        self._loss, self._output = loss_class(engine.Value), output_class(engine.Value)
        self._places = traced.places
        self._computed = [at for at, place in enumerate(traced.places) if signature.values[place]._prev]
        """Parameters that were computed before the call."""
        self._lock = threading.RLock()
        self._latest: Any = None
        """The loss of the program's last forward pass."""
        self._checks = Checks(traced.loss, traced.outputs)
        outputs, leaves = [*traced.outputs, *self._checks.values], traced.parameters
        self._program = engine.compile(traced.loss, inputs=traced.inputs, parameters=leaves, outputs=outputs)
        self._outputs = len(traced.outputs)
        x, p, q, forward, backward = self._program.bound()
        self._passes = _packer(x), _packer(p), forward
        self._gradients = _packer(q), backward, q.tolist
        self._bits = struct.Struct(f"{len(leaves)}d").pack
        self._floats = (float,) * len(leaves)
        self._gather = _gather(traced.sources, len(signature.numbers))
        self._pick = _gather(traced.places, len(signature.values))
        self.take(traced, signature, held)

    def take(self, traced: Traced, signature: Signature, held: Held) -> None:
        """Take what a trace of this graph returned and reached."""
        self.held = held
        self.captured = traced.parameters[len(traced.places) :]
        self._idle = [at for at, v in enumerate(traced.parameters) if id(v) in traced.idle]
        self._reached = {id(v) for v in self.captured} | held.reached
        self._twice = self._reached_among(signature.values)
        places = {id(v): at for at, v in enumerate(traced.parameters)}
        self._result = _mapped(self._value, traced.result, lambda v: _Hole(places.get(id(v))))
        self._is_alone = traced.result is traced.loss and not self._checks.values

    def _reached_among(self, values: Sequence[Any]) -> list[int]:
        return [id(v) if id(v) in self._reached else 0 for v in values]

    def fits(self, signature: Signature) -> bool:
        # The function must hold the same, and the same Values must be among it and the arguments.
        return not self.held.has_changed() and self._reached_among(signature.values) == self._twice

    def report(self) -> str:
        if self.why:
            return super().report()
        captured = f", {len(self.captured)} of them captured" if self.captured else ""
        again = f", traced again for the same graph: {self.retraced:,}" if self.retraced else ""
        return f"calls: {self.calls:,}, parameters: {len(self._floats):,}{captured}{again}"

    def parameters_of(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The graph's parameters: some of the call's Values, and the captured ones."""
        return (*(self._pick(values) if self._pick else values), *self.captured)

    def overlaps(self, parameters: tuple[Any, ...]) -> bool:
        """Whether an argument was computed from another parameter, whose gradient would be summed in another order."""
        computed = [parameters[at] for at in self._computed]
        known = {*map(id, parameters)} if computed else set()
        return any(id(v) in known for root in computed for v in root.topo()[:-1])

    def call(self, parameters: tuple[Any, ...], numbers: Sequence[float], call: Any) -> Any:
        """The loss, or what the function returns with numbers in place of Values. None if the function itself must run.

        It must if a number of the graph is not finite, because the function may raise an error then, if ints among the
        parameters could become too large for doubles, and if arguments overlap.
        """
        if self._computed and self.overlaps(parameters):
            return None
        data, gather = tuple(map(_data, parameters)), self._gather
        inputs = numbers if gather is None else gather(numbers)
        if tuple(map(type, data)) != self._floats and not _are_small((*data, *inputs)):
            return None
        with self._lock:
            try:
                number = self._forward(inputs, data)
            except _NO_NUMBER:
                return None
            if not isfinite(number):
                return None
            self._latest = loss = self._loss(number, self, parameters, inputs, data, call)
            if self._is_alone:
                self.calls += 1
                return loss
            outputs = list(self._program.outputs)
        if not all(map(isfinite, outputs)) or not self._checks.pass_on(outputs[self._outputs :]):
            return None
        self.calls += 1
        make = self._output
        results = iter([loss, *(make(number, loss, at + 1) for at, number in enumerate(outputs[: self._outputs]))])

        def fill(hole: _Hole) -> Any:
            value = next(results)
            return value if hole.parameter is None else parameters[hole.parameter]

        return _mapped(_Hole, self._result, fill)

    def quick(self, parameters: tuple[Any, ...], fits: Callable[[Any, list[float]], bool]) -> Callable[[Any], Any]:
        """The function `call` for these parameters, if arguments fit and nothing has changed; else it returns None.

        fits: adds the numbers of the arguments to a list. For a small loss, most of the time is spent here, so this
        function does not call `call`, and looks nothing up that it could know before.
        """
        schedule, is_same, no_names = self.schedule, self.held.is_same, dict[str, Any]()
        lock, make, floats, gather = self._lock, self._loss, self._floats, self._gather
        pack_inputs, pack_parameters, forward = self._passes
        is_simple = self._is_alone and not self._computed

        def quick(arguments: Any) -> Any:
            numbers: Any = []
            if self.calls + 1 >= schedule.next or not fits(arguments, numbers) or not is_same():
                return None
            data = tuple(map(_data, parameters)) if is_simple else ()
            if tuple(map(type, data)) != floats or not is_simple:
                return self.call(parameters, numbers, (arguments, no_names))
            inputs = numbers if gather is None else gather(numbers)
            with lock:
                check_arithmetic()
                self._latest = None
                pack_inputs(*inputs)
                pack_parameters(*data)
                number = forward()
                if not isfinite(number):
                    return None
                self.calls += 1
                self._latest = loss = make(number, self, parameters, inputs, data, (arguments, no_names))
                return loss

        return quick

    def _forward(self, inputs: Sequence[float], data: Sequence[float]) -> float:
        """Run the forward pass with these numbers."""
        check_arithmetic()
        self._latest = None
        pack_inputs, pack_parameters, forward = self._passes
        pack_inputs(*inputs)
        pack_parameters(*data)
        number: float = forward()
        return number

    def is_current(self, loss: Any) -> bool:
        """Whether all parameters have the numbers of that loss."""
        try:  # bytes, because zeros have signs, and NaN equals nothing
            return self._bits(*map(_data, loss.parameters)) == self._bits(*loss.numbers)
        except _NO_NUMBER:
            return False

    def gradients(self, loss: Any, before: Sequence[float]) -> list[float]:
        """The gradients of that loss by its parameters, added to others. Raises what Python's arithmetic raises."""
        with self._lock:
            if self._latest is not loss:  # another pass came after its own
                self._forward(loss.inputs, loss.numbers)
                self._latest = loss
            pack_gradients, backward, gradients = self._gradients
            pack_gradients(*before)
            backward()
            after: list[float] = gradients()
        if not all(map(isfinite, after)) and all(map(isfinite, before)):
            raise_as_python(self._tape, loss.inputs, loss.numbers)
        for at in self._idle:
            after[at] = before[at]
        return after

    def backward(self, loss: Any) -> None:
        """Add the gradients of that loss to those of the parameters, and of what these were computed from."""
        for v, grad in zip(loss.parameters, self.gradients(loss, tuple(map(_grad, loss.parameters)))):
            v.grad = grad
        if self._computed:
            continue_below(self._value, [loss.parameters[at] for at in self._computed if at not in self._idle])


def graph_of(traced: Traced) -> tuple[Any, Tape]:
    """A description of the graph, equal if two runs recorded the same one, and its tape."""
    try:
        tape = linearize(traced.loss, inputs=traced.inputs, parameters=traced.parameters, outputs=traced.outputs)
    except (ValueError, TypeError, AttributeError) as error:
        reason, _, remedy = str(error).partition("\n")
        raise NotTraced(reason, remedy.strip() or "Run it without the decorator.") from error
    columns = [bytes(tape.ops), *(bytes(memoryview(c).cast("B")) for c in (tape.left, tape.right, tape.index))]
    digest = hashlib.sha256(b"".join(columns)).digest()
    leaves = tuple(traced.sources), tuple(map(id, traced.parameters[len(traced.places) :])), tuple(traced.places)
    return (digest, tuple(map(repr, tape.constants)), tape.loss, tape.outputs, leaves), tape


def _are_small(numbers: Sequence[Any]) -> bool:
    """Whether all are floats or small ints."""
    return {*map(type, numbers)} <= {float, int} and all(abs(n) <= _SMALL for n in numbers)


def _gather(places: list[int], length: int) -> Optional[Callable[[Sequence[Any]], Sequence[Any]]]:
    """A function that picks these places; None if they are all, in order."""
    if places == list(range(length)):
        return None
    if len(places) > 1:
        return operator.itemgetter(*places)
    return (lambda numbers: (numbers[places[0]],)) if places else (lambda numbers: ())


def _packer(buffer: Any) -> Callable[..., None]:
    """A function that stores its arguments in a buffer of doubles."""
    return partial(struct.Struct(f"{len(buffer)}d").pack_into, buffer, 0)


class _Hole:
    """In place of a Value that a function returned, or of the parameter of that number."""

    def __init__(self, parameter: Optional[int]) -> None:
        self.parameter = parameter


def _mapped(kind: Any, result: Any, change: Callable[[Any], Any]) -> Any:
    """What a function returned, with each object of a kind changed."""
    if isinstance(result, kind):
        return change(result)
    if isinstance(result, (list, tuple)):
        parts = [_mapped(kind, each, change) for each in result]
        return parts if isinstance(result, list) else tuple(parts)
    if isinstance(result, dict):
        return {key: _mapped(kind, each, change) for key, each in result.items()}
    if result is not None and not isinstance(result, (int, float, str, bytes)):
        raise NotTraced(f"it returns a {type(result).__name__} beside the loss", "Return Values, numbers and texts.")
    return result
