"""Cells and a time budget -> the cells that fit into it."""

import pytest

from harness.plan.budget import fit
from results.record import Cell


def cell(engine, workload="xor", interpreter="cpython-3.13"):
    return Cell(engine=engine, interpreter=interpreter, workload=workload)


def keys(cells):
    return [f"{cell.engine}/{cell.workload}" for cell in cells]


SECONDS = {
    cell("baseline"): 2.0,
    cell("tuple"): 2.0,
    cell("tcc"): 1.0,
    cell("baseline", "mnist"): 30.0,
    cell("tuple", "mnist"): 20.0,
    cell("tcc", "mnist"): 1.0,
}


XOR = ["baseline/xor", "tuple/xor", "tcc/xor"]


@pytest.mark.parametrize(
    ("seconds", "kept"),
    [
        (56.0, keys(SECONDS)),
        (55.0, [*XOR, "baseline/mnist", "tcc/mnist"]),
        (35.0, XOR),  # a baseline is dropped with the last of its cells
        (0.5, []),
    ],
)
def test_cells_are_dropped_by_cost_with_a_share_of_their_baseline(seconds, kept):
    assert keys(fit(SECONDS, seconds)) == kept


def test_a_baseline_chosen_on_its_own_counts_as_any_cell():
    alone = {cell("baseline", "mnist"): 30.0, **{at: SECONDS[at] for at in SECONDS if at.workload == "xor"}}
    assert keys(fit(alone, 40.0)) == keys(alone)
    assert keys(fit(alone, 10.0)) == XOR
