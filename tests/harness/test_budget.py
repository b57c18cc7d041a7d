"""Cells and a time budget -> the cells that fit into it."""

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


def test_everything_fits_into_a_large_budget():
    assert fit(SECONDS, 56.0) == list(SECONDS)


def test_cells_are_dropped_by_cost_with_a_share_of_their_baseline():
    assert keys(fit(SECONDS, 55.0)) == ["baseline/xor", "tuple/xor", "tcc/xor", "baseline/mnist", "tcc/mnist"]


def test_a_baseline_is_dropped_with_the_last_of_its_cells():
    assert keys(fit(SECONDS, 35.0)) == ["baseline/xor", "tuple/xor", "tcc/xor"]


def test_a_baseline_chosen_on_its_own_counts_as_any_cell():
    alone = {cell("baseline", "mnist"): 30.0, **{at: SECONDS[at] for at in SECONDS if at.workload == "xor"}}
    assert keys(fit(alone, 40.0)) == keys(alone)
    assert keys(fit(alone, 10.0)) == ["baseline/xor", "tuple/xor", "tcc/xor"]


def test_nothing_fits_into_a_tiny_budget():
    assert not fit(SECONDS, 0.5)
