"""Steps with the kernels of several lengths, in Python. Reference implementation of `in_machine_code`."""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from zoomgrad.engines.api import Shape
from zoomgrad.engines.graph.optimisers import Optimiser, power
from zoomgrad.engines.kernel.program import Doubles, Kernel


class Member(NamedTuple):
    """The kernel of one shape, with buffers of its own."""

    kernel: Kernel
    shape: Shape
    x: array[float]
    w: Doubles
    y: array[float]


class Conductor:
    """Takes the steps over several lengths."""

    def __init__(self, optimiser: Optimiser, members: Sequence[Member], buffers: Sequence[Doubles]) -> None:
        """buffers: parameters, gradients and the optimiser's states, which all members share."""
        self.members, self.buffers = members, buffers
        self._optimiser = optimiser
        self._step = optimiser.function()
        p, q, *_ = buffers
        self._passes = [
            (partial(kernel.set_input, x, shape.columns), *kernel.bind(x, p, w, y, q))
            for kernel, shape, x, w, y in members
        ]
        rows = sorted(
            (row, number, place) for number, each in enumerate(members) for place, row in enumerate(each.shape.rows)
        )
        self._member_numbers, self._places = (array("q", [each[at] for each in rows]) for at in (1, 2))
        """For each row, the member's number, and the row's index within that member."""

    def take(
        self,
        first_row: int,
        rows: int,
        steps: int,
        batch: int,
        taken: int,
        first_update: int,
        rates: array[float],
        losses: array[float],
        learns: bool,
    ) -> int:
        """Take the steps, but stop at a loss that is not finite, before its backward pass.

        Rows wrap around after `rows`. taken: steps since the last update. first_update: the index, from 0, of the first
        update to come. rates: for each update to come. losses: output, one for each step.

        Returns the number of finite losses.
        """
        updates = enumerate(rates, first_update)
        for step in range(steps):
            row = (first_row + step) % rows
            set_row, forward, backward = self._passes[self._member_numbers[row]]
            set_row(self._places[row])
            try:
                loss = forward()
            # C continues with infinity or NaN, but Python's operators raise.
            except (ArithmeticError, ValueError):
                loss = math.nan
            losses[step] = loss
            if not math.isfinite(loss):
                return step
            if learns:
                backward()
                if (taken + step + 1) % batch == 0:
                    self.update(*next(updates), batch)
        return steps

    def update(self, index: int, rate: float, batch: int) -> None:
        """Update every parameter, and set its gradient to 0. index: of the update, from 0."""
        step, numbers, (p, q, *states) = self._step, self._optimiser.numbers(index, rate), self.buffers
        results = [step(*each[:2], *numbers, batch, *each[2:]) for each in zip(p, q, *states)]
        for buffer, changed in zip((*states, p), zip(*results)):
            buffer[:] = array("d", changed)
        q[:] = array("d", bytes(8 * len(q)))


class ConductorInNumPy(Conductor):
    """Updates all parameters at once. NumPy's powers have other bits, so libm computes these one by one."""

    def __init__(self, optimiser: Optimiser, members: Sequence[Member], buffers: Sequence[Doubles]) -> None:
        import numpy as np

        super().__init__(optimiser, members, buffers)
        self._numpy = np
        # Not a method: a cycle with cffi's memoryviews crashes CPython before 3.12.7 (python/cpython#77894).
        self._step = optimiser.function(partial(_powers, np))
        self._arrays = [np.asarray(buffer) for buffer in buffers]

    def update(self, index: int, rate: float, batch: int) -> None:
        p, q, *states = self._arrays
        with self._numpy.errstate(all="ignore"):
            results = self._step(p, q, *self._optimiser.numbers(index, rate), batch, *states)
        for buffer, changed in zip((*states, p), results):
            buffer[:] = changed
        q[:] = 0.0


def _powers(numpy: Any, base: Any, exponent: float) -> Any:
    numbers = base.tolist()
    try:
        return numpy.array(list(map(math.pow, numbers, itertools.repeat(exponent))))
    except (ArithmeticError, ValueError):
        return numpy.array([power(each, exponent) for each in numbers])
