"""Preset and options -> Plan: the run's cells, settings and facts, and the interpreters to run them on.

Only this module creates a `Run`, and only it decides whether an interrupted run may be resumed on this machine.
"""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from zoomgrad import engines
from zoomgrad.engines.api import UnknownName
from zoomgrad.harness import workloads
from zoomgrad.harness.machine import facts, interpreters
from zoomgrad.harness.machine.interpreters import Interpreter
from zoomgrad.harness.machine.project import code_digest
from zoomgrad.harness.plan import estimate, presets
from zoomgrad.harness.plan.presets import Preset, Selection
from zoomgrad.results import comparability
from zoomgrad.results.files import Unreadable
from zoomgrad.results.places import IS_CHECKOUT, ROOT
from zoomgrad.results.record import Cell, EngineFacts, InterpreterFacts, Run, Settings, WorkloadFacts

OPT_IN = ("clang-O1-whole", "clang-O1-published", "cython", "mypyc", "rpython")
"""Engines that take minutes to compile the larger workloads, or that need packages which no environment has by default.
They run only where a preset or the user names them, and so do peers."""


@dataclass(frozen=True)
class Plan:
    """A run, and the machine's interpreters by name. Cells of others are skipped."""

    run: Run
    interpreters: Mapping[str, Interpreter]

    def block_seconds(self, cell: Cell, block: int) -> float:
        return estimate.block_seconds(cell, self.run.settings, self.interpreters.get(cell.interpreter), block)

    def cell_seconds(self, cell: Cell) -> float:
        """Estimated time of the cell over all its blocks."""
        return sum(self.block_seconds(cell, block) for block in range(self.run.blocks))

    @property
    def total_seconds(self) -> float:
        """Estimated time of the whole run: vouching, then every cell."""
        vouching = sum(estimate.vouching_seconds(name, self.run.settings) for name in self.run.workloads)
        return vouching + sum(self.cell_seconds(cell) for cell in self.run.cells)

    def order(self) -> Iterator[tuple[int, Cell]]:
        """Yield (block, cell) in the order of measuring. The seed determines it, so a resumed run keeps the order."""
        rng = random.Random(self.run.seed)
        for block in range(self.run.blocks):
            yield from ((block, cell) for cell in rng.sample(self.run.cells, len(self.run.cells)))


def plan(
    preset_name: str,
    installed: Sequence[Interpreter],
    selection: Selection,
    *,
    command: Sequence[str],
    blocks: int | None = None,
    fleet: str = "",
    **limits: float,
) -> Plan:
    """Plan a new run on the installed interpreters. Raises UnknownName for a name that does not exist, and Unreadable.

    fleet: kind of fleet that will measure; empty for this machine.
    limits: fields of Settings for a worker's limits that differ from the preset's.
    """
    chosen = presets.preset(preset_name)
    missing = interpreters.missing(installed)
    known = [i.name for i in installed if i.canonical or i.name in selection.interpreters]
    hosts = in_order([*known, *missing])
    cells = cells_of(chosen, selection, hosts, main=_main(installed, missing))
    # Validate now, because a run with invalid settings could not be read again.
    settings = Settings.model_validate({**chosen.settings, **limits})
    blocks = chosen.blocks if blocks is None else blocks
    present = by_name(installed)
    named = dict.fromkeys(cell.engine for cell in cells)
    created_at = datetime.now(UTC)
    run = Run(
        # A part of the preset must not be mistaken for the whole of it.
        id=f"{created_at:%Y-%m-%dT%H%M%S}-{preset_name}{'-custom' * any(vars(selection).values())}",
        created_at=created_at,
        command=tuple(command),
        preset=preset_name,
        seed=secrets.randbelow(2**32),
        blocks=blocks,
        settings=settings,
        cells=tuple(cells),
        reference_interpreter=interpreters.reference(installed).name,
        # In the order of the table; engines of a suite's files come last.
        engines={name: _engine_facts(name) for name in dict.fromkeys((*engines.names(), *named)) if name in named},
        workloads={
            name: WorkloadFacts.model_validate(workloads.load(name), from_attributes=True)
            for name in dict.fromkeys(cell.workload for cell in cells)
        },
        interpreters={name: _host_facts(present.get(name)) for name in in_order([cell.interpreter for cell in cells])},
        machine=facts.gather(),
        fleet=fleet,
        commit=_commit(),
        code=code_digest(),
    )
    return Plan(run, present)


