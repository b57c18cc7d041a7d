"""Workload -> the same workload with another rate, batch, tolerance or number of epochs.

The result is an ordinary workload: engines and workers treat it like one of the catalogue.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from zoomgrad.engines.arguments import whole
from zoomgrad.harness.workloads.catalogue import constant
from zoomgrad.harness.workloads.microgpt import Decay
from zoomgrad.harness.workloads.workload import Workload


class InvalidChange(ValueError):
    """A workload can't be changed like this. The message names the problem, then the remedy."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}\n  {remedy}")


def changed(workload: Workload, changes: Mapping[str, Any]) -> Workload:
    """Return the workload with every change that `CHANGES` knows and that is not None.

    Raises InvalidChange.
    """
    for name, change in CHANGES.items():
        if changes.get(name) is not None:
            workload = change(workload, changes[name])
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


CHANGES: Mapping[str, Callable[[Workload, Any], Workload]] = {
    "epochs": _epochs,
    "tolerance": _tolerance,
    "rate": _rate,
    "batch": _batch,
}
"""Name -> how it changes a workload, in order: a batch is checked against the epochs."""
