"""Run -> NumPy array operations over views of the workspace.

NumPy keeps the bits if it adds each lane's terms one after the other: with a reduction over the first axis of an array
of lanes, or with `cumsum` for a single lane. Its other sums add in pairs, and its `exp`, `tanh` and powers differ from
libm's, so functions are Python's, one element at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from zoomgrad.engines.graph.expr import Expr, Spelling, calls
from zoomgrad.engines.rerolled.recover.loops import Access, Operand, Phase
from zoomgrad.engines.rerolled.recover.templates import SLOTS
from zoomgrad.engines.rerolled.step.language import Run

Array = np.ndarray[Any, Any]
_ADD: Any = np.add  # whose type lacks `reduce` without `out`

_ARRAYS = Spelling(where="where({condition}, {then}, {otherwise})")
"""Python over arrays, for which NumPy overloads the operators."""


class Runs:
    """Creates functions without arguments, each of which computes one run over the workspace."""

    def __init__(self, w: Array) -> None:
        self.w = w
        self.rate = 0.0
        """The learning rate of runs that update parameters."""

    def of(self, run: Run) -> Callable[[], None]:
        loop, in_place = run.loop, run.in_place
        array, at = self.places(loop.target, loop.counts)
        adds = loop.phase == Phase.SINK and not in_place
        segments = [
            (
                _evaluator(segment.template),
                [self.operand(operand, loop.counts, segment.counts) for operand in segment.operands],
                segment.counts,
                np.empty((segment.terms + 1, loop.lanes)) if segment.counts else None,
            )
            for segment in loop.segments
        ]

        def action() -> None:
            total: Any = array[at] if adds else None
            for evaluate, operands, counts, rows in segments:
                terms = evaluate([operand() if callable(operand) else operand for operand in operands])
                if rows is None:
                    total = terms if total is None else total + terms
                    continue
                # The sum so far comes first, then the terms, row by row.
                rows[0] = 0.0 if total is None else np.broadcast_to(total, loop.counts).reshape(-1)
                rows[1:] = np.broadcast_to(terms, (*counts, *loop.counts)).reshape(len(rows) - 1, -1)
                total = (_ADD.reduce(rows, axis=0) if loop.lanes > 1 else np.cumsum(rows)[-1]).reshape(loop.counts)
            if not in_place:
                array[at] = total
            elif at is ...:
                np.subtract(array, self.rate * total, out=array)
            else:
                array[at] -= self.rate * total

        return action

    def operand(self, operand: Operand, lanes: Sequence[int], terms: Sequence[int]) -> Any:
        """A number, a view of shape (terms…, lanes…), or a function that reads listed places."""
        if isinstance(operand, float):
            return operand
        array, at = self.places(operand, lanes, terms)
        return array if at is ... else lambda: array[at]

    def places(self, access: Access, lanes: Sequence[int], terms: Sequence[int] = ()) -> tuple[Array, Any]:
        """A view of shape (terms…, lanes…), and an index for all of it; or w, and the listed places."""
        steps, counts = (*access.terms, *access.lanes), (*terms, *lanes)
        if any(isinstance(stride, tuple) for stride in steps):
            return self.w, Access(access.base, steps).places(counts).reshape(counts)
        strides: Any = [8 * stride for stride in steps]
        return np.lib.stride_tricks.as_strided(self.w[access.base :], counts, strides), ...


@cache
def _evaluator(template: Expr) -> Callable[[Sequence[Any]], Any]:
    """Compile a template to a function of its operands, element by element."""
    leaves = {slot.name: f"operands[{slot.name}]" for slot in SLOTS}
    functions = {call.primitive: partial(_each, getattr(math, call.primitive)) for call in calls(template)}
    made: Callable[[Sequence[Any]], Any] = eval(  # noqa: S307  (text from the op table, not from input)
        f"lambda operands: {_ARRAYS.spell(template, leaves)[0]}", {"where": np.where, **functions}
    )
    return made


def _each(function: Callable[..., float], *operands: Any) -> Any:
    """Apply a Python function to broadcast operands."""
    shape = np.broadcast_shapes(*(np.shape(operand) for operand in operands))
    columns = [np.broadcast_to(operand, shape).reshape(-1).tolist() for operand in operands]
    return np.array(list(map(function, *columns))).reshape(shape)
