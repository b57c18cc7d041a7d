"""A small run on disk, as `zoomgrad run` would leave it."""

from datetime import UTC, datetime

from zoomgrad.results.record import Cell, EngineFacts, InterpreterFacts, Proof, Record, Run, WorkloadFacts
from zoomgrad.results.store import Store

NOW = datetime(2025, 1, 1, tzinfo=UTC)
INTERPRETER = "cpython-3.13"
STEPS = {"baseline": 1.0, "tuple": 0.8}


def cell(engine):
    return Cell(engine=engine, interpreter=INTERPRETER, workload="xor")


def run(name, **fields):
    values = {
        "id": name,
        "created_at": NOW,
        "command": ("zoomgrad", "run"),
        "preset": "smoke",
        "seed": sum(name.encode()),
        "blocks": 3,
        "cells": tuple(cell(engine) for engine in STEPS),
        "reference_interpreter": INTERPRETER,
        "engines": {engine: EngineFacts(idea="", strict=True) for engine in STEPS},
        "workloads": {
            "xor": WorkloadFacts(description="2-[4,1], squared error", steps_per_epoch=4, samples_per_step=1, batch=4)
        },
        "interpreters": {INTERPRETER: InterpreterFacts(version="3.13.0")},
        "machine": {"processor": "a"},
        "code": "c",
    }
    return Run(**{**values, **fields})


def timed(*step_seconds, reference="tuple/cpython-3.13/xor", **fields):
    """Fields of a measured record: its times, their pace and a proof."""
    proof = Proof(reference=reference, steps=4, identical=True, worst_error=0.0)
    pace = (0.01,) * len(step_seconds)
    return {"status": "measured", "step_seconds": step_seconds, "pace_seconds": pace, "proof": proof, **fields}


def measured(engine, block, step_seconds=None, **fields):
    seconds = step_seconds or (STEPS[engine] * (1 + 0.01 * block),)
    values = timed(*seconds, **fields)
    return Record(cell=cell(engine), block=block, started_at=NOW, **values)


def kept(folder, name="2025-01-01T000000-smoke", **fields):
    """Write such a run with all its records into that folder of runs, and return its store."""
    store = Store.create(run(name, **fields), under=folder)
    for engine in STEPS:
        for block in range(store.run.blocks):
            store.write(measured(engine, block))
    return store
