"""Get what a plan or a worker needs and this machine lacks: data, interpreters, a Clang. Each download is announced."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Optional

from zoomgrad import datasets, engines
from zoomgrad.datasets import fetch, mnist
from zoomgrad.datasets.idx import CorruptData
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.row import Row
from zoomgrad.harness import workloads
from zoomgrad.harness.cli.app import INTERRUPTED
from zoomgrad.harness.cli.console import complain, out
from zoomgrad.harness.machine import environments, facts, interpreters, own_clang
from zoomgrad.harness.machine.environments import NoEnvironment
from zoomgrad.harness.machine.project import with_project, worker_command
from zoomgrad.harness.plan.planning import Plan


def fetch_data(names: Iterable[str]) -> None:
    """Download MNIST to the cache if a workload needs it; no other data is downloaded. Workers report any failure."""
    if any(workloads.load(name).reader is mnist.load for name in names):
        with out.status("looking for MNIST"), contextlib.suppress(datasets.Unavailable, CorruptData):
            fetch.fetch_mnist()


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


def pythons(names: Sequence[str]) -> bool:
    """Let uv install interpreters. Return whether it installed any; print why it did not."""
    return sum(_fetched(name, partial(environments.install_python, name)) for name in names) > 0


def with_clang(plan: Plan) -> Plan:
    """The plan with a Clang among the machine's facts, fetched if its engines need one and there is none.

    If it can't be fetched, the cells that need it are skipped with the reason.
    """
    loaded = (engines.load(cell.engine) for cell in plan.run.cells)
    needs_clang = any(isinstance(engine, Row) and engine.options.compiler == "clang" for engine in loaded)
    if not needs_clang or toolchains.has("clang") or not own_clang.is_offered():
        return plan
    if not _fetched("a Clang (the package ziglang)", own_clang.fetch):
        return plan
    return replace(plan, run=plan.run.model_copy(update={"machine": facts.gather()}))


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


def python_of(name: Optional[str]) -> Path:
    """Path of the Python for a worker: the named interpreter's environment, or the Python that runs this process."""
    if name is None:
        return Path(sys.executable)
    return environments.environment(interpreters.chosen_one(name, interpreters.discover()))


def run_worker(interpreter: Optional[str], module: str, *arguments: str) -> int:
    """Run one of our modules in a worker that shares this terminal, and return its exit code, as a shell reports it."""
    try:
        command = worker_command(python_of(interpreter), module, *arguments)
        code = subprocess.run(command, env=with_project(os.environ), check=False).returncode  # noqa: S603  (a list)
    except KeyboardInterrupt:
        return INTERRUPTED
    if code < 0:
        complain(f"the worker was killed by signal {-code}\n  Use fewer weights, or free memory.")
    return 128 - code if code < 0 else code
