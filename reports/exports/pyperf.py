"""Every measured cell in one pyperf suite, named by its key: what `python -m pyperf` compares two runs by."""

from __future__ import annotations

import io

import pyperf

from reports.exports import Export, Material, NoExport
from reports.measured.outcome import MEASURED

FILE = "pyperf.json"
USE = "Set it against another run's: python -m pyperf compare_to OTHER.json {path} --table"


def export(material: Material) -> Export:
    """The blocks' values, warm-ups and metadata, as pyperf took them."""
    run = material.view.run
    benchmarks = []
    for cell, found in material.view.outcomes.items():
        if found.status == MEASURED and cell in material.suites:
            try:
                (benchmark,) = pyperf.BenchmarkSuite.loads(material.suites[cell]).get_benchmarks()
            except Exception as error:  # pyperf raises errors of many types for a damaged file
                why = f"pyperf's file of {cell} is damaged ({type(error).__name__})"
                raise NoExport(why, "Remove it: the cell is left out then.") from error
            benchmark.update_metadata({"name": cell.key})
            benchmarks.append(benchmark)
    if not benchmarks:
        raise NoExport(f"{run.id} has no cell with a result and pyperf's own file", "Measure: `zoomgrad run`.")
    text = io.StringIO()
    pyperf.BenchmarkSuite(benchmarks).dump(text)
    return Export(text.getvalue(), len(run.cells) - len(benchmarks))
