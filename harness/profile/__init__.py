"""Profilers, one module each, and the loop that runs those that fit a cell and stores their profiles.

Timing is in `harness.run`, in separate processes with separate records; the code inside a profiled worker is
`harness.worker.profile`.

The anatomy gives seconds per step for building the graph, ordering it, forward, backward, update, freeing and
collecting, and the least memory early and late in the training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from pydantic import ValidationError

from zoomgrad import engines
from zoomgrad.engines.interpreted.driver import Interpreted
from zoomgrad.harness import containment
from zoomgrad.harness.containment import Run
from zoomgrad.harness.machine.environments import NoEnvironment
from zoomgrad.harness.machine.interpreters import Interpreter
from zoomgrad.harness.plan.planning import Plan
from zoomgrad.harness.profile import perf, scalene
from zoomgrad.harness.profile.session import Profiler, Session, observed
from zoomgrad.harness.run.replies import NoResult, no_interpreter
from zoomgrad.results.files import first_of
from zoomgrad.results.profile import PROFILE, AnyProfile
from zoomgrad.results.record import Cell
from zoomgrad.results.store import Store

PROFILERS: dict[str, Profiler] = {
    "anatomy": observed,
    "scalene": scalene.profile,
    "perf": perf.profile,
}

ENDING_SECONDS = 60.0
"""Extra time of a worker beyond the profiled time: start, preparation, and the profiler's own processing."""


def fits(name: str, cell: Cell, interpreter: Interpreter | None) -> bool:
    """Whether that profiler suits the cell. If it suits but is not installed, its profile says so."""
    engine = engines.load(cell.engine)
    is_interpreted = isinstance(engine.driver, Interpreted) and engine.driver.in_python
    has_jit = interpreter.has_jit if interpreter else cell.interpreter.startswith("pypy")
    return {
        # Only interpreted engines have separate stages of a step.
        "anatomy": is_interpreted,
        "scalene": not has_jit,
        "perf": True,
    }[name]


def planned(plan: Plan, profilers: Sequence[str]) -> list[tuple[Cell, str]]:
    """Pairs of a cell and a profiler that fits it, in order."""
    return [
        (cell, name)
        for cell in plan.run.cells
        for name in profilers
        if fits(name, cell, plan.interpreters.get(cell.interpreter))
    ]


def run_profilers(
    plan: Plan, store: Store, profilers: Sequence[str], seconds: float, *, run: Run = containment.run
) -> Iterator[tuple[Cell, str, AnyProfile | None]]:
    """Yield each planned cell and profiler twice: with None before profiling, then with the stored profile."""
    store.learn(plan.run)
    for cell, name in planned(plan, profilers):
        yield cell, name, None
        profile = _profile(plan, store, cell, name, seconds, run)
        store.write_profile(profile)
        yield cell, name, profile


def _profile(plan: Plan, store: Store, cell: Cell, name: str, seconds: float, run: Run) -> AnyProfile:
    common = {"profiler": name, "cell": cell, "started_at": datetime.now(UTC)}
    try:
        if cell.interpreter not in plan.interpreters:
            raise no_interpreter(cell)
        settings = plan.run.settings
        timeout_seconds = max(settings.timeout_seconds, seconds + ENDING_SECONDS)
        session = Session(
            name,
            cell,
            plan.interpreters[cell.interpreter],
            seconds,
            settings.model_copy(update={"timeout_seconds": timeout_seconds}),
            store.profile_folder(cell),
            run,
        )
        fields = {**PROFILERS[name](session), "status": "measured"}
    except NoResult as none:
        fields = none.why
    except NoEnvironment as error:
        fields = {"status": "failed", "reason": str(error), "remedy": error.remedy}
    except Exception as error:  # any failure becomes a profile and never stops the other profilers
        fields = {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    try:
        return PROFILE.validate_python({**fields, **common})
    except ValidationError as error:  # figures of an engine or a tool that are out of range
        reason = f"{cell.engine}: the figures of {name} are invalid: {first_of(error)}"
        return PROFILE.validate_python({**common, "status": "failed", "reason": reason})
