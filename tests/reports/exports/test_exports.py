"""Exports to other tools' formats. The tool itself reads each file back, or its published schema validates it."""

import csv
import io
import json
import math
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import jsonschema
import pandas as pd
import pyperf
import pytest

from reports.exports import EXPORTERS, Material, NoExport
from reports.measured.table import cells, each, measured
from reports.sections.records import every_record
from reports.view import view
from results import units
from results.record import Cell
from results.store import Store, file_name
from tests.harness.answering import Answering

ROOT = Path(__file__).parents[3]

CUSTOM = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {
            **{name: {"type": "string", "minLength": 1} for name in ("name", "unit", "range", "extra")},
            "value": {"type": "number"},
        },
        "required": ["name", "unit", "value"],
        "additionalProperties": False,
    },
}
"""`customBiggerIsBetter` of github.com/benchmark-action/github-action-benchmark, from its README and src/extract.ts,
which reads only these five fields."""

FORMATS = list(EXPORTERS)


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


def material_of(example):
    """Return the run's Material, with a pyperf file for each cell that has at least one timed block."""
    timed = {}
    for record in example.records:
        if record.step_seconds:
            timed.setdefault(record.cell, []).append(record)
    return Material(view(example.run, example.records), {cell: suite(records) for cell, records in timed.items()})


def exported(name, example):
    return EXPORTERS[name].export(material_of(example))


def with_result(example):
    """Return the keys of the cells whose figures may be shown."""
    return {f"{row.engine}/{row.interpreter}/{row.workload}" for row in each(measured(table_of(example)))}


def table_of(example):
    return cells(example.run, example.records)


def by_key(example):
    return {f"{row.engine}/{row.interpreter}/{row.workload}": row for row in each(table_of(example))}


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


def test_every_format_has_a_file_of_its_own_and_a_hint():
    assert len({exporter.FILE for exporter in EXPORTERS.values()}) == len(FORMATS)
    assert all("{path}" in exporter.USE for exporter in EXPORTERS.values())


@pytest.mark.parametrize("name", FORMATS)
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


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_has_every_record_and_the_reports_columns(flaky):
    rows = read_csv(exported("csv", flaky).text)
    table = every_record(view(flaky.run, flaky.records))
    assert list(rows[0]) == ["run", *(column.name for column in table.columns)]
    assert len(rows) == len(flaky.records)
    assert {row["run"] for row in rows} == {flaky.run.id}
    for row, datums in zip(rows, table.rows, strict=True):
        for column, datum in zip(table.columns, datums, strict=True):
            text = "" if datum.text == units.ABSENT else datum.text
            assert row[column.name] in (datum.value if column.numeric else text, f"'{datum.text}"), column.name


def test_csv_has_the_reason_of_a_cell_without_a_result_and_no_number(flaky):
    rows = [row for row in read_csv(exported("csv", flaky).text) if row["engine"] == "tuple"]
    rows = [row for row in rows if (row["interpreter"], row["workload"]) == ("cpython-3.13", "mnist")]
    assert [row["status"] for row in rows] == ["measured", "measured", "failed"]
    assert [row["step_seconds"] for row in rows] == ["", "", ""]
    assert rows[2]["reason"] == "'=differs", "a spreadsheet would run this reason as a formula"
    assert rows[0]["reason"] == "not shown: =differs (in 1 of 3 blocks)"


def test_pandas_reads_unrounded_numbers_from_the_csv(example):
    frame = pd.read_csv(io.StringIO(exported("csv", example).text))
    means = {
        (*record.cell.key.split("/"), record.block): math.fsum(record.step_seconds) / len(record.step_seconds)
        for record in example.records
        if record.step_seconds
    }
    shown = frame[frame["step_seconds"].notna()]
    assert len(shown) == len(means)
    for row in shown.itertuples():
        wanted = means[row.engine, row.interpreter, row.workload, row.block]
        assert row.step_seconds == pytest.approx(wanted, rel=1e-15)


def test_a_table_counts_cells_that_were_never_run(example):
    assert exported("csv", example).left_out == 0
    cut = example.interrupted(4)
    assert exported("csv", cut).left_out == len(cut.run.cells) - len({record.cell for record in cut.records}) > 0


# pyperf


