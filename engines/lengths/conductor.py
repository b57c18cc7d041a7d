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


class Course(NamedTuple):
    """Steps to take."""

    members: array[int]
    """Row -> the number of its member."""
    places: array[int]
    """Row -> its number among the rows of that member."""
    first_row: int
    rows: int
    """The rows to train on wrap around after this many."""
    steps: int
    batch: int
    taken: int
    """Steps since the last update."""
    first_update: int
    """The index of the first update to come, from 0."""
    rates: array[float]
    """For each update to come."""
    losses: array[float]
    """Output: one for each step."""
    learns: bool


class Conductor:
    """Takes the steps over several lengths."""

    def __init__(self, optimiser: Optimiser, members: Sequence[Member], buffers: Sequence[Doubles]) -> None:
        """buffers: parameters, gradients and the optimiser's states, which all members share."""
        self._optimiser = optimiser
        self._buffers = buffers
        p, q, *_ = buffers
        self._passes = [
            (partial(kernel.set_input, x, shape.columns), *kernel.bind(x, p, w, y, q))
            for kernel, shape, x, w, y in members
        ]

    def take(self, course: Course) -> int:
        """Take the steps, but stop at a loss that is not finite, before its backward pass.

        Returns the number of finite losses.
        """
        row, taken, update = course.first_row, course.taken, 0
        for step in range(course.steps):
            set_row, forward, backward = self._passes[course.members[row]]
            set_row(course.places[row])
            try:
                loss = forward()
            # C continues with infinity or NaN, but Python's operators raise.
            except (ArithmeticError, ValueError):
                loss = math.nan
            course.losses[step] = loss
            if not math.isfinite(loss):
                return step
            if course.learns:
                backward()
                taken += 1
                if taken == course.batch:
                    self.update(course.first_update + update, course.rates[update], course.batch)
                    taken, update = 0, update + 1
            row = row + 1 if row + 1 < course.rows else 0
        return course.steps

    def update(self, index: int, rate: float, batch: int) -> None:
        """Update every parameter, and set its gradient to 0. index: of the update, from 0."""
        step, numbers, (p, q, *states) = self._optimiser.function, self._optimiser.numbers(index, rate), self._buffers
        results = [step(*each[:2], *numbers, batch, *each[2:]) for each in zip(p, q, *states)]
        for buffer, changed in zip((p, *states), zip(*results)):
            buffer[:] = array("d", changed)
        q[:] = array("d", bytes(8 * len(q)))


class ConductorInNumPy(Conductor):
    """Updates all parameters at once. NumPy's powers have other bits, so libm computes these one by one."""

    def __init__(self, optimiser: Optimiser, members: Sequence[Member], buffers: Sequence[Doubles]) -> None:
        import numpy as np

        super().__init__(optimiser, members, buffers)
        self._numpy = np
        self._step = optimiser.function_with(self._powers)
        self._arrays = [np.asarray(buffer) for buffer in buffers]

    def update(self, index: int, rate: float, batch: int) -> None:
        p, q, *states = self._arrays
        with self._numpy.errstate(all="ignore"):
            results = self._step(p, q, *self._optimiser.numbers(index, rate), batch, *states)
        for buffer, changed in zip((p, *states), results):
            buffer[:] = changed
        q[:] = 0.0

    def _powers(self, base: Any, exponent: float) -> Any:
        numbers = base.tolist()
        try:
            return self._numpy.array(list(map(math.pow, numbers, itertools.repeat(exponent))))
        except (ArithmeticError, ValueError):
            return self._numpy.array([power(each, exponent) for each in numbers])
