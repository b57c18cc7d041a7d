"""Workloads: data, model, loss and training schedule, written once against any engine's Value, listed in `catalogue`.

Readers of data are in `datasets`, and the networks that an engine's Value forms are in `engines.nn`. A file from
outside (`engines.discovery`) adds workloads by defining `WORKLOADS`. Worker-safe: a worker builds its workload from the
name.
"""

from __future__ import annotations

import math
import os
import re
from functools import cache, partial
from typing import Any, Optional

from zoomgrad.datasets import synthetic
from zoomgrad.engines.api import Unavailable, UnknownName
from zoomgrad.engines.asking import one_line
from zoomgrad.engines.discovery import WORKLOAD_FILES, Problem, from_outside, is_name
from zoomgrad.engines.nn import squared_error
from zoomgrad.harness.workloads import microgpt
from zoomgrad.harness.workloads.catalogue import WORKLOADS, constant
from zoomgrad.harness.workloads.models import Mlp, check_size
from zoomgrad.harness.workloads.workload import SEED, Workload

__all__ = ["SEED", "WORKLOADS", "Workload", "load", "names", "problems"]


def names() -> tuple[str, ...]:
    """Names of the catalogue's workloads and of those from outside. `mlp-IxHxO` and `mlp-IxHxO-bN` exist as well.

    `microgpt` and `microgpt-Ln-Dn-Hn-Tn` exist too. They are not in the catalogue, whose workloads presets measure and
    tests compile with every engine, because a whole GPT takes too long to compile for that.
    """
    return (*WORKLOADS, *_from_outside()[0])


def problems() -> list[Problem]:
    """Files from outside and workloads that were left out, and why."""
    return _from_outside()[1]


def load(name: str) -> Workload:
    """Return the workload of that name. Raises UnknownName with the nearest names, and Unavailable for wrong sizes."""
    if re.fullmatch(r"mlp(-|x)?\d*(x\d+)*(-b\d*)?", name):
        return _mlp(name)
    if name == "microgpt" or name.startswith("microgpt-"):
        return microgpt.load(name)
    if name in WORKLOADS:
        return WORKLOADS[name]
    workloads, left_out = _from_outside()
    if name not in workloads:
        known = [*names(), "mlp-IxHxO", "microgpt", microgpt.EXAMPLE]
        raise UnknownName("workload", name, known, left_out=[str(problem) for problem in left_out])
    return workloads[name]


def _from_outside() -> tuple[dict[str, Workload], list[Problem]]:
    return _read(os.environ.get(WORKLOAD_FILES))


@cache
def _read(_files: Optional[str]) -> tuple[dict[str, Workload], list[Problem]]:
    """The workloads of these files, and what was left out."""
    by_name: dict[str, Workload] = {}
    problems: list[Problem] = []
    for where, module in from_outside(WORKLOAD_FILES, "WORKLOADS", problems):
        for workload in module.WORKLOADS if isinstance(module.WORKLOADS, (tuple, list)) else [module.WORKLOADS]:
            name: Any = getattr(workload, "name", workload)
            known = (*WORKLOADS, *by_name, "microgpt")
            if isinstance(workload, Workload) and is_name(name) and not name.startswith("mlp") and name not in known:
                by_name[name] = workload
            else:
                problems.append(Problem(where, f"{one_line(repr(name), 80)} is not a workload with a name of its own"))
    return by_name, problems


MOST_NUMBERS = 50_000
"""Limit of the inputs and outputs of a row: a thousand rows of this size take 400 MB."""


@cache
def _mlp(name: str) -> Workload:
    """An MLP of any shape on seeded uniform rows: workload of a growth curve, or of a map of widths and batches."""
    if not re.fullmatch(r"mlp-[1-9]\d{0,6}(x[1-9]\d{0,6})+(-b[1-9]\d{0,6})?", name):
        raise UnknownName("workload", name, ["mlp-784x50x10 (inputs x hidden x outputs: two or more sizes, none 0)"])
    sizes, _, batch = name[len("mlp-") :].partition("-b")
    if batch == "1":  # it would be another name for the same workload
        raise UnknownName("workload", name, [f"mlp-{sizes}"])
    shape = tuple(map(int, sizes.split("x")))
    # Gradients grow with the number of weights, and with the width of each further hidden layer. At a rate of 0.001,
    # large networks overflow within ten steps.
    weights = sum(nin * nout for nin, nout in zip(shape, shape[1:]))
    check_size(name, weights)
    if shape[0] + shape[-1] > MOST_NUMBERS:
        problem = f"a row would have {shape[0] + shape[-1]:,} numbers; the limit is {MOST_NUMBERS:,}"
        raise Unavailable(f"{name}: {problem}", "Use smaller sizes.")
    deeper = math.prod(min(1.0, 25 / width) for width in shape[2:-1])
    return Workload(
        name,
        f"{shape[0]}-{list(shape[1:])}, squared error, synthetic rows{batch and f', an update every {batch} rows'}",
        partial(synthetic.load, shape[0], shape[-1]),
        train_rows=synthetic.ROWS,
        build=Mlp(shape),
        loss_of=squared_error,
        batch=int(batch or 1),
        rate=constant(0.001 * min(1.0, 300 / weights) * deeper),
    )
