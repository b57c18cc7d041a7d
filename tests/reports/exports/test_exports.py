"""Exports to other tools' formats. The tool itself reads each file back, or its published fields are there."""

import csv
import io
import json
from dataclasses import replace
from typing import get_args

import pyperf
import pytest

from zoomgrad.harness.cli.commands.export import Format
from zoomgrad.reports.exports import EXPORTERS, Material, NoExport
from zoomgrad.reports.exports.material import material_of
from zoomgrad.reports.exports.speedscope import folded
from zoomgrad.reports.measured.table import cells, each, measured
from zoomgrad.reports.view import view
from zoomgrad.results.record import Cell

STACKS = {"tuple/cpython-3.13/mnist, perf": "a;b 3\na;c 1\na;b 1\n"}


def suite(records):
    """Return the pyperf file that a worker would have written for these records."""
    runs = [
        pyperf.Run(
            record.step_seconds,
            metadata={"name": record.cell.workload, "loops": record.steps_per_value, "zoomgrad_block": record.block},
            collect_metadata=False,
        )
        for record in records
    ]
    text = io.StringIO()
    pyperf.Benchmark(runs).dump(text)
    return text.getvalue()


def example_material(example):
    """Return the run's Material, with a pyperf file for each cell that has at least one timed block."""
    timed = {}
    for record in example.records:
        if record.step_seconds:
            timed.setdefault(record.cell, []).append(record)
    suites = {cell: suite(records) for cell, records in timed.items()}
    return Material(view(example.run, example.records), suites, STACKS)


def exported(name, example):
    return EXPORTERS[name].export(example_material(example))


def test_a_stored_run_gives_what_the_exports_need(example, tmp_path):
    store, wanted = example.stored(tmp_path), example_material(example)
    for cell, text in wanted.suites.items():
        store.pyperf_file(cell).parent.mkdir(exist_ok=True)
        store.pyperf_file(cell).write_text(text)
    made = material_of(store)
    assert (made.suites, made.stacks, made.view.run) == (wanted.suites, {}, example.run)
    assert set(get_args(Format)) == set(EXPORTERS)


def with_result(example):
    """Cell -> row of the cells whose figures may be shown."""
    rows = each(measured(cells(example.run, example.records)))
    return {f"{row.engine}/{row.interpreter}/{row.workload}": row for row in rows}


def no_constant(name):
    raise AssertionError(f"{name} is not JSON")


def parsed(text):
    """Parse strict JSON, without NaN or infinity."""
    return json.loads(text, parse_constant=no_constant)


@pytest.fixture
def flaky(example):
    """The example with a cell that failed after two good blocks, so it has timed blocks on disk but no result."""
    cell = Cell(engine="tuple", interpreter="cpython-3.13", workload="mnist")
    failed = example.stopped(cell, 2, "failed", "=differs")
    return example.with_records(cell, example.measured(cell, 0), example.measured(cell, 1), failed)


def test_speedscope_gets_the_stacks_of_each_profile(example):
    told = parsed(exported("speedscope", example).text)
    (profile,) = told["profiles"]
    names = [frame["name"] for frame in told["shared"]["frames"]]
    stacks = [[names[frame] for frame in sample] for sample in profile["samples"]]
    assert (stacks, profile["weights"], profile["endValue"]) == ([["a", "b"], ["a", "c"]], [4, 1], 5)
    with pytest.raises(NoExport, match="the stacks of x are damaged: no count"):
        EXPORTERS["speedscope"].export(replace(example_material(example), stacks={"x": "a;b"}))
    assert folded("a;b c 1.5\n\na 2\na 1e3\n") == {"a;b c": 1.5, "a": 1002.0}
    with pytest.raises(NoExport, match="has no stacks"):
        EXPORTERS["speedscope"].export(replace(example_material(example), stacks={}))


@pytest.mark.parametrize("name", sorted(EXPORTERS.keys() - {"speedscope"}))
def test_a_run_without_records_has_nothing_to_export(name, example):
    with pytest.raises(NoExport, match=r"has no .*\n  .+"):
        exported(name, replace(example, records=()))


