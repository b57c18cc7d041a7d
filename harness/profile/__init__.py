"""Profilers, one module each, and the loop that runs those that fit a cell and stores their profiles.

Timing is in `harness.run`, in separate processes with separate records; the code inside a profiled worker is
`harness.worker.profile`.

The anatomy gives seconds per step for building the graph, ordering it, forward, backward, update, freeing and
collecting, and the least memory early and late in the training.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import ValidationError

from zoomgrad import engines
from zoomgrad.engines.interpreted.engine import Interpreted
from zoomgrad.harness import containment
from zoomgrad.harness.containment import Run
from zoomgrad.harness.machine.environments import NoEnvironment
from zoomgrad.harness.plan.planning import Plan
from zoomgrad.harness.profile import perf, scalene
from zoomgrad.harness.profile.session import Profiler, Session, observed
from zoomgrad.harness.run.replies import NoResult, no_interpreter
from zoomgrad.results.files import first_of
from zoomgrad.results.profile import PROFILE, AnyProfile
from zoomgrad.results.record import Cell
from zoomgrad.results.store import Store

PROFILERS: dict[str, Profiler] = {"anatomy": observed, "scalene": scalene.profile, "perf": perf.profile}


def planned(plan: Plan, profilers: Sequence[str]) -> list[tuple[Cell, str]]:
    """Pairs of a cell and a profiler that suits it, in order. If it suits but is not installed, its profile says so."""
    return [(cell, name) for cell in plan.run.cells for name in profilers if _suits(name, cell, plan)]


def _suits(name: str, cell: Cell, plan: Plan) -> bool:
    if name == "anatomy":  # only interpreted engines have separate stages of a step
        engine = engines.load(cell.engine)
        return isinstance(engine, Interpreted) and engine.in_python
    interpreter = plan.interpreters.get(cell.interpreter)
    has_jit = interpreter.has_jit if interpreter else cell.interpreter.startswith("pypy")
    return name != "scalene" or not has_jit


def profiled(
    plan: Plan, store: Store, cell: Cell, name: str, seconds: float, *, run: Run = containment.run
) -> AnyProfile:
    """Run the profiler on the cell, and store its profile. Any failure becomes a profile with the reason."""
    profile = _profile(plan, store, cell, name, seconds, run)
    store.write_profile(profile)
    return profile


def _profile(plan: Plan, store: Store, cell: Cell, name: str, seconds: float, run: Run) -> AnyProfile:
    common = {"profiler": name, "cell": cell, "started_at": datetime.now(UTC)}
    try:
        if cell.interpreter not in plan.interpreters:
            raise no_interpreter(cell)
        interpreter, folder = plan.interpreters[cell.interpreter], store.profile_folder(cell)
        session = Session(name, cell, interpreter, seconds, plan.run.settings, folder, run)
        fields = {**PROFILERS[name](session), "status": "measured"}
    except NoResult as none:
        fields = none.why
    except NoEnvironment as error:
        fields = {"status": "failed", "reason": str(error), "remedy": error.remedy}
    except Exception as error:  # a failure must not stop the other profilers
        fields = {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    try:
        return PROFILE.validate_python({**fields, **common})
    except ValidationError as error:  # figures of an engine or a tool that are out of range
        reason = f"{cell.engine}: the figures of {name} are invalid: {first_of(error)}"
        return PROFILE.validate_python({**common, "status": "failed", "reason": reason})
