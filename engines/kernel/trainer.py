"""The training contract, implemented with a Program."""

from __future__ import annotations

from array import array

from zoomgrad.engines.api import Workload
from zoomgrad.engines.arguments import whole
from zoomgrad.engines.columns import check_labels, columns
from zoomgrad.engines.kernel.program import Program
from zoomgrad.engines.training import Trainer


class CompiledTrainer(Trainer):
    """The Trainer of every compiled engine."""

    def __init__(self, program: Program, workload: Workload) -> None:
        super().__init__(array("d", program.parameters), workload)
        self._program = program
        # Check once here, because a step is too short for checks.
        self._all_columns = self._columns = columns(workload.columns(), len(program.inputs))
        check_labels(self._columns)
        self.phases, self.sizes = program.phases, program.sizes

    def _begin(self, parameters: array[float]) -> None:
        rows = self._rows
        self._columns = self._all_columns if rows is None else tuple(column.first(rows) for column in self._all_columns)
        self._program.parameters[:] = parameters
        self._program.zero_grad()

    def train(self, steps: int) -> None:
        steps, taken = whole(steps, "steps", 0), len(self.losses)
        self._program.run(
            self.losses,
            self._columns,
            self._workload.rate,
            self._batch,
            steps,
            (self._first + taken) % self._columns[0].rows,
            update=taken // self._batch,
            learns=self._workload.learns,
        )

    def parameters(self) -> array[float]:
        return array("d", self._program.parameters)

    def gradients(self) -> array[float]:
        return array("d", self._program.gradients)

    def predict(self, row: array[float]) -> array[float]:
        self._program.set_input(row)
        self._program.forward()
        return array("d", self._program.outputs)
