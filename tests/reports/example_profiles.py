"""A profiled run: five interpreted engines, and missing profiles.

Its figures are invented but have the shapes of real profiles.
"""

from datetime import UTC, datetime

from zoomgrad.results.profile import (
    PARTS,
    AnatomyProfile,
    Line,
    LineProfile,
    MemoryPoint,
    MemoryProfile,
    Symbol,
    SymbolProfile,
)
from zoomgrad.results.record import Cell, EngineFacts, InterpreterFacts, Run, WorkloadFacts

NOW = datetime(2026, 1, 15, 9, 30, tzinfo=UTC)
OLD, NEW, PYPY = "cpython-3.9", "cpython-3.13", "pypy-3.11"
WORKLOAD = "mnist"
ENGINES = ("baseline", "tuple", "slots", "hoisted")
NASTY = "</code><script>window.ran = 1</script> | `x` *y*"
"""A hostile line of source, which a report must show but never execute."""


def cell(engine, interpreter=NEW, workload=WORKLOAD):
    return Cell(engine=engine, interpreter=interpreter, workload=workload)


def line(source, cpu=0.0, allocated=0.0, *, number=1, file="engines/interpreted/baseline.py"):
    """Return a line with half of its CPU time in Python and half in native code."""
    halves = {"python": cpu / 2, "native": cpu / 2, "system": 0.0}
    return Line(file=file, line=number, source=source, allocated_bytes=allocated, **halves)


def made(model, where, **fields):
    """Return a measured profile."""
    values = {"steps": 100, "seconds": 2.0, "tool": f"{model.model_fields['profiler'].default} 1.0", **fields}
    return model(cell=where, status="measured", started_at=NOW, **values)


def missing(model, where, status="skipped", reason="perf is not installed", remedy="Install it."):
    return model(cell=where, status=status, reason=reason, remedy=remedy, started_at=NOW)


def lines(where, *found, **fields):
    return made(LineProfile, where, lines=found, **fields)


def symbols(where, groups, shares=(), **fields):
    """Return a symbol profile. groups: group -> share; shares: symbol -> share."""
    found = tuple(
        Symbol(name=name, object="libpython.so", group="garbage collector", share=share)
        for name, share in dict(shares).items()
    )
    return made(SymbolProfile, where, samples=1000, groups=groups, symbols=found, **fields)


def anatomy(where, *, plain=0.9, pauses=None, **seconds):
    """Return an anatomy profile. seconds: part -> seconds of a step; parts not named take none."""
    parts = {part: seconds.get(part, 0.0) for part in PARTS}
    return made(
        AnatomyProfile,
        where,
        parts=parts,
        pauses=pauses or {},
        step_seconds=sum(parts.values()),
        plain_step_seconds=plain,
    )


def dissected():
    """Yield anatomy profiles of the interpreted engines on CPython and PyPy, and of `replay` on CPython."""
    common = {"forward": 0.1, "backward": 0.05, "update": 0.01, "rest": 0.01}
    for index, engine in enumerate(ENGINES):
        collecting = 0.6 - 0.17 * index
        yield anatomy(
            cell(engine),
            **common,
            build=0.15,
            order=0.2,
            free=0.01 * index,
            collector=collecting,
            pauses={"build": 0.8 * collecting, "order": 0.2 * collecting},
            plain=1.1 - 0.15 * index,
        )
        yield anatomy(cell(engine, PYPY), **common, build=0.2, order=0.1, collector=0.1, plain=0.5 - 0.13 * index)
    yield anatomy(cell("replay"), forward=0.02, backward=0.03, update=0.005, plain=0.05)


def memory(where, *resident, warm_up=1.0, steps=20):
    """Return a memory profile. resident: bytes, one reading per second."""
    points = tuple(MemoryPoint(seconds=n, resident_bytes=one) for n, one in enumerate(resident))
    return made(MemoryProfile, where, points=points, warm_up_seconds=warm_up, steps=steps)


SAW = tuple(10**7 * (5 + n % 3) for n in range(10))
RISING = tuple(10**7 * (5 + n + n % 3) for n in range(10))


CHILDREN = "self._prev = set(_children)"
CREATION = 'out = Value(self.data + other.data, (self, other), "+")'
GRADIENT = "self.grad += out.grad"


def by_line(interpreter=NEW):
    """Yield line profiles of the interpreted engines. Only baseline has the set; each has the gradient line twice."""
    for index, engine in enumerate(ENGINES):
        file = f"engines/interpreted/{engine}.py"
        found = [
            line(CREATION, 0.30 - 0.05 * index, 5e8, number=30, file=file),
            line(GRADIENT, 0.04, number=40, file=file),
            line(GRADIENT, 0.05, number=50, file=file),
            line(NASTY, 0.01, 1e6, number=60, file=file),
            line("return self.cold", 0.0, 1e3, number=70, file=file),
        ]
        if not index:
            found.append(line(CHILDREN, 0.20, 3e8, number=25, file=file))
        yield lines(cell(engine, interpreter), *found, peak_bytes=2e8)


def sampled(interpreter=NEW):
    """Yield perf's symbol profiles of the interpreted engines."""
    for index, engine in enumerate(ENGINES):
        share = 0.47 - 0.06 * index if index else 0.88
        groups = {"garbage collector": share, "evaluation loop": 0.3 if index else 0.06, "others": 0.06}
        shares = {"visit_decref": 0.1, "func_traverse": 0.03 if index < 3 else 0.001}
        if index < 2:
            shares["PyObject_VisitManagedDict.lto_priv.0"] = 0.02
        if not index:
            shares |= {"gc_collect_main.lto_priv.0": 0.3, "gc_collect_main": 0.08, "deduce_unreachable": 0.28}
        yield symbols(cell(engine, interpreter), groups, {**shares, "visit_reachable": 0.1})


def run():
    """Return the profiled run, which was planned but not timed."""
    engines = (*ENGINES, "replay", "python-source", "clang-O1", "clang-O1-whole")
    return Run(
        id="profiled",
        created_at=NOW,
        command=("zoomgrad", "profile"),
        preset="quick",
        seed=1,
        blocks=1,
        cells=tuple(cell(engine, interpreter) for engine in engines for interpreter in (OLD, NEW, PYPY)),
        reference_interpreter=NEW,
        engines={
            name: EngineFacts(idea=name, strict=name != "baseline", error_bound=None if name != "baseline" else 1e-9)
            for name in engines
        },
        workloads={
            WORKLOAD: WorkloadFacts(description="64-[50,10]", steps_per_epoch=1437, samples_per_step=1, batch=1)
        },
        interpreters={name: InterpreterFacts(version=name) for name in (OLD, NEW, PYPY)},
        machine={"cpu": "Example CPU @ 2.40 GHz"},
    )


def profiles():
    """Return all profiles of the run, in no particular order."""
    return [
        *reversed(list(by_line())),
        *sampled(),
        *dissected(),
        memory(cell("baseline"), *RISING),
        memory(cell("hoisted"), *SAW),
        memory(cell("baseline", PYPY), *SAW),
        symbols(cell("clang-O1"), {"compiled code": 0.9, "others": 0.1}, preparations=2),
        *(missing(SymbolProfile, cell(engine, OLD)) for engine in ENGINES),
        missing(
            LineProfile, cell("baseline", PYPY), reason=f"Scalene does not run on {PYPY}", remedy="Name a CPython."
        ),
        missing(LineProfile, cell("tuple", OLD), "timed-out", "took longer than 60 s"),
        missing(SymbolProfile, cell("hoisted", PYPY), "failed", NASTY),
    ]
