"""The program of one structure of arguments, and the way from Values to its buffers and back.

The leaves of the graph are inputs, whose numbers come with each call, and parameters: the Values among the arguments,
and those that the function reached itself, which are called captured. A call copies the parameters' numbers into the
program and runs it forward. The backward pass loads their gradients, lets the program add to them as the interpreter
would, and stores the sums.
"""

from __future__ import annotations

import operator
import struct
import threading
from collections.abc import Sequence
from functools import partial
from math import isfinite
from typing import Any, Callable, NamedTuple, Optional

from zoomgrad.check import same
from zoomgrad.engines.graph.arithmetic import check_arithmetic
from zoomgrad.engines.graph.check import BrokenTape
from zoomgrad.held import Held
from zoomgrad.loss import maker, pass_to
from zoomgrad.signature import NotTraced, Signature, put_together, take_apart
from zoomgrad.trace import Traced, is_datum


class Call(NamedTuple):
    """The call that computed a result."""

    variant: Variant
    parameters: tuple[Any, ...]
    inputs: Sequence[float]
    data: tuple[float, ...]
    """The parameters' numbers."""
    arguments: Any
    """Positional and named arguments of the function."""


_NO_NUMBER = (struct.error, ZeroDivisionError, OverflowError, ValueError, TypeError)
"""Errors of a forward pass: a number that is not a double, or an error of Python's operators."""

_data, _grad = operator.attrgetter("data"), operator.attrgetter("grad")


class Refused(NamedTuple):
    """In place of a program: each call runs the function itself."""

    why: str
    objects: list[Any]
    """Holds the objects, because the structure names them by identity."""
    calls: int = 0

    def report(self) -> str:
        """What it is, as text."""
        return f"runs as it is: {self.why}"


