"""The Trainer over kernels of several lengths, which share parameters."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from zoomgrad.engines.api import NonFiniteLoss, Workload
from zoomgrad.engines.arguments import finite_rates, whole
from zoomgrad.engines.columns import check_labels
from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.kernel.program import Alone
from zoomgrad.engines.lengths.conductor import Conductor
from zoomgrad.engines.training import Trainer


class TrainerOfLengths(Trainer):
    """Trains with a kernel for each shape."""

    def __init__(
        self, workload: Workload, start: array[float], places: Sequence[int], conductor: Conductor, clock: Clock
    ) -> None:
        """start: the parameters. places: the index in the conductor's buffers of each parameter of the model.

        conductor: has a member for each shape, whose columns have been checked.
        """
        self._p, self._q, *self._states = conductor.buffers
        self._places = places
        self._alone = Alone("Trainer", "Prepare the workload once for each thread")
        super().__init__(start, workload)
        self.phases, self.sizes = clock.phases, clock.sizes
        self._conductor = conductor
        rows = [row for each in conductor.members for row in each.shape.rows]
        # Check once here, because a step is too short for checks.
        for each in conductor.members:
            check_labels(each.shape.columns)
            if len(each.shape.rows) > each.shape.columns[0].rows:
                raise ValueError("a shape names more rows than its columns hold")
        if set(rows) != set(range(len(rows))):
            raise ValueError("the shapes' rows must be numbered from 0 without gaps")
        self._count = len(rows)
        self._of_length = {len(member.x): member for member in conductor.members}
        self._begin(start)

    def _begin(self, parameters: array[float]) -> None:
        with self._alone:
            for buffer in (self._p, self._q, *self._states):
                buffer[:] = array("d", bytes(8 * len(buffer)))
            for place, number in zip(self._places, parameters):
                self._p[place] = number

    def train(self, steps: int) -> None:
        steps, rows = whole(steps, "steps", 0), self._rows or self._count
        with self._alone:
            workload, taken = self._workload, len(self.losses)
            updates = range(taken // self._batch, (taken + steps) // self._batch) if workload.learns else range(0)
            losses = array("d", bytes(8 * steps))
            done = self._conductor.take(
                (self._first + taken) % rows,
                rows,
                steps,
                self._batch,
                taken % self._batch,
                updates.start,
                finite_rates(workload.rate, updates),
                losses,
                bool(workload.learns),
            )
            self.losses.extend(losses[:done])
        if done < steps:
            raise NonFiniteLoss(len(self.losses), losses[done])

    def parameters(self) -> array[float]:
        return array("d", [self._p[place] for place in self._places])

    def gradients(self) -> array[float]:
        return array("d", [self._q[place] for place in self._places])

    def predict(self, row: array[float]) -> array[float]:
        if len(row) not in self._of_length:
            lengths = ", ".join(f"{length:,}" for length in sorted(self._of_length))
            raise ValueError(
                f"no training row has {len(row):,} numbers\n  Pass a row of one of these lengths: {lengths}."
            )
        member = self._of_length[len(row)]
        with self._alone:
            memoryview(member.x)[:] = array("d", row)  # refuses another length, where an array would move
            member.kernel.forward(member.x, self._p, member.w, member.y)
            return member.y[:]
