"""Get what a plan needs and this machine lacks: data, interpreters, a Clang. Each download is announced."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from zoomgrad import engines
from zoomgrad.datasets import fetch
from zoomgrad.engines.kernel import toolchains
from zoomgrad.harness import workloads
from zoomgrad.harness.cli.console import complain, out
from zoomgrad.harness.machine import environments, interpreters
from zoomgrad.harness.machine.environments import NoEnvironment
from zoomgrad.harness.plan import planning
from zoomgrad.harness.plan.planning import Plan
from zoomgrad.harness.plan.presets import Selection


def fetch_data(names: Iterable[str]) -> None:
    """Download MNIST to the cache if a workload needs it. No other data is downloaded."""
    with out.status("looking for data"):
        fetch.fetch_for(workloads.load(name).reader for name in names)


def new_plan(preset: str, chosen: Selection, *, fetches: bool = True, **more: Any) -> Plan:
    """Plan a run of the preset's cells that the user chose, on the interpreters of this machine.

    fetches: whether to fetch what the plan needs first: interpreters and a Clang. more: as for `planning.plan`.
    """

    def planned() -> Plan:
        installed, names = interpreters.asked(chosen.interpreters, interpreters.discover())
        selection = replace(chosen, interpreters=names)
        return planning.plan(preset, installed, selection, command=["zoomgrad", *sys.argv[1:]], **more)

    plan = planned()
    if fetches and [what for what, fetch in _needs(plan) if _fetched(what, fetch)]:
        return planned()
    return plan


def _needs(plan: Plan) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield what the plan needs and this machine lacks, each with the function that fetches it.

    These are a PyPy, a Clang and, where CI is set, other interpreters.
    """
    wanted = interpreters.DISCOVERED if os.environ.get("CI") else ("pypy-",)
    for name in dict.fromkeys(cell.interpreter for cell in plan.run.cells):
        if name not in plan.interpreters and name.startswith(wanted):
            yield name, partial(environments.uv, "python", "install", name)
    loaded = (engines.load(cell.engine) for cell in plan.run.cells)
    needs_clang = any(engine.options.compiler == "clang" for engine in loaded)
    if needs_clang and environments.offers_clang() and not toolchains.has("clang"):
        yield "a Clang (the package ziglang)", environments.fetch_clang


def _fetched(what: str, fetch: Callable[[], None]) -> bool:
    """Whether it could be fetched; if not, prints the last of uv's causes, such as that a host can't be reached."""
    try:
        with out.status(f"fetching {what}"):
            fetch()
    except NoEnvironment as error:
        cause = str(error).splitlines()[-1].strip().removeprefix("cause: ")
        complain(f"{what}: not fetched ({cause})")
        return False
    return True