class Variant:
    """The program of one structure, and buffers that only this class writes."""

    why = ""

    def __init__(self, engine: Any, signature: Signature, traced: Traced, held: Held, again: Any) -> None:
        """again: runs the function as it is, with the arguments of a call."""
        self.objects = signature.objects
        self.calls = 0
        self.held, self._again = held, again
        self.traces = 0
        self.next_check = 2
        loss, *outputs = traced.returned.values
        self._value, self._grad = engine.Value, loss.grad
        kind: Any = engine.Value if is_datum(loss) else type(loss)
        self._make = maker(kind)
        self._lock = threading.RLock()
        self._latest: Any = None
        """The call whose forward pass the program ran last."""
        leaves = traced.parameters
        self._program = _compiled(engine, loss, inputs=traced.inputs, parameters=leaves, outputs=outputs)
        x, p, q, forward, backward = self._program.bound()
        self._passes = _packer(x, len(traced.inputs)), _packer(p, len(p)), forward
        self._gradients = _packer(q, len(q)), backward, q.tolist
        self._floats = (float,) * len(leaves)
        self._gather = _gather(traced.sources, len(signature.numbers))
        self._pick = _gather(traced.places, len(signature.values))
        self.captured = leaves[len(traced.places) :]
        self._captured_ids = {*map(id, self.captured)}
        self._idle = sorted({*range(len(leaves))} - {*traced.used})
        self._operands = _gather(traced.used, len(leaves))
        places = {id(v): at for at, v in enumerate(leaves)}
        self._returned = traced.returned
        self._is_alone = traced.returned.structure[0] == "computed"
        self._returned_parameters = [places.get(id(v)) for v in outputs]

    def report(self) -> str:
        captured = f", {len(self.captured)} of them captured" if self.captured else ""
        return f"calls: {self.calls:,}, parameters: {len(self._floats):,}{captured}, traces: {self.traces}"

    def call(self, signature: Signature, arguments: Any) -> Any:
        """What the function returns, with results in place of Values. None if the function itself must run.

        It must if the loss or an output is not finite, because the function may raise an error then, if a parameter is
        neither a float nor an int, and if the function also reaches one of its arguments itself.
        """
        values, numbers, gather = signature.values, signature.numbers, self._gather
        if self.captured and not self._captured_ids.isdisjoint(map(id, values)):
            return None
        parameters = (*(self._pick(values) if self._pick else values), *self.captured)
        data = tuple(map(_data, parameters))
        inputs = numbers if gather is None else gather(numbers)
        if tuple(map(type, data)) != self._floats and not {*map(type, data)} <= {float, int}:
            return None
        with self._lock:
            try:
                number = self._forward(inputs, data)
            except _NO_NUMBER:
                return None
            self._latest = call = Call(self, parameters, inputs, data, arguments)
            outputs = list(self._program.outputs) if self._returned_parameters else []
            if not isfinite(number) or not all(map(isfinite, outputs)):
                return None
            self.calls += 1
        used = parameters if self._operands is None else self._operands(parameters)
        results = [self._result(number, used, call, 0)]
        if self._is_alone:
            return results[0]
        for place, (number, at) in enumerate(zip(outputs, self._returned_parameters), 1):
            results.append(self._result(number, parameters, call, place) if at is None else parameters[at])
        return put_together(self._returned, results, lambda number, kind: kind(number))

    def _result(self, number: float, operands: tuple[Any, ...], call: Call, place: int) -> Any:
        result = self._make(number, operands, self._grad)
        result.call, result.place, result.passes = call, place, ()
        return result

    def _forward(self, inputs: Sequence[float], data: Sequence[float]) -> float:
        """Run the forward pass with these numbers."""
        check_arithmetic()
        self._latest = None
        pack_inputs, pack_parameters, forward = self._passes
        pack_inputs(*inputs)
        pack_parameters(*data)
        number: float = forward()
        return number

    def gradients(self, call: Call, before: Sequence[float]) -> list[float]:
        """The gradients of a call's loss by its parameters, added to others."""
        with self._lock:
            if self._latest is not call:  # the program ran another call meanwhile
                self._forward(call.inputs, call.data)
                self._latest = call
            pack_gradients, backward, gradients = self._gradients
            pack_gradients(*before)
            backward()
            after: list[float] = gradients()
        for at in self._idle:
            after[at] = before[at]
        return after

    def contribute(self, result: Any) -> None:
        """Pass a result's gradient on to the parameters of its call.

        The program does that for the loss, once, unless a parameter has another number now or a gradient is not finite.
        """
        parameters, scale = result.call.parameters, result.grad
        with self._lock:
            passes = result.passes = (*result.passes, scale)
        if not result.place and len(passes) == 1 and same(tuple(map(_data, parameters)), result.call.data):
            before = tuple(map(_grad, parameters))
            after = self.gradients(result.call, before if scale == 1.0 else [0.0] * len(before))
            if all(map(isfinite, after)):
                for v, add, grad in zip(parameters, before, after):
                    v.grad = grad if scale == 1.0 else add + scale * grad
                return
        self._contribute_by_function(result, passes)

    def _contribute_by_function(self, result: Any, passes: Sequence[float]) -> None:
        """Repeat the call with its own numbers, then its backward passes with the parameters' present numbers."""
        parameters = result.call.parameters
        data, grads = ([*map(part, parameters)] for part in (_data, _grad))
        _put("data", parameters, result.call.data)
        try:
            real = take_apart(self._value, self._again(result.call.arguments)).values[result.place]
            if not same((real.data,), (result.data,)):
                raise RuntimeError("an argument of this loss has changed\n  Use the loss before you change it.")
        finally:
            _put("data", parameters, data)
        for real.grad in passes:
            _put("grad", parameters, grads)
            pass_to(parameters, real)


def _put(name: str, parameters: Sequence[Any], numbers: Sequence[Any]) -> None:
    for v, number in zip(parameters, numbers):
        setattr(v, name, number)


def _compiled(engine: Any, loss: Any, **parts: Any) -> Any:
    try:
        return engine.compile(loss, **parts)
    except (ValueError, TypeError, AttributeError, BrokenTape) as error:
        reason, _, remedy = str(error).partition("\n")
        raise NotTraced(reason, remedy.strip() or "Run it without the decorator.") from error


def _gather(places: list[int], length: int) -> Optional[Callable[[Sequence[Any]], Any]]:
    """A function that picks these places; None if they are all, in order."""
    if places == list(range(length)):
        return None
    if len(places) > 1:
        return operator.itemgetter(*places)
    return (lambda numbers: (numbers[places[0]],)) if places else (lambda numbers: ())


def _packer(buffer: Any, count: int) -> Callable[..., None]:
    """A function that stores its arguments in the first places of a buffer of doubles."""
    return partial(struct.Struct(f"{count}d").pack_into, buffer, 0)
