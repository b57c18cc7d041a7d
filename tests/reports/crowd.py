"""A very large run: every engine and some variants, two interpreters, MNIST twice, and a growth curve.

Its figures are invented but have realistic sizes, so that charts are as full as real ones.
"""

from datetime import UTC, datetime

from zoomgrad.results.record import Cell, EngineFacts, InterpreterFacts, Proof, Record, Run, WorkloadFacts

NOW = datetime(2026, 1, 15, 9, 30, tzinfo=UTC)
CPYTHON, PYPY = "cpython-3.14", "pypy-3.11"

# engine: microseconds per step on a graph of MNIST's size under CPython and PyPy, and compile microseconds per row.
ENGINES = {
    "baseline": (1_450_000, 240_000, 0),
    "tuple": (1_100_000, 200_000, 0),
    "slots": (900_000, 190_000, 0),
    "hoisted": (620_000, 130_000, 0),
    "local-grads": (540_000, 110_000, 0),
    "replay": (160_000, 9_000, 0),
    "bytecode": (190_000, 4_400, 9),
    "python-source": (31_000, 2_100, 41),
    "tcc": (1_700, 1_690, 11),
    "tcc-extension": (1_650, 1_660, 13),
    "tcc-whole": (1_720, 1_730, 12),
    "gcc-O0": (800, 810, 45),
    "gcc-O1": (162, 163, 90),
    "gcc-O2": (155, 156, 120),
    "clang-O0": (790, 780, 40),
    "clang-O1": (158, 157, 81),
    "clang-O1-whole": (161, 160, 800),
    "clang-O1-native": (170, 171, 75),
    "clang-O2": (150, 151, 110),
}
COMPILER_ROW_BYTES = {"tcc": 900, "gcc": 4_500, "clang": 9_000}
"""Bytes per row of a compiler's peak memory, by the first word of the engine's name."""
SHARES = {"trace": 0.05, "lower": 0.04, "generate": 0.06, "compile": 0.8, "load": 0.05}
"""Share of each phase in compile time."""
MNIST_ROWS = 159_500
WORKLOADS = {
    "mnist": MNIST_ROWS,
    "mnist-b1000": MNIST_ROWS,
    "mlp-8x4x2": 160,
    "mlp-64x16x4": 3_600,
    "mlp-128x32x10": 13_500,
    "mlp-256x64x10": 52_000,
    "mlp-784x64x10": 158_000,
    "mlp-784x256x10": 620_000,
}
"""Workload -> rows of its tape."""
STEEP = "clang-O1-whole"
"""The engine whose compile time grows with the square of the graph."""


def facts(workload):
    digits = workload.startswith("mnist")
    return WorkloadFacts(
        description="784-[50,10], cross-entropy" if digits else "synthetic rows, squared error",
        steps_per_epoch=60_000 if digits else 1_000,
        samples_per_step=1,
        batch=1000 if workload == "mnist-b1000" else 1,
    )


def record(cell, block):
    """Return the record that the harness would have made. Only the first block has a slow compilation."""
    on_cpython, on_pypy, row_microseconds = ENGINES[cell.engine]
    rows = WORKLOADS[cell.workload]
    started = {"cell": cell, "block": block, "started_at": NOW}
    if cell.engine == STEEP and rows > MNIST_ROWS:
        return Record(**started, status="timed-out", reason="over 3,600 s", remedy="Raise --timeout.")
    if cell.engine == "tcc-extension" and cell.interpreter == PYPY:
        return Record(**started, status="skipped", reason="an extension for CPython", remedy="Use tcc.")
    step = 1e-6 * (on_cpython if cell.interpreter == CPYTHON else on_pypy) * rows / MNIST_ROWS * (1 + 0.01 * block)
    compiled = {}
    if row_microseconds:
        seconds = 0.02 + 1e-6 * row_microseconds * rows * (rows / MNIST_ROWS if cell.engine == STEEP else 1.0)
        slow = seconds > 10 and block > 0
        row_bytes = COMPILER_ROW_BYTES.get(cell.engine.split("-")[0], 0)
        if cell.engine == STEEP:
            row_bytes *= 4
        compiled = {
            "phases": {} if slow else {phase: share * seconds for phase, share in SHARES.items()},
            "peak_compiler_bytes": 40_000_000 + row_bytes * rows if row_bytes and not slow else 0,
            "tape_rows": rows,
            "source_bytes": 45 * rows,
            "object_bytes": 20 * rows,
            "looped_share": 0.0123,
        }
    if row_bytes := COMPILER_ROW_BYTES.get(cell.engine.split("-")[0], 0):
        compiled |= {
            "translation_units": 12 if row_bytes > 900 else 1,
            "parallel_compilers": 12 if row_bytes > 900 else 1,
            "vector_doubles": 1,
            "compiler": "clang 19.1.7",
            "compiler_flags": ("-std=c99", "-ffp-contract=off", "-fno-builtin", "-O1"),
        }
    strict = cell.engine != "baseline"
    return Record(
        **started,
        status="measured",
        step_seconds=(step, step * 1.01, step * 1.02),
        pace_seconds=(0.01, 0.01, 0.01),
        steps_per_value=1,
        peak_bytes=90_000_000 + 1200 * rows,
        worker_seconds=3.0,
        proof=Proof(
            reference=f"tuple/{CPYTHON}/{cell.workload}",
            steps=2,
            identical=strict,
            worst_error=0.0 if strict else 1e-13,
        ),
        **compiled,
    )


def crowd():
    """Return the run and its records."""
    cells = tuple(
        Cell(engine=engine, interpreter=interpreter, workload=workload)
        for workload in WORKLOADS
        for interpreter in (CPYTHON, PYPY)
        for engine in ENGINES
    )
    # Variants are chosen by name, so a run may have no facts about them.
    known = [name for name in ENGINES if name not in ("tcc-whole", "clang-O1-native")]
    run = Run(
        id="crowd",
        created_at=NOW,
        command=("zoomgrad", "run", "--preset", "full"),
        preset="full",
        seed=1,
        blocks=3,
        cells=cells,
        reference_interpreter=CPYTHON,
        engines={
            name: EngineFacts(idea=name, strict=name != "baseline", error_bound=None if name != "baseline" else 1e-9)
            for name in known
        },
        workloads={name: facts(name) for name in WORKLOADS},
        interpreters={name: InterpreterFacts(version=name) for name in (CPYTHON, PYPY)},
        machine={"cpu": "Example CPU @ 2.40 GHz"},
    )
    return run, tuple(record(cell, block) for block in range(run.blocks) for cell in cells)
