"""The `Workload` class: data, model, loss and training schedule, written once against any engine's Value."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Optional, Union

from zoomgrad.datasets import Dataset
from zoomgrad.datasets.names import Names
from zoomgrad.engines.api import Network, Shape
from zoomgrad.engines.columns import Column
from zoomgrad.engines.graph.optimisers import SGD, Optimiser
from zoomgrad.engines.nn import as_list, cross_entropy, hinge, l2, squared_error
from zoomgrad.harness.workloads.models import Build, Mlp

SEED = 1337
"""Parameters start from `random.Random(SEED)` in neuron order, as micrograd's examples do."""

LOSSES = {(squared_error, 0.0): "squared_error", (hinge, 1e-4): "hinge_l2", (cross_entropy, 0.0): "cross_entropy"}
"""Loss and penalty -> the name in `engines.api.Network.loss`."""


@dataclass(frozen=True)
class Workload:
    """A training task. A step reads one row of the dataset, or the whole training set in one graph (`whole_set`)."""

    name: str
    description: str
    reader: Callable[..., Union[Dataset, Names]]
    train_rows: int
    """Number of rows to train on, known without reading the dataset."""
    build: Build
    loss_of: Callable[[Sequence[Any], Sequence[Any]], Any]
    """(outputs, targets) of all samples of a step -> loss, over Values."""
    rate: Callable[[int], float]
    penalty: float = 0.0
    """The loss adds this times the sum of the squared parameters."""
    batch: int = 1
    whole_set: bool = False
    learns: bool = True
    """Whether a step trains. If not, it runs the forward pass and records its loss, and no parameter changes."""
    optimiser: Optimiser = SGD
    classes: int = 0
    """If a row is a sequence of class labels, followed by as many targets: the number of classes. Rows may then have
    several lengths. Else 0."""
    epoch_steps: Optional[int] = None
    """Steps of an epoch, if it does not train on every row once."""

    def data(self) -> Any:
        """Training data, a Dataset or Names, read once per process. Raises datasets.Unavailable."""
        return _read(self.reader)

    @property
    def samples_per_step(self) -> int:
        return self.train_rows if self.whole_set else 1

    @property
    def steps_per_epoch(self) -> int:
        return 1 if self.whole_set else self.epoch_steps or self.train_rows

    @property
    def rows(self) -> int:
        """Number of different rows."""
        return 1 if self.whole_set else self.train_rows

    @property
    def varies(self) -> bool:
        """Whether rows have several lengths, each with a graph of its own."""
        return bool(self.classes)

    @property
    def network(self) -> Optional[Network]:
        """The model for engines that run whole models only; None unless it is an MLP whose loss has a name."""
        mlp, loss = self.build, LOSSES.get((self.loss_of, self.penalty))
        if not isinstance(mlp, Mlp) or loss is None:
            return None
        return Network(mlp.shape, mlp.activation, mlp.last_linear, loss, self.samples_per_step)

    def row(self, step: int) -> array[float]:
        """Input leaves of that step as doubles: features, then targets, sample by sample."""
        return _whole_set(self.reader) if self.whole_set else self.data().inputs(step % self.train_rows)

    def columns(self) -> tuple[Column, ...]:
        """Training rows as they are in memory, without a copy."""
        if self.whole_set:
            row = _whole_set(self.reader)
            return (Column(row, len(row)),)
        data, rows = self.data(), self.train_rows
        features = Column(memoryview(data.features)[: rows * data.width], data.width, data.divisor)
        if data.classes:
            return features, Column(memoryview(data.targets)[:rows], data.classes, one_hot=True)
        return features, Column(memoryview(data.targets)[: rows * data.target_width], data.target_width)

    def shapes(self) -> tuple[Shape, ...]:
        """The training rows of each length, in the order in which they are met first."""
        if not self.classes:
            return (Shape(self.columns(), range(self.rows)),)
        return _shapes(self.reader, self.train_rows, self.classes)

    def model(self, nn: Any) -> Any:
        """A new model with its starting parameters."""
        return self.build(nn, random.Random(SEED))

    def outputs(self, model: Any, inputs: Sequence[Any]) -> list[Any]:
        """The model's outputs for every sample of the row, concatenated."""
        return [out for features, _ in self.samples(inputs) for out in as_list(model(features))]

    def loss(self, model: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        loss = self.loss_of(outputs, [t for _, targets in self.samples(inputs) for t in targets])
        return loss + l2(model.parameters(), self.penalty) if self.penalty else loss

    def samples(self, inputs: Sequence[Any]) -> Iterator[tuple[Sequence[Any], Sequence[Any]]]:
        """Yield a row's (features, targets), sample by sample."""
        if self.classes:
            middle = len(inputs) // 2
            yield inputs[:middle], inputs[middle:]
            return
        data = self.data()
        width, targets = data.width, data.classes or data.target_width
        for start in range(0, len(inputs), width + targets):
            middle = start + width
            yield inputs[start:middle], inputs[middle : middle + targets]


@cache
def _read(reader: Callable[[], Any]) -> Any:
    return reader()


@cache
def _whole_set(reader: Callable[[], Any]) -> array[float]:
    data = _read(reader)
    return array("d", (x for sample in range(data.train_rows) for x in data.inputs(sample)))


@cache
def _shapes(reader: Callable[[], Any], train_rows: int, classes: int) -> tuple[Shape, ...]:
    data = _read(reader)
    of_length: dict[int, list[int]] = {}
    for row in range(train_rows):
        of_length.setdefault(len(data.labels(row)), []).append(row)
    made = []
    for rows in of_length.values():
        places = zip(*map(data.labels, rows))
        made.append(Shape(tuple(Column(bytes(labels), classes, one_hot=True) for labels in places), rows))
    return tuple(made)
