"""Workloads: data, model, loss and training schedule, each written once against any engine's Value.

One entry in `WORKLOADS` adds one. Worker-safe: a worker builds its workload from the name alone.
"""

from __future__ import annotations

import itertools
import random
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Optional

from datasets import Dataset, digits, mnist, moons, synthetic, tour, xor
from engines.api import UnknownName
from engines.columns import Column
from engines.nn import as_list, cross_entropy, hinge, l2, squared_error

SEED = 1337
"""Parameters start from `random.Random(SEED)` in neuron order, as micrograd's examples do."""

Loss = Callable[[Any, Sequence[Any], Sequence[Any]], Any]
"""(model, outputs, targets) -> loss, over Values."""


@dataclass(frozen=True)
class Workload:
    """A training task. A step sees one row of the dataset, or the whole training set in one graph (`whole_set`)."""

    name: str
    description: str
    reader: Callable[[], Dataset]
    train_rows: int
    """Rows of the dataset to train on, known without reading it."""
    shape: tuple[int, ...]
    """Sizes of the layers, inputs first."""
    loss_of: Loss
    is_correct: Callable[[Sequence[float], Sequence[float]], bool]
    """(outputs, targets) of one sample -> whether it counts as right."""
    batch: int
    rate: Callable[[int], float]
    whole_set: bool = False
    held_out: Optional[Callable[[], Dataset]] = None
    """A test set of its own, where the dataset does not hold one back."""
    activation: str = "relu"
    last_linear: bool = True
    random_bias: bool = False
    tolerance: Optional[float] = None
    """Training by hand stops below this loss."""
    epochs: int = 1
    """How many epochs training by hand takes, unless told."""
    seed: int = SEED

    def data(self) -> Dataset:
        """The training data, read once a process. Raises datasets.Unavailable."""
        return _read(self.reader)

    @property
    def samples_per_step(self) -> int:
        return self.train_rows if self.whole_set else 1

    @property
    def steps_per_epoch(self) -> int:
        return 1 if self.whole_set else self.train_rows

    @property
    def weights(self) -> int:
        return sum(nin * nout + nout for nin, nout in zip(self.shape, self.shape[1:]))

    def row(self, step: int) -> array[float]:
        """The input leaves of that step, as doubles: features, then targets, sample by sample."""
        return _whole_set(self.reader) if self.whole_set else self.data().inputs(step % self.train_rows)

    def columns(self) -> tuple[Column, ...]:
        """The training rows as they lie in memory, without a copy."""
        if self.whole_set:
            row = _whole_set(self.reader)
            return (Column(row, len(row)),)
        data, rows = self.data(), self.train_rows
        features = Column(memoryview(data.features)[: rows * data.width], data.width, data.divisor)
        if data.classes:
            return features, Column(memoryview(data.targets)[:rows], data.classes, one_hot=True)
        return features, Column(memoryview(data.targets)[: rows * data.target_width], data.target_width)

    def model(self, nn: Any) -> Any:
        """The MLP with its starting parameters."""
        return nn.MLP(
            self.shape[0],
            list(self.shape[1:]),
            rng=random.Random(self.seed),
            activation=self.activation,
            last_linear=self.last_linear,
            random_bias=self.random_bias,
        )

    def outputs(self, model: Any, inputs: Sequence[Any]) -> list[Any]:
        """The model's outputs for every sample of the row, one after the other."""
        return [out for features, _ in self.samples(inputs) for out in as_list(model(features))]

    def loss(self, model: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        return self.loss_of(model, outputs, [t for _, targets in self.samples(inputs) for t in targets])

    def samples(self, inputs: Sequence[Any]) -> Iterator[tuple[Sequence[Any], Sequence[Any]]]:
        """A row's (features, targets), sample by sample."""
        width, targets = self.shape[0], self.shape[-1]
        for start in range(0, len(inputs), width + targets):
            middle = start + width
            yield inputs[start:middle], inputs[middle : middle + targets]

    def evaluation_rows(self) -> tuple[str, Iterator[array[float]]]:
        """What accuracy is measured on, named, and its rows: the held-out part, or the training set where none is."""
        data = self.data()
        if self.held_out:
            test = _read(self.held_out)
            return f"{test.rows:,} held out", (test.inputs(row) for row in range(test.rows))
        if data.rows > self.train_rows:
            held_out = range(self.train_rows, data.rows)
            return f"{len(held_out):,} held out", (data.inputs(row) for row in held_out)
        return f"its own {self.train_rows:,} training rows", (self.row(step) for step in range(self.steps_per_epoch))

    def accuracy(self, predict: Callable[[array[float]], array[float]], *, rows: Optional[int] = None) -> float:
        """Share of samples that come out right, over the evaluation rows, or the first `rows` of them."""
        right = total = 0
        for row in itertools.islice(self.evaluation_rows()[1], rows):
            outputs = predict(row)
            for index, (_, targets) in enumerate(self.samples(row)):
                right += self.is_correct(outputs[index * len(targets) : (index + 1) * len(targets)], targets)
                total += 1
        return right / total


@cache
def _read(reader: Callable[[], Dataset]) -> Dataset:
    return reader()


@cache
def _whole_set(reader: Callable[[], Dataset]) -> array[float]:
    data = _read(reader)
    return array("d", (x for sample in range(data.train_rows) for x in data.inputs(sample)))


def _same_class(outputs: Sequence[float], targets: Sequence[float]) -> bool:
    return max(range(len(outputs)), key=outputs.__getitem__) == max(range(len(targets)), key=targets.__getitem__)


def _same_side(outputs: Sequence[float], targets: Sequence[float]) -> bool:
    return (outputs[0] > 0) == (targets[0] > 0)


def _within_half(outputs: Sequence[float], targets: Sequence[float]) -> bool:
    return all(abs(o - t) < 0.5 for o, t in zip(outputs, targets))


def _constant(rate: float) -> Callable[[int], float]:
    return lambda update: rate


def _squared_error(model: Any, outputs: Sequence[Any], targets: Sequence[Any]) -> Any:
    return squared_error(outputs, targets)


def _hinge_and_l2(model: Any, outputs: Sequence[Any], targets: Sequence[Any]) -> Any:
    return hinge(outputs, targets) + l2(model.parameters(), 1e-4)


def _cross_entropy(model: Any, outputs: Sequence[Any], targets: Sequence[Any]) -> Any:
    return cross_entropy(outputs, targets)


def _tour(name: str, activation: str) -> Workload:
    return Workload(
        name,
        f"3-[4,4,1], {activation} on every layer, random biases, squared error, 5 rows in one graph",
        tour.load,
        train_rows=5,
        shape=(3, 4, 4, 1),
        loss_of=_squared_error,
        is_correct=_within_half,
        batch=1,
        rate=_constant(0.05),
        whole_set=True,
        activation=activation,
        last_linear=False,
        random_bias=True,
        tolerance=0.01,
        epochs=10_000,
    )


def _mnist(name: str, batch: int, rate: float) -> Workload:
    return Workload(
        name,
        f"784-[50,10], cross-entropy, an update every {batch} images" if batch > 1 else "784-[50,10], cross-entropy",
        mnist.load,
        train_rows=60_000,
        shape=(784, 50, 10),
        loss_of=_cross_entropy,
        is_correct=_same_class,
        batch=batch,
        rate=_constant(rate),
        held_out=mnist.load_test,
    )


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload(
            "xor",
            "2-[4,1], squared error, an update every 4 rows",
            xor.load,
            train_rows=4,
            shape=(2, 4, 1),
            loss_of=_squared_error,
            is_correct=_within_half,
            batch=4,
            rate=_constant(0.1),
            epochs=1000,
        ),
        _tour("tour", "tanh"),
        _tour("tour-relu", "relu"),
        Workload(
            "moons",
            "2-[16,16,1], hinge + 1e-4 L2, 100 points in one graph",
            moons.load,
            train_rows=100,
            shape=(2, 16, 16, 1),
            loss_of=_hinge_and_l2,
            is_correct=_same_side,
            batch=1,
            rate=lambda update: 1.0 - 0.9 * min(update, 100) / 100,
            whole_set=True,
            epochs=100,
        ),
        Workload(
            "digits",
            "64-[50,10], cross-entropy",
            digits.load,
            train_rows=1437,
            shape=(64, 50, 10),
            loss_of=_cross_entropy,
            is_correct=_same_class,
            batch=1,
            rate=_constant(0.05),
            epochs=8,
        ),
        _mnist("mnist", batch=1, rate=0.01),
        _mnist("mnist-b1000", batch=1000, rate=0.1),
    )
}


