"""Get what a plan needs and this machine lacks: interpreters and a Clang. Each download is announced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from zoomgrad import engines
from zoomgrad.engines.row import Row
from zoomgrad.harness.cli.console import complain, out
from zoomgrad.harness.machine import environments, facts, own_clang
from zoomgrad.harness.machine.environments import NoEnvironment
from zoomgrad.harness.plan.planning import Plan
from zoomgrad.results.record import Run


def pythons(names: Sequence[str]) -> bool:
    """Let uv install interpreters. Return whether it installed any; print why it did not."""
    failed = 0
    for name in names:
        try:
            with out.status(f"fetching {name}"):
                environments.install_python(name)
        except NoEnvironment as error:
            complain(f"{name}: not fetched ({_cause(error)})")
            failed += 1
    return failed < len(names)


def fetched(planned: Callable[[], Plan], *, every_python: bool = False) -> Plan:
    """The plan, after fetching what it needs: a PyPy if there is none, with `every_python` all others, and a Clang."""
    plan = planned()
    needs_pypy = not any(interpreter.has_jit for interpreter in plan.interpreters.values())
    kinds = ("cpython-", "pypy-") if every_python else ("pypy-",) * needs_pypy
    cells = dict.fromkeys(cell.interpreter for cell in plan.run.cells)
    missing = [name for name in cells if name in plan.missing and name.startswith(kinds)]
    if missing and pythons(missing):
        plan = planned()
    return with_clang(plan)


def with_clang(plan: Plan) -> Plan:
    """The plan with a Clang among the machine's facts, fetched if its engines need one and there is none.

    If it can't be fetched, prints why; the cells that need it are then skipped with the reason.
    """
    if own_clang.use() or not own_clang.is_offered() or not _needs_clang(plan.run):
        return plan
    try:
        with out.status("fetching a Clang (the package ziglang), because this machine has none"):
            own_clang.fetch()
    except NoEnvironment as error:
        complain(f"Clang: not fetched ({_cause(error)})")
        return plan
    return replace(plan, run=plan.run.model_copy(update={"machine": facts.gather()}))


def _needs_clang(run: Run) -> bool:
    """Whether the run has an engine that only Clang can compile."""
    loaded = (engines.load(cell.engine) for cell in run.cells)
    return any(isinstance(engine, Row) and engine.options.compiler == "clang" for engine in loaded)


def _cause(error: NoEnvironment) -> str:
    """The last line of uv's chain of causes, such as that a host can't be reached."""
    return str(error).splitlines()[-1].strip().removeprefix("cause: ")
