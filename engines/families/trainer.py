"""The Trainer over a family of kernels, which share parameters."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Optional

from engines.api import NonFiniteLoss, Shape, Workload
from engines.arguments import finite_rate, whole
from engines.arithmetic import check_arithmetic
from engines.columns import check_labels
from engines.families.conductor import Conductor, Course, Member, Shared
from engines.kernel.program import Doubles, Kernel

MOST_AT_ONCE = 1 << 16
"""Steps of one call, which needs a few numbers for each."""

Conduct = Callable[[Sequence[Member], Shared], Conductor]


class FamilyTrainer:
    """Trains with a kernel for each shape. All of them are built before the first step."""

    def __init__(
        self,
        workload: Workload,
        kernels: Sequence[tuple[Shape, Kernel]],
        *,
        outputs: Sequence[int],
        parameters: Sequence[float],
        order: Sequence[int],
        conduct: Conduct,
        phases: Mapping[str, float],
        sizes: Mapping[str, float],
        shape_seconds: Mapping[int, float],
    ) -> None:
        """outputs: how many each kernel has. parameters: in the kernels' order. order: index of each in the model.

        conduct: makes the conductor of these members.
        """
        self._order = order
        self.phases, self.sizes = phases, sizes
        self.shape_seconds = shape_seconds
        """Inputs of a shape -> seconds that its kernel took, all phases together."""
        self.losses = array("d")
        self._workload = workload
        self._batch = whole(workload.batch, "batch", 1)
        self._start = array("d", parameters)
        zeros = array("d", bytes(8 * len(self._start)))
        states = tuple(zeros[:] for _ in workload.optimiser.states)
        self._shared = Shared(self._start[:], zeros[:], states)
        spaces = _workspaces([kernel for _, kernel in kernels])
        members = [
            _member(kernel, shape, space, count) for (shape, kernel), space, count in zip(kernels, spaces, outputs)
        ]
        self._of_length = {len(member.x): member for member in members}
        self._conductor = conduct(members, self._shared)
        self._all_rows = self._rows = sum(len(member.shape.rows) for member in members)
        for member in members:
            # Check once here, because a step is too short for checks.
            check_labels(member.shape.columns)
            if not all(0 <= row < self._rows for row in member.shape.rows):
                raise ValueError("the shapes' rows must be numbered from 0 without gaps")
            if len(member.shape.rows) > member.shape.columns[0].rows:
                raise ValueError("a shape names more rows than its columns hold")
        self._members, self._places = array("q", bytes(8 * self._rows)), array("q", bytes(8 * self._rows))
        for number, member in enumerate(members):
            for place, row in enumerate(member.shape.rows):
                self._members[row], self._places[row] = number, place

    def restart(self, *, batch: int, rows: Optional[int] = None) -> None:
        self._batch = whole(batch, "batch", 1)
        self._rows = self._all_rows if rows is None else whole(rows, "rows", 1, self._all_rows)
        self.losses = array("d")
        self._shared.p[:] = self._start
        for buffer in (self._shared.q, *self._shared.states):
            buffer[:] = array("d", bytes(8 * len(buffer)))

    def train(self, steps: int) -> None:
        check_arithmetic()
        left = whole(steps, "steps", 0)
        while left:
            part = min(left, MOST_AT_ONCE)
            self._train(part)
            left -= part

    def _train(self, steps: int) -> None:
        workload, taken = self._workload, len(self.losses)
        waiting = taken % self._batch
        updates = range(taken // self._batch, (taken + steps) // self._batch) if workload.learns else ()
        numbers = array("d")
        for update in updates:
            numbers.extend(workload.optimiser.numbers(update, finite_rate(workload.rate(update), update)))
        losses = array("d", bytes(8 * steps))
        course = Course(
            self._members,
            self._places,
            taken % self._rows,
            self._rows,
            steps,
            self._batch,
            waiting,
            numbers,
            losses,
            workload.learns,
        )
        done = self._conductor.take(course)
        self.losses.extend(losses[:done])
        if done < steps:
            raise NonFiniteLoss(len(self.losses), losses[done])

    def parameters(self) -> array[float]:
        return self._as_in_the_model(self._shared.p)

    def gradients(self) -> array[float]:
        return self._as_in_the_model(self._shared.q)

    def states(self) -> dict[str, array[float]]:
        """What the optimiser keeps, by name."""
        names = self._workload.optimiser.states
        return {name: self._as_in_the_model(state) for name, state in zip(names, self._shared.states)}

    def _as_in_the_model(self, ours: array[float]) -> array[float]:
        found = array("d", bytes(8 * len(ours)))
        for number, index in zip(ours, self._order):
            found[index] = number
        return found

    def predict(self, row: array[float]) -> array[float]:
        member = self._of_length.get(len(row))
        if member is None:
            lengths = ", ".join(f"{length:,}" for length in sorted(self._of_length))
            raise ValueError(
                f"no training row has {len(row):,} numbers\n  Pass a row of one of these lengths: {lengths}."
            )
        check_arithmetic()
        member.x[:] = row
        member.kernel.forward(member.x, self._shared.p, member.w, member.y)
        return member.y[:]


def _workspaces(kernels: Sequence[Kernel]) -> list[Doubles]:
    """A workspace for each kernel. C's share one, which stays in the processor's cache from step to step.

    A pass expects nothing there but what the passes before it wrote in the same step.
    """
    spaces = [kernel.workspace() for kernel in kernels]
    if all(isinstance(space, array) for space in spaces):
        return [max(spaces, key=len)] * len(spaces)
    return spaces


def _member(kernel: Kernel, shape: Shape, w: Doubles, outputs: int) -> Member:
    width = sum(column.width for column in shape.columns)
    return Member(kernel, shape, array("d", bytes(8 * width)), w, array("d", bytes(8 * outputs)))
