"""Table -> for each workload, the best strict engine against the best peer, both in float64 and on one thread.

A ratio is the engine's time of a step over the peer's: below 1 the engine is faster. Each may have run on any of the
run's interpreters, because compiled code hardly depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from zoomgrad.reports.measured.table import NAN, contenders, in_order, largest, measured, smallest

COLUMNS = ("workload", "inputs", "width", "outputs", "batch", "engine", "peer", "engine_seconds", "peer_seconds")
RATIO = ("ratio", "ratio_low", "ratio_high")

_SHAPE = re.compile(r"mlp-(\d{1,7})x(\d{1,7})x(\d{1,7})(-b\d{1,7})?")


def contests(table: pd.DataFrame, batches: Mapping[str, int]) -> pd.DataFrame:
    """Return a row for each workload that has both, in the run's order.

    batches: rows of a batch, by workload. `width` is the number of hidden units of a workload `mlp-IxHxO`, else NaN.
    `ratio_low` and `ratio_high` are the least and the largest ratio within both intervals; NaN without intervals.
    """
    rows = measured(table)
    ours, theirs = contenders(rows), rows[rows["peer"] != ""]
    found = []
    for workload in in_order(table, "workload"):
        engines, peers = ours[ours["workload"] == workload], theirs[theirs["workload"] == workload]
        if len(engines) and len(peers):
            one, other = smallest(engines, "step_seconds"), smallest(peers, "step_seconds")
            found.append(_contest(workload, batches, one, other))
    return pd.DataFrame(found, columns=[*COLUMNS, *RATIO])


def grid(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the contests on networks with one hidden layer, for the most common numbers of inputs and outputs.

    Empty unless they have several widths or batches.
    """
    rows = rows[rows["width"].notna()]
    if rows.empty:
        return rows
    family = rows.groupby(["inputs", "outputs"], sort=False)["width"].transform("size")
    first = largest(rows.assign(family=family), "family")
    rows = rows[(rows["inputs"] == first["inputs"]) & (rows["outputs"] == first["outputs"])]
    return rows if len(rows) > 1 else rows.iloc[:0]


def _contest(workload: str, batches: Mapping[str, int], engine: Any, peer: Any) -> dict[str, object]:
    shape = _SHAPE.fullmatch(workload)
    inputs, width, outputs = map(float, shape.groups()[:3]) if shape else (NAN, NAN, NAN)
    return {
        "workload": workload,
        "inputs": inputs,
        "width": width,
        "outputs": outputs,
        "batch": batches.get(workload, 1),
        "engine": str(engine.engine),
        "peer": str(peer.engine),
        "engine_seconds": engine.step_seconds,
        "peer_seconds": peer.step_seconds,
        "ratio": engine.step_seconds / peer.step_seconds,
        "ratio_low": engine.step_seconds_low / peer.step_seconds_high,
        "ratio_high": engine.step_seconds_high / peer.step_seconds_low,
    }