def names() -> tuple[str, ...]:
    """The named workloads; `mlp-IxHxO` exists for every shape besides."""
    return tuple(WORKLOADS)


def load(name: str) -> Workload:
    """The workload of that name. Raises UnknownName, with the nearest names."""
    if re.fullmatch(r"mlp(-|x)?\d*(x\d+)*", name):
        return _mlp(name)
    if name not in WORKLOADS:
        raise UnknownName("workload", name, [*WORKLOADS, "mlp-IxHxO"])
    return WORKLOADS[name]


@cache
def _mlp(name: str) -> Workload:
    """A growth curve's workload: an MLP of any shape on seeded uniform rows."""
    if not re.fullmatch(r"mlp-[1-9]\d{0,6}(x[1-9]\d{0,6})+", name):
        raise UnknownName("workload", name, ["mlp-784x50x10 (inputs x hidden x outputs, two sizes or more, none of 0)"])
    shape = tuple(int(size) for size in name[len("mlp-") :].split("x"))
    # Gradients grow with the network: at a rate of 0.001 the large ones leave the real numbers within ten steps.
    weights = sum(nin * nout for nin, nout in zip(shape, shape[1:]))
    return Workload(
        name,
        f"{shape[0]}-{list(shape[1:])}, squared error, synthetic rows",
        lambda: synthetic.load(shape[0], shape[-1]),
        train_rows=synthetic.ROWS,
        shape=shape,
        loss_of=_squared_error,
        is_correct=_within_half,
        batch=1,
        rate=_constant(0.001 * min(1.0, 300 / weights)),
    )
