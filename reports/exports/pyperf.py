"""Every measured cell as a benchmark in one pyperf suite, named by its key so that pyperf can compare two runs."""

from __future__ import annotations

import io
from collections.abc import Iterable

import pyperf

from zoomgrad.reports.exports.material import Export, Material, NoExport
from zoomgrad.reports.measured.outcome import MEASURED
from zoomgrad.results.record import Cell, Record

FILE = "pyperf.json"
USE = "Compare it with another run's: python -m pyperf compare_to OTHER.json {path} --table"


def export(material: Material) -> Export:
    """Make a suite with the values, warm-ups and metadata of every block, as pyperf recorded them.

    A cell whose pyperf file is not beside the run has the same values from its records, without pyperf's metadata.
    """
    run = material.view.run
    benchmarks = []
    for cell, outcome in material.view.outcomes.items():
        if outcome.status != MEASURED:
            continue
        if cell not in material.suites:
            benchmarks.append(_of_records(cell, [r for r in material.view.as_measured if r.cell == cell]))
        else:
            try:
                (benchmark,) = pyperf.BenchmarkSuite.loads(material.suites[cell]).get_benchmarks()
            except Exception as error:  # pyperf raises errors of many types for a damaged file
                why = f"the pyperf file of {cell} is damaged ({type(error).__name__})"
                raise NoExport(why, "Remove the file to export the run without this cell.") from error
            benchmark.update_metadata({"name": cell.key})
            benchmarks.append(benchmark)
    if not benchmarks:
        raise NoExport(f"{run.id} has no measured cell", "Measure some cells with `zoomgrad run`.")
    text = io.StringIO()
    pyperf.BenchmarkSuite(benchmarks).dump(text)
    return Export(text.getvalue(), len(run.cells) - len(benchmarks))


def _of_records(cell: Cell, records: Iterable[Record]) -> pyperf.Benchmark:
    blocks = [record for record in records if record.status == MEASURED]
    return pyperf.Benchmark(
        [
            pyperf.Run(
                record.step_seconds,
                warmups=[(max(record.steps_per_value, 1), seconds) for seconds in record.warmup_step_seconds],
                metadata={"name": cell.key, "loops": max(record.steps_per_value, 1), "unit": "second"},
                collect_metadata=False,
            )
            for record in blocks
        ]
    )