@pytest.mark.parametrize("name", ["github-action-benchmark", "pyperf"])
def test_cells_without_a_result_are_left_out_and_counted(name, flaky):
    made = exported(name, flaky)
    assert "tuple/cpython-3.11/mnist" in made.text
    assert "tuple/cpython-3.13/mnist" not in made.text
    assert "pypy" not in made.text
    assert made.left_out == len(flaky.run.cells) - len(with_result(flaky)) > 0


# Tables


def of_cell(example, key, block=0):
    keys = ("engine", "interpreter", "workload")
    written = csv.DictReader(io.StringIO(exported("csv", example).text, newline=""))
    rows = [row for row in written if "/".join(row[name] for name in keys) == key]
    return next(row for row in rows if row["block"] == str(block))


def test_csv_has_the_records_figures_unrounded(example):
    cell = Cell(engine="clang-O1", interpreter="cpython-3.13", workload="mnist")
    record = example.measured(cell, 1, tape_rows=7)
    row = of_cell(example.with_records(cell, example.measured(cell, 0), record), cell.key, 1)
    assert float(row["step_seconds"]) == pytest.approx(sum(record.step_seconds) / 3, rel=1e-15)
    assert float(row["compile_seconds"]) == sum(record.phases.values())
    assert (row["phase_compile_seconds"], row["phase_load_seconds"]) == ("15.2", "")
    assert (int(row["peak_bytes"]), int(row["tape_rows"]), row["source_bytes"]) == (record.peak_bytes, 7, "")
    assert (row["bits"], row["worst_error"], row["reason"]) == ("identical", "0.0", "")
    wrong = of_cell(example, "local-grads/cpython-3.13/xor")
    assert (wrong["status"], wrong["bits"], wrong["worst_error"]) == ("failed", "different", "0.25")


def test_csv_has_the_reason_of_a_cell_without_a_result_and_no_number(flaky):
    rows = [of_cell(flaky, "tuple/cpython-3.13/mnist", block) for block in range(3)]
    assert [row["status"] for row in rows] == ["measured", "measured", "failed"]
    assert [(row["step_seconds"], row["peak_bytes"]) for row in rows] == [("", "")] * 3
    assert rows[2]["reason"] == "'=differs", "a spreadsheet would run this reason as a formula"
    assert rows[0]["reason"] == "not shown: =differs (in 1 of 3 blocks)"


# pyperf


def test_pyperf_reads_one_suite_of_all_cells(flaky, tmp_path):
    file = tmp_path / "a.json"
    file.write_text(exported("pyperf", flaky).text)
    found = pyperf.BenchmarkSuite.load(str(file))
    assert set(found.get_benchmark_names()) == with_result(flaky).keys()
    for benchmark in found:
        of_cell = [record for record in flaky.records if record.cell.key == benchmark.get_name()]
        assert list(benchmark.get_values()) == [value for record in of_cell for value in record.step_seconds]
        assert [run.get_metadata()["zoomgrad_block"] for run in benchmark.get_runs()] == [r.block for r in of_cell]
    lost, *_ = example_material(flaky).suites
    cut = replace(example_material(flaky), suites={})
    ours = pyperf.BenchmarkSuite.loads(EXPORTERS["pyperf"].export(cut).text).get_benchmark(lost.key)
    assert ours.get_values() == found.get_benchmark(lost.key).get_values(), "records have the values without the file"


# Services


def test_the_github_action_file_follows_the_published_format(example):
    """The fields of `customBiggerIsBetter`, from the README of github.com/benchmark-action/github-action-benchmark."""
    entries = parsed(exported("github-action-benchmark", example).text)
    for entry in entries:
        assert {"name", "unit", "value"} <= entry.keys() <= {"name", "unit", "value", "range", "extra"}
        assert {type(entry[key]) for key in entry.keys() - {"value"}} == {str}
        assert type(entry["value"]) is float
    # The action identifies entries by name.
    by_name = {entry["name"].removesuffix(" speedup"): entry["value"] for entry in entries}
    assert len(by_name) == len(entries)
    assert by_name == {cell: row.speedup for cell, row in with_result(example).items() if row.speedup}
