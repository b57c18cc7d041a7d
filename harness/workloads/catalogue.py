"""Catalogue of workloads, one entry each. Models are in `models`, readers of data in `datasets`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from zoomgrad.datasets import digits, mnist, moons, synthetic, tour, xor
from zoomgrad.engines.nn import cross_entropy, hinge, squared_error
from zoomgrad.harness.workloads import models
from zoomgrad.harness.workloads.models import Mlp
from zoomgrad.harness.workloads.workload import Workload


def constant(rate: float) -> Callable[[int], float]:
    """Schedule with the same rate for every update."""
    return lambda update: rate


def _tour(name: str, activation: str) -> Workload:
    return Workload(
        name,
        f"3-[4,4,1], {activation} on every layer, random biases, squared error, 5 rows in one graph",
        tour.load,
        train_rows=5,
        build=Mlp((3, 4, 4, 1), activation, last_linear=False, random_bias=True),
        loss_of=squared_error,
        rate=constant(0.05),
        whole_set=True,
    )


def _mnist(name: str, batch: int, rate: float) -> Workload:
    return Workload(
        name,
        f"784-[50,10], cross-entropy, an update every {batch} images" if batch > 1 else "784-[50,10], cross-entropy",
        mnist.load,
        train_rows=60_000,
        build=Mlp((784, 50, 10)),
        loss_of=cross_entropy,
        batch=batch,
        rate=constant(rate),
    )


def _forward(workload: Workload) -> Workload:
    """The same steps without a backward pass, to compare frozen programs with trainable ones."""
    description = f"{workload.description}, forward pass only"
    return replace(workload, name=f"{workload.name}-forward", description=description, learns=False)


_SYNTHETIC: dict[str, Any] = {"train_rows": synthetic.ROWS, "loss_of": squared_error}
_DIGITS_DATA: dict[str, Any] = {"reader": digits.load, "train_rows": 1437, "loss_of": cross_entropy}
_DIGITS = Workload("digits", "64-[50,10], cross-entropy", build=Mlp((64, 50, 10)), **_DIGITS_DATA, rate=constant(0.05))
_MNIST = _mnist("mnist", batch=1, rate=0.01)

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload(
            "xor",
            "2-[4,1], squared error, an update every 4 rows",
            xor.load,
            train_rows=4,
            build=Mlp((2, 4, 1)),
            loss_of=squared_error,
            batch=4,
            rate=constant(0.1),
        ),
        _tour("tour", "tanh"),
        _tour("tour-relu", "relu"),
        Workload(
            "moons",
            "2-[16,16,1], hinge + 1e-4 L2, 100 points in one graph",
            moons.load,
            train_rows=100,
            build=Mlp((2, 16, 16, 1)),
            loss_of=hinge,
            penalty=1e-4,
            rate=lambda update: 1.0 - 0.9 * min(update, 100) / 100,
            whole_set=True,
        ),
        _DIGITS,
        _MNIST,
        _mnist("mnist-b1000", batch=1000, rate=0.1),
        _forward(_DIGITS),
        _forward(_MNIST),
        Workload(
            "recurrent",
            "Elman net of 16 tanh units, unrolled over 20 steps of 4 inputs, squared error",
            partial(synthetic.series, steps=20, width=4),
            build=partial(models.Recurrent, inputs=4, units=16),
            **_SYNTHETIC,
            rate=constant(0.01),
        ),
        Workload(
            "conv-1d",
            "8 filters of width 5 over 4 channels of 32 samples, relu, linear, squared error",
            partial(synthetic.signal, channels=4, length=32),
            build=partial(models.Convolution, windows=models.windows_1d(4, 32, 5), filters=8),
            **_SYNTHETIC,
            rate=constant(0.01),
        ),
        Workload(
            "conv-2d",
            "8 filters of 3×3 over 8×8 images, relu, linear, cross-entropy",
            build=partial(models.Convolution, windows=models.windows_2d(8, 3), filters=8, outputs=10),
            **_DIGITS_DATA,
            rate=constant(0.05),
        ),
        Workload(
            "attention",
            "one head over 8 tokens of 8 features, linear, squared error",
            partial(synthetic.tokens, count=8, width=8),
            build=partial(models.Attention, tokens=8, width=8),
            **_SYNTHETIC,
            rate=constant(0.02),
        ),
        Workload(
            "polynomial",
            "degree 8 in two inputs, powers shared between terms, squared error, 100 points in one graph",
            partial(synthetic.surface, points=100),
            build=partial(models.Polynomial, degree=8),
            **{**_SYNTHETIC, "train_rows": 100},
            rate=constant(0.002),
            whole_set=True,
        ),
        Workload(
            "random-dag",
            "2,000 operations drawn at random over 4 inputs and 28 weights, squared error",
            partial(synthetic.products, width=4),
            build=partial(models.RandomDag, inputs=4, weights=28, operations=2000),
            **_SYNTHETIC,
            rate=constant(0.04),
        ),
        Workload(
            "shuffled",
            "64-[50,10], neurons made, and inputs summed, in shuffled order, cross-entropy",
            build=partial(models.Shuffled, shape=(64, 50, 10)),
            **_DIGITS_DATA,
            rate=constant(0.05),
        ),
    )
}
