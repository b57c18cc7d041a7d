"""Get what a plan or a worker needs and this machine lacks: data, interpreters, a Clang. Each download is announced."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Optional

from zoomgrad import datasets, engines
from zoomgrad.datasets import fetch, mnist
from zoomgrad.datasets.idx import CorruptData
from zoomgrad.engines.kernel import toolchains
from zoomgrad.harness import workloads
from zoomgrad.harness.cli.app import INTERRUPTED
from zoomgrad.harness.cli.console import complain, out
from zoomgrad.harness.machine import environments, interpreters
from zoomgrad.harness.machine.environments import NoEnvironment
from zoomgrad.harness.machine.project import with_project, worker_command
from zoomgrad.harness.plan import planning
from zoomgrad.harness.plan.planning import Plan
from zoomgrad.harness.plan.presets import Selection


def fetch_data(names: Iterable[str]) -> None:
    """Download MNIST to the cache if a workload needs it; no other data is downloaded. Workers report any failure."""
    if any(workloads.load(name).reader is mnist.load for name in names):
        with out.status("looking for MNIST"), contextlib.suppress(datasets.Unavailable, CorruptData):
            fetch.fetch_mnist()


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


def run_worker(interpreter: Optional[str], module: str, *arguments: str) -> int:
    """Run one of our modules in a worker that shares this terminal, and return its exit code, as a shell reports it.

    interpreter: whose environment runs the worker; None for the Python that runs this process.
    """
    try:
        python = Path(sys.executable)
        if interpreter:
            everything, (name,) = interpreters.asked([interpreter], interpreters.discover())
            python = environments.environment(interpreters.choose(name, everything))
        command = worker_command(python, module, *arguments)
        code = subprocess.run(command, env=with_project(os.environ), check=False).returncode  # noqa: S603  (a list)
    except KeyboardInterrupt:
        return INTERRUPTED
    if code < 0:
        complain(f"the worker was killed by signal {-code}\n  Use fewer weights, or free memory.")
    return 128 - code if code < 0 else code