def cells_of(chosen: Preset, selection: Selection, hosts: Sequence[str], *, main: Iterable[str]) -> list[Cell]:
    """Cells of the preset, sorted by workload, interpreter and engine.

    hosts: names of interpreters that the run knows, including missing ones. main: those that every engine runs on. A
    selection replaces the preset's choice, and every named engine then runs on every named interpreter.
    Raises UnknownName for a name that does not exist.
    """
    for name in selection.interpreters:
        if name not in hosts:
            raise UnknownName("interpreter", name, hosts)
    newest = set(selection.interpreters or main)
    ordinary = [name for name in engines.names() if name not in OPT_IN and not engines.load(name).is_peer]
    cells = {
        Cell(engine=engines.load(engine).name, interpreter=interpreter, workload=workloads.load(workload).name)
        for part in chosen.parts
        for workload in selection.workloads or part.workloads
        for interpreter in selection.interpreters or hosts
        if part.everywhere or interpreter in newest or interpreter in part.also
        if not part.cpython_only or interpreter.startswith("cpython") or interpreter in selection.interpreters
        for engine in selection.engines or part.engines or ordinary
    }
    order = [*selection.workloads, *(name for part in chosen.parts for name in part.workloads)]
    names = [*selection.engines, *engines.names(), *(engine for part in chosen.parts for engine in part.engines)]
    return sorted(
        cells, key=lambda cell: (order.index(cell.workload), hosts.index(cell.interpreter), names.index(cell.engine))
    )


def _main(installed: Sequence[Interpreter], missing: Sequence[str]) -> list[str]:
    """Names of the interpreters that every engine runs on: the newest CPython and PyPy, even if PyPy is missing."""
    jits = [i.name for i in installed if i.has_jit and i.canonical]
    return [interpreters.reference(installed).name, *(jits or [name for name in missing if name.startswith("pypy")])]


def resume(run: Run, installed: Sequence[Interpreter]) -> Plan:
    """Plan of an interrupted run, with the interpreters that are installed now.

    Raises Unreadable if the machine, the code or an interpreter's build is different, because their times must not be
    mixed, or if the reference interpreter is gone.
    """
    if run.commit != _commit() or run.code not in ("", code_digest()):
        raise Unreadable(
            f"{run.id}: was measured at commit {run.commit or 'unknown'}, and the code has changed since\n"
            "  Check out that commit again, and name the same suite and files, or start a new run."
        )
    if run.fleet:  # its hosts are compared as they join, and this machine measures nothing
        return Plan(run, by_name(installed))
    if moved := comparability.moved(run.machine, facts.gather()):
        raise Unreadable(
            f"{run.id}: this machine differs from the run's ({moved})\n  Resume it there, or start a new run here."
        )
    if run.reference_interpreter not in {interpreter.name for interpreter in installed}:
        raise Unreadable(
            f"{run.id}: its reference {run.reference_interpreter} is no longer on this machine\n"
            f"  Install it: uv python install {run.reference_interpreter}"
        )
    for interpreter in installed:
        recorded = run.interpreters.get(interpreter.name)
        if recorded and recorded.version not in (interpreter.full_version, ""):
            raise Unreadable(
                f"{run.id}: {interpreter.name} was {recorded.version} and is now {interpreter.full_version}\n"
                "  Start a new run."
            )
    return Plan(run, by_name(installed))


def by_name(installed: Iterable[Interpreter]) -> dict[str, Interpreter]:
    """Interpreters by their names."""
    return {interpreter.name: interpreter for interpreter in installed}


def in_order(names: Sequence[str]) -> list[str]:
    """Sort interpreter names by implementation and version, without duplicates."""

    def key(name: str) -> tuple[str, list[int]]:
        implementation, _, version = name.partition("-")
        number = re.match(r"[\d.]*", version)
        return implementation, [int(part) for part in (number[0] if number else "").split(".") if part]

    return sorted(dict.fromkeys(names), key=key)


def _commit() -> str:
    """The checkout's commit; empty for an installed copy, which may be inside another repository."""
    return facts.commit(ROOT) if IS_CHECKOUT else ""


def _host_facts(host: Interpreter | None) -> InterpreterFacts:
    return InterpreterFacts(version=host.full_version, build=host.build()) if host else InterpreterFacts(version="")


def _engine_facts(name: str) -> EngineFacts:
    row = engines.load(name)
    return EngineFacts(
        idea=row.idea, builds_on=row.builds_on, strict=row.strict, error_bound=row.error_bound, peer=row.file
    )
