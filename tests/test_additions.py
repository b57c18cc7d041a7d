"""One place to change: a copy of the project gets an op, an engine, workloads, a chart and a figure.

Each addition touches what CONTRIBUTING's table names, and nothing else. Then the fast tests that know about such
additions run in the copy, and a cell is measured in it.
"""

import csv
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from zoomgrad.results import units

pytestmark = pytest.mark.host

ROOT = Path(__file__).parent.parent
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")

WORKLOAD = """
        Workload(
            "tiny",
            "2-[2,1], squared error",
            xor.load,
            train_rows=4,
            build=Mlp((2, 2, 1)),
            loss_of=squared_error,
            batch=4,
            rate=constant(0.1),
        ),
"""

CHART = '''
"""Measured cells, by engine."""

from zoomgrad.reports.measured.table import measured
from zoomgrad.reports.plot import Plot, Scale


def counted(name, table):
    """Draw a mark for each engine."""
    counts = measured(table)["engine"].value_counts(sort=False)
    plot = Plot(Scale(0, 100, (), "cells", log=False), Scale(0, len(counts), (), "engine", log=False))
    for place, number in enumerate(counts):
        plot.mark(plot.place(number, place), "on")
    return plot.drawn(name, f"{len(measured(table))} cells were measured")
'''


def add_op(project):
    """Add `sin`: a row of the table, and a method of each Value class beside its `tanh`."""
    edit(
        project / "engines/graph/ops.py",
        r"( +Op\(\"tanh\".*\n)",
        r'\1        Op("sin", call("sin", A), (call("cos", A) * G,)),\n',
    )
    for file in (project / "engines/graph/value.py", *(project / "engines/interpreted").glob("*.py")):
        if "def tanh" in file.read_text(encoding="utf-8"):
            edit(file, r"(?ms)^( *)def \w*tanh\w*\(.*?(?=^\1\S)", sine)
    interpreted = project / "engines/interpreted"
    edit(interpreted / "hoisted.py", r"math\.cos\(self", "math.cos(a")  # it is at module level, and takes the result
    edit(interpreted / "replay.py", r"(.*)tanh(_backward: .*)tanh(.*\n)", r"\g<0>\1sin\2sin\3")


def sine(found):
    """Return a function and a copy of it for `sin`."""
    return found[0] + found[0].replace("tanh", "sin").replace("1 - out.data * out.data", "math.cos(self.data)")


def add_engine(project):
    """Add `another`: the class of `slots` in a file, a row of the table, and a row of the page about engines."""
    slots = (project / "engines/interpreted/slots.py").read_text(encoding="utf-8")
    (project / "engines/interpreted/another.py").write_text(slots, encoding="utf-8")
    table = project / "engines/table.py"
    edit(
        table,
        r"( +_interpreted\(\"slots\".*\n)",
        r'\1    _interpreted("another", "the same", "slots", 8e-6, "another"),\n',
    )
    edit(project / "docs/engines.md", r"(\| `slots`.*\n)", r"\1| `another` | the same |\n")


def add_workload(project):
    """Add `tiny`: an entry of the catalogue, and a row of the page about engines and workloads."""
    edit(project / "harness/workloads/catalogue.py", r"(for workload in \()\n", lambda found: found[1] + WORKLOAD)
    edit(project / "docs/engines.md", r"(\| `xor`.*\n)", r"\1| `tiny` | a small model | one row |\n")


def add_chart(project):
    """Add `counted`: one file, and a line in a section."""
    (project / "reports/charts/counted.py").write_text(CHART.lstrip(), encoding="utf-8")
    section = project / "reports/sections/ideas.py"
    edit(section, r"(from typing import Any\n\n)", r"\1from zoomgrad.reports.charts.counted import counted\n")
    edit(section, r"tuple\(sheets\), \(\), ", 'tuple(sheets), (counted("counted", view.table),), ')


def add_figure(project):
    """Add `processor_seconds`: one field, and the line that measures it."""
    field = '    processor_seconds: Elapsed = 0.0\n    """Processor time of the worker."""\n'
    edit(project / "results/record.py", r"( +threads: Count = 0\n)", lambda found: field + found[1])
    line = '        "processor_seconds": __import__("time").process_time(),\n'
    edit(project / "harness/worker/measure.py", r'( +"peak_bytes": .*\n)', lambda found: line + found[1])


def edit(file, pattern, new):
    """Replace every match in a file. There must be one."""
    text, count = re.subn(pattern, new, file.read_text(encoding="utf-8"))
    assert count, f"{file.name} has no {pattern}"
    file.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project with all additions."""
    folder = tmp_path_factory.mktemp("additions") / "project"
    shutil.copytree(ROOT, folder, ignore=LEFT_OUT, symlinks=True)
    for add in (add_op, add_engine, add_workload, add_chart, add_figure):
        add(folder)
    return folder


MEASURED = """
import sys
from pathlib import Path
from tests.harness.test_schedule import Observer, plan
from zoomgrad.harness.run.isolate import isolate
from zoomgrad.harness.run.schedule import Schedule
from zoomgrad.reports.build import build
from zoomgrad.reports.exports import EXPORTERS, Material
from zoomgrad.reports.view import view
from zoomgrad.results.record import Cell, EngineFacts, Settings
from zoomgrad.results.store import Store

quick = Settings(values=1, value_seconds=0.01, vouch_seconds=0.1)
cells = [Cell(engine=name, interpreter="cpython-3.13", workload="tiny") for name in ("slots", "another")]
facts = {"another": EngineFacts(idea="the same", builds_on="slots", strict=True)}
planned = plan(cells=tuple(cells), blocks=1, settings=quick, engines=facts)
store = Store.create(planned.run, under=Path("runs"))
Schedule(planned, store, isolate, lambda interpreter, lock=None: Path(sys.executable), Observer()).execute()
build(store).rename("report.html")
sys.stdout.write(EXPORTERS["csv"].export(Material(view(store.run, store.records()))).text)
"""


def run(project, *command):
    """Run Python in the copy and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, *command], cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def test_an_engine_a_workload_a_figure_and_a_chart_are_measured_and_shown(project):
    rows = list(csv.DictReader(io.StringIO(run(project, "-c", MEASURED))))
    assert [(row["engine"], row["workload"], row["reason"]) for row in rows] == [
        ("slots", "tiny", ""),
        ("another", "tiny", ""),
    ]
    page = (project / "report.html").read_text(encoding="utf-8")
    assert re.search(r"<th[^>]*>processor_seconds</th>", page)
    assert "Processor time of the worker." in page
    assert "2 cells were measured" in page
    seconds = max(float(row["processor_seconds"]) for row in rows)
    assert units.duration(seconds).replace(" ", "\u00a0") in page


def test_the_tests_of_the_copy_know_an_op_an_engine_and_a_workload(project):
    files = ("engines/test_every_op.py", "engines/test_bits.py", "harness/worker/test_workloads.py", "test_readme.py")
    chosen = "another or sin or training_with_every_op or tiny or every_engine"
    options = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", chosen)
    told = run(project, "-m", "pytest", *options, *(f"tests/{file}" for file in files))
    assert int(re.search(r"(\d+) passed", told)[1]) > 30
