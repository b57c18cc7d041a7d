"""Workloads: data, model, loss and training schedule, written once against any engine's Value, listed in `catalogue`.

Readers of data are in `datasets`, and the networks that an engine's Value forms are in `engines.nn`. Worker-safe: a
worker builds its workload from the name alone.
"""

from __future__ import annotations

import math
import re
from functools import cache, partial

from zoomgrad.datasets import synthetic
from zoomgrad.engines.api import UnknownName
from zoomgrad.harness.workloads import microgpt
from zoomgrad.harness.workloads.catalogue import WORKLOADS, constant
from zoomgrad.harness.workloads.losses import by_squared_error, within
from zoomgrad.harness.workloads.models import BadSize, Mlp, check_size
from zoomgrad.harness.workloads.workload import SEED, Workload

__all__ = ["SEED", "WORKLOADS", "Workload", "load", "names"]


def names() -> tuple[str, ...]:
    """Names of the catalogue's workloads. `mlp-IxHxO` and `mlp-IxHxO-bN` exist for every shape and batch as well.

    `microgpt` and `microgpt-Ln-Dn-Hn-Tn` exist too. They are not in the catalogue, whose workloads presets measure and
    tests compile with every engine, because a whole GPT takes too long to compile for that.
    """
    return tuple(WORKLOADS)


def load(name: str) -> Workload:
    """Return the workload of that name. Raises UnknownName with the nearest names."""
    if re.fullmatch(r"mlp(-|x)?\d*(x\d+)*(-b\d*)?", name):
        return _mlp(name)
    if name == "microgpt" or name.startswith("microgpt-"):
        return microgpt.load(name)
    if name not in WORKLOADS:
        raise UnknownName("workload", name, [*WORKLOADS, "mlp-IxHxO", "microgpt", microgpt.EXAMPLE])
    return WORKLOADS[name]


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
        raise BadSize(name, f"a row would have {shape[0] + shape[-1]:,} numbers; the limit is {MOST_NUMBERS:,}")
    deeper = math.prod(min(1.0, 25 / width) for width in shape[2:-1])
    return Workload(
        name,
        f"{shape[0]}-{list(shape[1:])}, squared error, synthetic rows{batch and f', an update every {batch} rows'}",
        partial(synthetic.load, shape[0], shape[-1]),
        train_rows=synthetic.ROWS,
        build=Mlp(shape),
        loss_of=by_squared_error,
        is_correct=within(0.5),
        batch=int(batch or 1),
        rate=constant(0.001 * min(1.0, 300 / weights) * deeper),
    )
