"""How far a training in float32 may be from the reference: a bound for each loss, gradient and parameter.

The training runs once more, step by step, over the recovered loops, as arrays of bounded numbers (`bounded.py`). Its
bounds hold for every rearrangement of a step, because that keeps the order of each sum, and for fused operations. For
sums that a compiler reorders, wider ones hold. They are worst cases: on `mnist`, a few updates make them orders of
magnitude larger than the true errors. So only short trainings are checked by them.

If a comparison may come out differently in float32, such as that of a ReLU whose input is almost 0, the bounds allow
both results.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Optional

from engines.api import Bounds
from engines.columns import Column
from engines.rerolled.bounded import Arithmetic, Bounded
from engines.rerolled.emit.numpy_runs import Runs
from engines.rerolled.emit.numpy_step import read_row
from engines.rerolled.recover.groups import Phase
from engines.rerolled.recover.loops import Loop, Loops, Operand

if TYPE_CHECKING:
    Rate = Callable[[int], float]

MOST_WORK = 100_000
"""Loops to run for one training, at most: about ten seconds."""


class Rounding:
    """The bounds of trainings that start with the same parameters."""

    def __init__(
        self, loops: Loops, parameters: Sequence[float], rate: Rate, *, learns: bool, is_ordered: bool
    ) -> None:
        import numpy as np

        self.np = np
        self.loops = loops
        self.start = np.array(parameters, float)
        self.rate = rate
        self.arithmetic = Arithmetic(is_ordered=is_ordered)
        self.numbers, self.errors = np.zeros(loops.workspace), np.zeros(loops.workspace)
        self._views = [Runs(part, loops.gradient_offset) for part in (self.numbers, self.errors)]
        copies = [(copy.parameter.places(copy.counts), copy.place.places(copy.counts)) for copy in loops.copies]
        none = np.zeros(0, np.int64)
        self._index, self._place = (np.concatenate([none, *column]) for column in zip((none, none), *copies))
        """Caller's index and place of each parameter that the graph uses."""
        runs = loops.loops if learns else [loop for loop in loops.loops if loop.phase == Phase.FORWARD]
        self._forward = [self._action(loop) for loop in runs if loop.phase == Phase.FORWARD]
        self._backward = [self._action(loop) for loop in runs if loop.phase != Phase.FORWARD]

    def of(self, columns: Sequence[Column], *, batch: int, steps: int) -> Optional[Bounds]:
        """The bounds after so many steps over those rows; None if the training diverges or takes too long here."""
        if steps * (len(self._forward) + len(self._backward)) > MOST_WORK:
            return None
        with self.np.errstate(all="ignore"):
            return self._train(columns, batch, steps)

    def _train(self, columns: Sequence[Column], batch: int, steps: int) -> Optional[Bounds]:
        np, loops = self.np, self.loops
        self.numbers[:] = self.errors[:] = 0.0
        constants = loops.area("k").start
        self._put(slice(constants, constants + len(loops.numbers)), loops.numbers)
        self._put(self._place, self.start[self._index])
        losses = array("d")
        for step in range(steps):
            read_row(np, self.numbers, 0, columns, step % columns[0].rows)
            self._put(slice(loops.inputs), self.numbers[: loops.inputs])
            for action in self._forward:
                action()
            loss = Bounded(*(self._leaf(view, loops.loss) for view in (self.numbers, self.errors)))
            if not np.isfinite(loss.x):
                return None
            losses.append(loss.e)
            for action in self._backward:
                action()
            if self._backward and (step + 1) % batch == 0:
                self._update(self.rate(step // batch), batch)
        # The caller keeps the doubles of parameters that the graph does not use, or rounds them with the others.
        parameters = self.arithmetic.stored(self.start).e
        parameters[self._index] = self.errors[self._place]
        gradients = np.zeros(len(self.start))
        gradients[self._index] = self.errors[self._place + loops.gradient_offset]
        return Bounds(losses, array("d", gradients.tobytes()), array("d", parameters.tobytes()))

    def _leaf(self, view: Any, operand: Operand) -> float:
        if isinstance(operand, float):
            return operand if view is self.numbers else float(self.arithmetic.stored(operand).e)
        return float(view[operand.base])  # type: ignore[union-attr]

    def _put(self, where: Any, numbers: Any) -> None:
        self.numbers[where], self.errors[where] = self.arithmetic.stored(numbers)

    def _update(self, rate: float, batch: int) -> None:
        do, away = self.arithmetic, self.loops.gradient_offset
        p, q = (Bounded(self.numbers[at], self.errors[at]) for at in (self._place, self._place + away))
        step = do.mul(do.stored(rate), q)
        updated = do.sub(p, do.div(step, do.stored(float(batch))) if batch > 1 else step)
        self.numbers[self._place], self.errors[self._place] = updated
        self.numbers[self._place + away] = self.errors[self._place + away] = 0.0

    def _action(self, loop: Loop) -> Callable[[], None]:
        """A function that computes one loop."""
        np, do = self.np, self.arithmetic
        targets = [view.view(loop.target, loop.counts) for view in self._views]
        adds = loop.phase == Phase.SINK
        segments = [
            (
                do.evaluator(segment.template),
                [self._operand(operand, loop.counts, segment.counts) for operand in segment.operands],
                segment.counts,
            )
            for segment in loop.segments
        ]

        def action() -> None:
            rows = [Bounded(*(target[None] for target in targets))] if adds else []
            for evaluate, operands, counts in segments:
                terms = evaluate([operand() for operand in operands])
                shape = (*counts, *loop.counts)
                found = Bounded(*(np.broadcast_to(part, shape) for part in terms))
                rows.append(Bounded(*(part.reshape((-1, *loop.counts)) for part in found)))
            for target, part in zip(targets, do.total(rows)):
                target[...] = part

        return action

    def _operand(self, operand: Operand, lanes: Sequence[int], terms: Sequence[int]) -> Callable[[], Bounded]:
        """A function that reads an operand, as arrays of shape (terms…, lanes…)."""
        if isinstance(operand, float):
            number = self.arithmetic.stored(operand)
            return lambda: number
        found = [view.operand(operand, lanes, terms) for view in self._views]
        return lambda: Bounded(*(part() if callable(part) else part for part in found))
