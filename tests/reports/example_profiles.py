"""A profiled run, which was not timed: profiles of `baseline`, one of C, and missing ones. Figures are invented."""

from tests.harness.runs import NOW
from tests.harness.runs import run as run_named
from zoomgrad.results.profile import PARTS, AnatomyProfile, Line, LineProfile, Symbol, SymbolProfile
from zoomgrad.results.record import Cell, EngineFacts, InterpreterFacts, WorkloadFacts

OLD, NEW, PYPY = "cpython-3.9", "cpython-3.13", "pypy-3.11"
WORKLOAD = "mnist"
NASTY = "</code><script>window.ran = 1</script> | `x` *y*"
"""A hostile line of source, which a report must show but never execute."""


def cell(engine, interpreter=NEW):
    return Cell(engine=engine, interpreter=interpreter, workload=WORKLOAD)


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


def anatomy(where, *, plain=0.9, pauses=None, floors=(0, 0), **seconds):
    """Return an anatomy profile. seconds: part -> seconds of a step; parts not named take none."""
    parts = {part: seconds.get(part, 0.0) for part in PARTS}
    figures = {"step_seconds": sum(parts.values()), "plain_step_seconds": plain}
    figures |= {"early_floor_bytes": floors[0], "late_floor_bytes": floors[1]}
    return made(AnatomyProfile, where, parts=parts, pauses=pauses or {}, **figures)


CHILDREN = "self._prev = set(_children)"
CREATION = 'out = Value(self.data + other.data, (self, other), "+")'
GRADIENT = "self.grad += out.grad"
COLLECTOR = {"gc_collect_main.lto_priv.0": 0.3, "gc_collect_main": 0.08, "deduce_unreachable": 0.28}


def run():
    """Return the profiled run."""
    engines = ("baseline", "tuple", "slots", "hoisted", "clang-O1")
    return run_named(
        "profiled",
        cells=tuple(cell(engine, interpreter) for engine in engines for interpreter in (OLD, NEW, PYPY)),
        engines={name: EngineFacts(idea=name, strict=True) for name in engines},
        workloads={
            WORKLOAD: WorkloadFacts(description="64-[50,10]", steps_per_epoch=1437, samples_per_step=1, batch=1)
        },
        interpreters={name: InterpreterFacts(version=name) for name in (OLD, NEW, PYPY)},
    )


def profiles():
    """Return all profiles of the run, in no particular order."""
    step = {"forward": 0.1, "backward": 0.05, "update": 0.01, "rest": 0.01}
    pauses = {"build": 0.48, "order": 0.12}
    hot = ((CREATION, 0.3, 5e8), (CHILDREN, 0.2, 3e8), (NASTY, 0.15, 1e6), (GRADIENT, 0.09, 0.0))
    return [
        lines(cell("baseline"), *(line(*one, number=n) for n, one in enumerate(hot)), peak_bytes=2e8),
        symbols(cell("baseline"), {"garbage collector": 0.88, "evaluation loop": 0.12}, COLLECTOR),
        symbols(cell("clang-O1"), {"compiled code": 1.0}, preparations=2),
        anatomy(
            cell("baseline"),
            **step,
            build=0.15,
            order=0.2,
            collector=0.6,
            pauses=pauses,
            plain=1.1,
            floors=(10**7, 10**8),
        ),
        anatomy(cell("baseline", PYPY), **step, build=0.2, order=0.1, collector=0.1, plain=0.5),
        missing(SymbolProfile, cell("baseline", OLD)),
        missing(SymbolProfile, cell("hoisted", PYPY), "failed", NASTY),
    ]
