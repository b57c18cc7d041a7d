"""The fixture run: five engines and a peer, three interpreters, two workloads, and one of each kind of failure."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.harness.runs import run as run_named
from tests.reports import example_profiles
from zoomgrad.harness.plan.presets import PRESETS
from zoomgrad.reports import build
from zoomgrad.reports.pages import html
from zoomgrad.reports.profiling.profile_index import profile_index
from zoomgrad.reports.story import story
from zoomgrad.results.record import Cell, EngineFacts, InterpreterFacts, Proof, Record, Run, WorkloadFacts
from zoomgrad.results.store import BASELINE_RUNS, RunFile, Store

NOW = datetime(2025, 11, 21, 10, 45, tzinfo=UTC)
REFERENCE = "cpython-3.13"
NASTY = "<script>window.ran = 1</script> | <b>_not_ `built`</b>"
"""A hostile reason, which a report must show but never execute."""

ENGINES = {
    "baseline": EngineFacts(idea="micrograd as published", strict=False, error_bound=1e-9),
    "tuple": EngineFacts(idea="children as a tuple", builds_on="baseline", strict=True),
    "local-grads": EngineFacts(idea="no functions at all", builds_on="tuple", strict=True),
    "clang-O1": EngineFacts(idea="straight-line C", strict=True),
    "rerolled-clang-fast": EngineFacts(idea="loops, reassociated", strict=False, error_bound=1e-6),
    "jax": EngineFacts(idea="JAX", strict=False, error_bound=1e-9, peer="engines/peers/models/with_jax.py"),
}
STEP_SECONDS = dict(zip(ENGINES, (1.4, 1.1, 0.41, 1.6e-4, 4.1e-6, 3.2e-4), strict=True))
SCALE = {"mnist": 1.0, "xor": 2e-4}
SPEED = {"cpython-3.11": 1.25, "cpython-3.13": 1.0, "pypy-3.9": 0.2}
PHASES = {"clang-O1": {"trace": 1.1, "compile": 15.2}, "rerolled-clang-fast": {"trace": 0.09, "compile": 0.12}}


def proof(cell):
    """Return a proof: identical for a strict engine, and with an error in the last bits for the others."""
    strict = ENGINES[cell.engine].strict
    error = 0.0 if strict else 3.2e-13
    return Proof(reference=f"tuple/{REFERENCE}/{cell.workload}", steps=2, identical=strict, worst_error=error)


def measured(cell, block, **fields):
    """Return a measured record whose times depend on the cell and slightly on the block."""
    seconds = STEP_SECONDS[cell.engine] * SCALE[cell.workload] * SPEED[cell.interpreter] * (1 + 0.01 * block)
    compiled = {"compiler": "clang 19.1.7", "compiler_flags": ("-std=c99", "-O1"), "object_bytes": 90_000}
    values = {
        **(compiled if cell.engine in PHASES else {}),
        "phases": PHASES.get(cell.engine, {}),
        "step_seconds": (seconds, seconds * 1.01, seconds * 1.02),
        "steps_per_value": max(round(0.1 / seconds), 1),
        "peak_bytes": 90_000_000 + 1_000_000 * block,
        "worker_seconds": 3.5,
        "proof": proof(cell),
        **fields,
    }
    pace = (0.01,) * len(values["step_seconds"])
    return Record(cell=cell, block=block, status="measured", started_at=NOW, **{"pace_seconds": pace, **values})


def stopped(cell, block, status, reason, remedy="", **fields):
    """Return a record without a result."""
    return Record(cell=cell, block=block, status=status, reason=reason, remedy=remedy, started_at=NOW, **fields)


@dataclass(frozen=True)
class Example:
    """A run and its records, with methods that reduce or extend it, so that tests import nothing from this file."""

    run: Run
    records: tuple[Record, ...]
    measured = staticmethod(measured)
    stopped = staticmethod(stopped)
    nasty = NASTY

    def only(self, wanted):
        """Return the same run with a smaller plan: the cells for which `wanted(cell)` is true."""
        run = self.run.model_copy(update={"cells": tuple(cell for cell in self.run.cells if wanted(cell))})
        return Example(run, tuple(record for record in self.records if wanted(record.cell)))

    def with_records(self, cell, *records):
        """Return the run with these records in place of the cell's own."""
        return replace(self, records=(*(record for record in self.records if record.cell != cell), *records))

    def interrupted(self, count):
        """Return the run with only the first `count` records, in the order of a real run: block by block."""
        return replace(self, records=tuple(sorted(self.records, key=lambda record: record.block)[:count]))

    def mapped(self, change):
        """Return the run with `change` applied to every record; None drops the record."""
        return replace(self, records=tuple(new for old in self.records if (new := change(old)) is not None))

    def later(self, days, processor="Example CPU", seconds=1.0, **factors):
        """Return a copy of the run, `days` later, with all step times multiplied by `seconds`.

        factors: further factor for one engine's step times, by the engine's name.
        """
        made = NOW + timedelta(days=days)
        facts = {"id": made.strftime("%Y-%m-%dT%H%M%S"), "created_at": made, "machine": {"processor": processor}}

        def change(record):
            factor = seconds * factors.get(record.cell.engine, 1.0)
            return record.model_copy(update={"step_seconds": tuple(x * factor for x in record.step_seconds)})

        return replace(self.mapped(change), run=self.run.model_copy(update=facts))

    def stored(self, under):
        """Write the run to disk and return its store."""
        store = Store.create(self.run, under=under)
        for record in self.records:
            store.write(record)
        return store


