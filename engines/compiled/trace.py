"""Workload -> Graph: run one step of a workload's program over Values that record it."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from zoomgrad.engines import nn
from zoomgrad.engines.api import DOMAIN_ERRORS, Workload, tell_domain_error
from zoomgrad.engines.graph.check import CHECKED, check
from zoomgrad.engines.graph.linearize import linearize
from zoomgrad.engines.graph.tape import Tape
from zoomgrad.engines.native.build import recorder


class Graph(NamedTuple):
    """A graph of Values. Leaves that are neither inputs nor parameters are constants."""

    loss: Any
    inputs: Sequence[Any]
    parameters: Sequence[Any]
    outputs: Sequence[Any] = ()
    """Values whose data each forward pass returns."""

    def tape(self) -> Tape:
        tape = linearize(self.loss, inputs=self.inputs, parameters=self.parameters, outputs=self.outputs)
        return check(tape) if CHECKED else tape

    def numbers(self) -> tuple[list[float], list[float]]:
        return [v.data for v in self.inputs], [v.data for v in self.parameters]


def trace(workload: Workload, row: array[float], model: Optional[Any] = None) -> Graph:
    """The graph of the workload's step on that row, by default for a new model. Explains domain errors to the user."""
    value = recorder()
    try:
        model = workload.model(nn.bind(value)) if model is None else model
        inputs = [value(x) for x in row]
        outputs = workload.outputs(model, inputs)
        return Graph(workload.loss(model, inputs, outputs), inputs, model.parameters(), outputs)
    except DOMAIN_ERRORS as error:
        tell_domain_error(0, error)
        raise
