"""Presets -> cells and their estimates, without starting an interpreter."""

import pytest

from tests.engines.compiled.compiling import tape_of_workload
from zoomgrad import engines
from zoomgrad.engines.api import UnknownName
from zoomgrad.harness import workloads
from zoomgrad.harness.plan import estimate, presets
from zoomgrad.harness.plan.planning import cells_of
from zoomgrad.results.record import Cell
from zoomgrad.results.samples import baseline_of
from zoomgrad.results.stats.intervals import MIN_PROCESSES

INTERPRETERS = ("cpython-3.9", "cpython-3.13", "pypy-3.11")
MAIN = ("cpython-3.13", "pypy-3.11")


def cells(preset, **selected):
    return cells_of(presets.preset(preset), presets.Selection(**selected), INTERPRETERS, main=MAIN)


@pytest.mark.parametrize("preset", presets.PRESETS)
def test_a_presets_names_exist_and_no_cell_occurs_twice(preset):
    found = cells(preset)
    assert len(found) == len(set(found))
    for part in presets.preset(preset).parts:
        assert [engines.load(name).name for name in part.engines] == list(part.engines)
        assert [workloads.load(name).name for name in part.workloads] == list(part.workloads)


@pytest.mark.parametrize("preset", ["smoke", "quick"])
def test_a_short_preset_has_all_baselines_and_enough_blocks_for_intervals(preset):
    found = cells(preset)
    assert {cell.interpreter for cell in found} == {*MAIN}
    assert {baseline_of(cell) for cell in found} <= {*found}
    assert presets.preset(preset).blocks >= MIN_PROCESSES


def test_naming_one_of_each_kind_selects_one_cell():
    found = cells("full", engines=["replay"], interpreters=["pypy-3.11"], workloads=["mlp-3x2x1"])
    assert found == [Cell(engine="replay", interpreter="pypy-3.11", workload="mlp-3x2x1")]


def test_an_unknown_interpreter_suggests_the_nearest():
    with pytest.raises(UnknownName) as caught:
        cells("quick", interpreters=["cpython-3.1"])
    assert "cpython-3.13" in caught.value.nearest


OFFLINE = [name for name in workloads.names() if "mnist" not in name]


@pytest.mark.parametrize("name", [*OFFLINE, "mlp-1x1", "mlp-2x2x1", "mlp-16x16x4"])
def test_estimated_tape_rows_are_within_30_per_cent(name):
    assert 0.7 < estimate.tape_rows(name) / len(tape_of_workload(workloads.load(name))) < 1.3