def result(cell, block):
    """Return the record that the harness would have made for this cell and block, or None."""
    if cell.interpreter == "pypy-3.9":
        return stopped(cell, block, "skipped", NASTY, "pip install cffi")
    if cell.key == "clang-O1/cpython-3.11/mnist":
        return stopped(cell, block, "failed", "NonFiniteLoss: inf at step 31", "Lower the rate.")
    if cell.key == "local-grads/cpython-3.13/xor":
        wrong = Proof(reference=f"tuple/{REFERENCE}/xor", steps=2, identical=False, worst_error=0.25)
        return stopped(cell, block, "failed", "differs from the reference", "Its time is not shown.", proof=wrong)
    if cell.key == "tuple/cpython-3.11/xor" and block == 2:
        return None
    return measured(cell, block)


@pytest.fixture(scope="session")
def full():
    """The committed baseline run, the largest one, with profiles."""
    return RunFile(BASELINE_RUNS / "full.jsonl.xz")


@pytest.fixture(scope="session")
def quick(full):
    """The part of the committed run that the preset `quick` measures."""

    def wanted(cell):
        return any(
            cell.engine in part.engines
            and cell.workload in part.workloads
            and (cell.interpreter == REFERENCE or (cell.interpreter == "pypy-3.9" and not part.cpython_only))
            for part in PRESETS["quick"].parts
        )

    return Example(full.run, tuple(full.records())).only(wanted)


@pytest.fixture(scope="session")
def full_story(full):
    """Its story."""
    return build.tell(full, elsewhere=True)


@pytest.fixture(scope="session")
def full_page(full_story):
    """Its page."""
    return html.page(full_story)


@pytest.fixture(scope="session")
def example():
    """The fixture run, as `zoomgrad run` would produce it."""
    plan = tuple(
        Cell(engine=engine, interpreter=interpreter, workload=workload)
        for workload in SCALE
        for engine in ENGINES
        for interpreter in SPEED
    )
    run = run_named(
        "2025-11-21T104500",
        created_at=NOW,
        command=("zoomgrad", "run", "--preset", "quick", "--note", "a b"),
        preset="quick",
        seed=1337,
        cells=plan,
        engines=ENGINES,
        workloads={
            "mnist": WorkloadFacts(
                description="784-[50,10], cross-entropy", steps_per_epoch=60_000, samples_per_step=1, batch=1
            ),
            "xor": WorkloadFacts(description="2-[4,1], squared error", steps_per_epoch=4, samples_per_step=1, batch=4),
        },
        interpreters={
            "cpython-3.11": InterpreterFacts(version="3.11.7 (main) [GCC 12.2.0]"),
            "cpython-3.13": InterpreterFacts(version="3.13.0 (main) [Clang 19.1.0]"),
            "pypy-3.9": InterpreterFacts(version="3.9.19, PyPy 7.3.16"),
        },
        machine={"cpu": "Example CPU @ 2.40 GHz", "cores": "2", "system": "Linux 6.1"},
        commit="0123abc",
    )
    made = (result(cell, block) for block in range(run.blocks) for cell in plan)
    return Example(run, tuple(record for record in made if record is not None))


@pytest.fixture(scope="session")
def whole_page(example):
    """The page of the fixture run, with profiles."""
    index = profile_index(example.run, example_profiles.profiles())
    return html.page(story(example.run, example.records, index))
