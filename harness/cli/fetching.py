"""Get what a plan needs and this machine lacks: interpreters and a Clang. Print the size before each download."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import engines
from harness.cli.app import complain, out
from harness.machine import downloads, environments, facts, own_clang
from harness.machine.downloads import Download
from harness.machine.environments import NoEnvironment
from harness.plan.planning import Plan
from results import units
from results.record import Run


def pythons(names: Sequence[str]) -> bool:
    """Let uv install interpreters. Return whether it did; if not, print why."""
    with out.status(f"asking uv for {', '.join(names)}"):
        offers = environments.offered(names)
    for name in names:
        if name not in offers:
            complain(f"{name}: uv offers no such interpreter for this system")
    if not offers:
        return False
    _say(", ".join(offers), downloads.at(offers.values()))
    try:
        with out.status(f"fetching {', '.join(offers)}"):
            environments.install_pythons(list(offers))
    except NoEnvironment as error:
        complain(f"{', '.join(offers)}: not fetched ({_cause(error)})")
        return False
    return True


def lacking(plan: Plan) -> list[str]:
    """Names of the interpreters of the plan's cells that this machine lacks and uv may have."""
    cells = dict.fromkeys(cell.interpreter for cell in plan.run.cells)
    return [name for name in cells if name in plan.missing and name.startswith(("cpython-", "pypy-"))]


def with_clang(plan: Plan) -> Plan:
    """The plan with a Clang among the machine's facts, fetched if its engines need one and there is none.

    If it can't be fetched, prints why; the cells that need it are then skipped with the reason.
    """
    if own_clang.use() or not own_clang.is_offered() or not _needs_clang(plan.run):
        return plan
    try:
        with out.status("fetching a Clang, because this machine has none"):
            own_clang.fetch(lambda download: _say("Clang (the package ziglang)", download))
    except NoEnvironment as error:
        complain(f"Clang: not fetched ({_cause(error)})")
        return plan
    return replace(plan, run=plan.run.model_copy(update={"machine": facts.gather()}))


def _needs_clang(run: Run) -> bool:
    """Whether the run has an engine that only Clang can compile."""
    found = (engines.load(cell.engine) for cell in run.cells)
    return any(str(getattr(engine, "compiler", "")) == "clang" for engine in found)


def _cause(error: NoEnvironment) -> str:
    """The last line of uv's chain of causes, such as that a host can't be reached."""
    return str(error).splitlines()[-1].strip().removeprefix("cause: ")


def _say(what: str, download: Download) -> None:
    size = units.size(download.size_bytes) if download.size_bytes else "an unknown size"
    out.print(f"fetching {what}: {size} in {download.files} {'file' if download.files == 1 else 'files'}")
