"""Workload -> the same workload with another rate, batch, activation or shape, or on other names.

The result is an ordinary workload: engines and workers treat it like one of the catalogue.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from zoomgrad.datasets import names
from zoomgrad.engines.api import UnknownName
from zoomgrad.engines.arguments import whole
from zoomgrad.engines.nn import ACTIVATIONS
from zoomgrad.harness.workloads.catalogue import constant
from zoomgrad.harness.workloads.microgpt import Decay
from zoomgrad.harness.workloads.models import MOST_WEIGHTS, Mlp
from zoomgrad.harness.workloads.parameters import started
from zoomgrad.harness.workloads.workload import Workload


class InvalidChange(ValueError):
    """A workload can't be changed like this. The message names the problem, then the remedy."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}\n  {remedy}")


def changed(workload: Workload, changes: Mapping[str, Any]) -> Workload:
    """Return the workload with every change that `CHANGES` knows and that is not None.

    Raises InvalidChange, UnknownName for an activation that does not exist, and BadFile for a file of
    parameters that does not fit.
    """
    asked = {name: changes[name] for name in CHANGES if changes.get(name) is not None}
    for name, value in asked.items():
        workload = CHANGES[name](workload, value)
    described = [f"{name} {value}" for name, value in asked.items() if name not in _UNDESCRIBED]
    if described:
        listed = ", ".join(described)
        workload = replace(workload, description=f"{workload.description}; changed: {listed}")
    return workload


def _epochs(workload: Workload, epochs: int) -> Workload:
    workload = replace(workload, epochs=epochs)
    if isinstance(workload.rate, Decay):
        workload = replace(workload, rate=replace(workload.rate, steps=epochs * workload.steps_per_epoch))
    return workload


def _tolerance(workload: Workload, tolerance: float) -> Workload:
    if not math.isfinite(tolerance):
        raise InvalidChange(f"a tolerance must be a finite number, not {tolerance}", "Use a number such as 0.05.")
    return replace(workload, tolerance=tolerance)


def _names(workload: Workload, path: str) -> Workload:
    if not workload.classes:
        raise InvalidChange(f"{workload.name} trains on other data than names", "Leave out --names, or use microgpt.")
    workload = replace(workload, reader=partial(names.read, Path(path), context=workload.data().context))
    return replace(workload, train_rows=workload.data().train_rows)


def _rate(workload: Workload, rate: float) -> Workload:
    if not 0.0 < rate < math.inf:
        raise InvalidChange(f"a rate must be a finite number above 0, not {rate}", "Use a number such as 0.05.")
    return replace(workload, rate=constant(rate))


def _batch(workload: Workload, batch: int) -> Workload:
    try:
        whole(batch, "batch", 1)
    except ValueError as error:
        raise InvalidChange(str(error), "Name the steps between two updates, such as 10.") from None
    steps = workload.epochs * workload.steps_per_epoch
    if batch > steps:
        raise InvalidChange(
            f"a batch of {batch:,} is never full: the training has {steps:,} step{'' if steps == 1 else 's'}",
            "Lower --batch, or raise --epochs.",
        )
    return replace(workload, batch=batch)


def _activation(workload: Workload, activation: str) -> Workload:
    if activation not in ACTIVATIONS:
        raise UnknownName("activation", activation, ACTIVATIONS)
    return replace(workload, build=replace(_mlp(workload, "activation"), activation=activation))


def _shape(workload: Workload, text: str) -> Workload:
    mlp = _mlp(workload, "shape")
    if not re.fullmatch(r"[1-9][0-9]{0,6}(x[1-9][0-9]{0,6})+", text):
        raise InvalidChange(
            f"{text!r} is not a shape", "Write inputs x hidden x outputs, as in 784x50x10; no size is 0."
        )
    shape = tuple(map(int, text.split("x")))
    inputs, outputs = mlp.shape[0], mlp.shape[-1]
    if (shape[0], shape[-1]) != (inputs, outputs):
        raise InvalidChange(
            f"the shape {text} does not fit {workload.name}, whose rows have {inputs:,} inputs and {outputs:,} targets",
            f"Begin with {inputs}x and end with x{outputs}, as in {'x'.join(map(str, mlp.shape))}.",
        )
    weights = sum(nin * nout for nin, nout in zip(shape, shape[1:])) * workload.samples_per_step
    if weights > MOST_WEIGHTS:
        raise InvalidChange(
            f"the graph of the shape {text} would have {weights:,} weights; the limit is {MOST_WEIGHTS:,}",
            "Use smaller layers.",
        )
    return replace(workload, build=replace(mlp, shape=shape))


def _mlp(workload: Workload, what: str) -> Mlp:
    if not isinstance(workload.build, Mlp):
        raise InvalidChange(
            f"{workload.name} is not a plain MLP: its {what} can't be changed",
            f"Leave out --{what}, or choose another workload from `zoomgrad list`.",
        )
    return workload.build


def _load(workload: Workload, path: str) -> Workload:
    # The path is not part of the description, which pictures show.
    return replace(started(workload, path), description=f"{workload.description}; from saved parameters")


CHANGES: Mapping[str, Callable[[Workload, Any], Workload]] = {
    "epochs": _epochs,
    "tolerance": _tolerance,
    "rate": _rate,
    "batch": _batch,
    "activation": _activation,
    "shape": _shape,
    "names": _names,
    "load": _load,
}
"""Name -> how it changes a workload, in order: a batch is checked against the epochs, a file against the model."""

_UNDESCRIBED = ("epochs", "tolerance", "load", "names")
"""Changes of how long to train, which no workload's description mentions, and one that describes itself."""