def pyperf_on(*arguments):
    told = subprocess.run([sys.executable, "-m", "pyperf", *map(str, arguments)], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    return told.stdout


def test_pyperf_reads_one_suite_of_all_cells(flaky, tmp_path):
    file = tmp_path / "a.json"
    file.write_text(exported("pyperf", flaky).text)
    found = pyperf.BenchmarkSuite.load(str(file))
    assert set(found.get_benchmark_names()) == with_result(flaky)
    for benchmark in found:
        of_cell = [record for record in flaky.records if record.cell.key == benchmark.get_name()]
        assert list(benchmark.get_values()) == [value for record in of_cell for value in record.step_seconds]
        assert [run.get_metadata()["zoomgrad_block"] for run in benchmark.get_runs()] == [r.block for r in of_cell]
    assert "baseline/cpython-3.13/mnist" in pyperf_on("stats", file)


def test_pyperf_compares_two_runs(example, tmp_path):
    def faster(record):
        seconds = tuple(value / 2 for value in record.step_seconds)
        return record.model_copy(update={"step_seconds": seconds}) if record.cell.engine == "tuple" else record

    files = []
    for name, one in (("a", example), ("b", example.mapped(faster))):
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(exported("pyperf", one).text)
    told = pyperf_on("compare_to", *files, "--table")
    assert "tuple/cpython-3.13/mnist" in told
    assert "2.00x faster" in told


def test_a_measured_cell_without_pyperfs_file_has_the_values_of_its_records(example):
    whole = material_of(example)
    lost, *_ = whole.suites
    cut = replace(whole, suites={cell: text for cell, text in whole.suites.items() if cell != lost})
    made, all_of_them = (EXPORTERS["pyperf"].export(one) for one in (cut, whole))
    assert made.left_out == all_of_them.left_out
    ours, theirs = (pyperf.BenchmarkSuite.loads(one.text).get_benchmark(lost.key) for one in (made, all_of_them))
    assert ours.get_values() == theirs.get_values()


# Services


def test_the_github_action_file_follows_the_published_format(example):
    entries = parsed(exported("github-action-benchmark", example).text)
    jsonschema.validate(entries, CUSTOM)
    rows = by_key(example)
    # The action identifies entries by name.
    by_name = {entry["name"].removesuffix(" speedup"): entry for entry in entries}
    assert len(by_name) == len(entries)
    assert {key: entry["value"] for key, entry in by_name.items()} == {
        key: rows[key].speedup for key in with_result(example) if rows[key].speedup
    }
    assert {entry["unit"] for entry in entries} == {"×"}
    for key, entry in by_name.items():
        assert ("range" in entry) == (not math.isnan(rows[key].speedup_low))
        if "range" in entry:
            assert rows[key].speedup - float(entry["range"].removeprefix("± ")) <= rows[key].speedup_low


def test_a_run_without_a_baseline_has_no_speedup(example):
    without = example.only(lambda cell: cell.engine != "baseline")
    with pytest.raises(NoExport, match=r"no speedup\n  .*baseline"):
        exported("github-action-benchmark", without)


# The command


def fill(folder, example):
    """Write the example as the folder's only run."""
    made = material_of(example)
    store = Store.create(example.run, under=folder / "runs")
    for record in example.records:
        store.write(record)
    for cell, text in made.suites.items():
        (store.folder / "pyperf" / file_name(cell)).write_text(text)


def environment(folder):
    return {"ZOOMGRAD_RUNS": str(folder / "runs"), "PATH": "", "HOME": str(folder), "PYTHONPATH": str(ROOT)}


@pytest.fixture
def zoomgrad(example, tmp_path):
    """`zoomgrad(*arguments)` runs `zoomgrad export` in a new process, with the example as the only run."""
    fill(tmp_path, example)

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "harness", "export", *arguments],
            env=environment(tmp_path),
            cwd=tmp_path,
            capture_output=True,
            timeout=120,
        )

    return run


@pytest.fixture(scope="module")
def export(example, tmp_path_factory):
    """`export(*arguments)` runs `zoomgrad export` on the example as the only run; one process serves all calls."""
    folder = tmp_path_factory.mktemp("exports")
    fill(folder, example)
    with Answering(env=environment(folder), cwd=folder) as zoomgrad:
        ask = partial(zoomgrad, "export")
        ask.folder = folder
        yield ask


@pytest.mark.parametrize("name", FORMATS)
def test_the_command_writes_into_the_run_and_explains_the_file(name, example, export):
    result = export("--format", name)
    assert result.returncode == 0, result.stderr
    file = export.folder / "runs" / example.run.id / "export" / EXPORTERS[name].FILE
    made = exported(name, example)
    assert file.read_bytes() == made.text.encode()
    *_, last = result.stdout.splitlines()
    assert str(file.relative_to(export.folder)) in last
    assert (f"{made.left_out} cells of the plan left out" in result.stdout) == bool(made.left_out)
    if name == "csv":
        assert export(example.run.id, "--format", name).returncode == 0, "a second export over its own file failed"


def test_the_command_prints_only_the_export_to_stdout(example, zoomgrad, tmp_path):
    result = zoomgrad("--format", "csv", "--output", "-")
    assert result.stdout == exported("csv", example).text.encode()
    assert b"pandas" in result.stderr
    assert zoomgrad("-f", "pyperf", "-o", str(tmp_path / "b.json")).returncode == 0
    assert json.loads((tmp_path / "b.json").read_text())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "cvs"], "no export format 'cvs'\n  Did you mean csv"),
        (["--format", "csv", "--output", "absent/file.csv"], "can't be written: No such file"),
        (["2001-01-01", "--format", "csv"], "no run '2001-01-01'"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message, export):
    result = export(*arguments)
    assert result.returncode == 2, result.stdout
    assert message in result.stderr
