"""Plan -> records: every cell once per block in shuffled order, one worker at a time.

Each block is shuffled anew, so that drift in the machine's speed affects all cells equally. A record is on disk before
the next cell's worker starts. A cell without a result is not tried again in later blocks, and never stops the others.
Nor is one whose worker takes more than `REPEAT_SECONDS`.
"""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from zoomgrad import engines
from zoomgrad.harness.machine.environments import WORKER, NoEnvironment
from zoomgrad.harness.plan.planning import Plan
from zoomgrad.harness.procedure import REPEAT_SECONDS
from zoomgrad.harness.run.isolate import Isolate
from zoomgrad.harness.run.replies import REMEDY, NoResult, no_interpreter, read_bounded, read_times
from zoomgrad.harness.run.vouchers import Vouchers
from zoomgrad.harness.worker.job import Job
from zoomgrad.results.files import first_of, write_atomically
from zoomgrad.results.record import Cell, Record, Vouching
from zoomgrad.results.store import Store

MOST_OFFSET_STEPS = 4
"""About one period of the garbage collector, in steps of the workloads that have one. More would waste slow steps."""

BLOCK = "zoomgrad_block"
"""Metadata key that identifies a block in its cell's pyperf suite."""

Environment = Callable[..., Path]
"""(interpreter, lock=…) -> path of the Python in a worker environment, made if needed. Raises NoEnvironment."""


class Observer:
    """Receives the events of a schedule or of a fleet. The command line displays them; this class does nothing."""

    def started(self, cell: Cell, block: int) -> None:
        """The cell's worker starts."""

    def finished(self, record: Record, seconds_left: float) -> None:
        """A record is on the disk. seconds_left: estimate of what remains."""


@dataclass
class Schedule:
    """Carries out a plan: runs its workers with `isolate` and writes their records to `store`."""

    plan: Plan
    store: Store
    isolate: Isolate
    environment: Environment
    observer: Observer
    _vouched: dict[str, Vouching | NoResult] = field(default_factory=dict)
    _given_up: set[Cell] = field(default_factory=set)
    """Cells that are not measured again."""

    def execute(self) -> None:
        """Measure all cells and blocks missing from the store."""
        self.measure(list(self.plan.order()))

    def add_block(self, cells: Sequence[Cell]) -> bool:
        """Measure one more block of some cells. Return whether anything was measured."""
        block = max((record.block for record in self.store.records()), default=-1) + 1
        order = random.Random(f"{self.plan.run.seed} {block}").sample(list(cells), len(cells))
        return bool(self.measure([(block, cell) for cell in order]))

    def clean_up(self) -> None:
        """Remove files that only further blocks would need: evidence, megabytes each."""
        for vouching in self.store.vouchings():
            for voucher in vouching.vouchers:
                self.store.remove(self.store.evidence_folder(voucher.cell))

    def measure(self, points: Sequence[tuple[int, Cell]]) -> int:
        """Measure these (block, cell) unless they are in the store. Return the number of records written.

        A resumed run tries a cell again if no worker ran for it, because what was missing may now be available.
        """
        records = [record for record in self.store.records() if _is_final(record)]
        finished = {(record.block, record.cell) for record in records}
        self._given_up |= {record.cell for record in records if _is_last(record)}
        earlier = {record.cell: record for record in records if record.steps_per_value}
        todo = [point for point in points if point not in finished]
        estimates = [self.plan.block_seconds(cell, block) for block, cell in todo]
        seconds_left, written = sum(estimates), 0
        for (block, cell), estimate in zip(todo, estimates, strict=True):
            seconds_left -= estimate
            if cell in self._given_up:
                continue
            self.observer.started(cell, block)
            record = self._record(cell, block, earlier.get(cell))
            self.store.write(record)
            written += 1
            if _is_last(record):
                self._given_up.add(cell)
            else:
                earlier[cell] = record
            self.observer.finished(record, max(0.0, seconds_left))
        return written

    def _record(self, cell: Cell, block: int, earlier: Record | None) -> Record:
        """Run one worker for one cell and return its record, whatever happens. earlier: record of another block."""
        fields = {"cell": cell, "block": block, "started_at": datetime.now(UTC)}
        try:
            return self._measured(cell, block, earlier, fields)
        except NoResult as none:
            return Record.model_validate({**fields, **none.why, "limit": none.limit, "worker_seconds": none.seconds})

    def _measured(self, cell: Cell, block: int, earlier: Record | None, fields: dict[str, Any]) -> Record:
        """The record of a worker that measured the cell. Raises NoResult."""
        if cell.interpreter not in self.plan.interpreters:
            raise no_interpreter(cell)
        try:
            python = self._python(cell)
            vouching = self._vouching(cell.workload)
        except NoEnvironment as error:
            # A peer's library does not support every interpreter.
            status = "failed" if lock_of(cell.engine) == WORKER else "skipped"
            raise NoResult(status, str(error), error.remedy) from None
        if earlier and earlier.stretch_steps > vouching.steps:
            # Blocks with different stretches are not comparable.
            reason = f"earlier blocks train {earlier.stretch_steps:,} steps per stretch, but {vouching.reference.key}"
            raise NoResult("failed", f"{reason} vouches for only {vouching.steps:,} now", "Start a new run.")
        run = self.plan.run
        job = self._job(cell, block, vouching, earlier)
        answer = self.isolate("measure", python, job, settings=run.settings, draw=block + 1)
        if answer.pyperf is None:
            raise NoResult(**answer.reply, seconds=answer.seconds)
        try:
            timed = read_times(answer.pyperf)
            record = Record.model_validate(
                {
                    **answer.reply,
                    **fields,
                    "worker_seconds": answer.seconds,
                    "other_load": answer.other_load,
                    "step_seconds": timed.get_values(),
                    "warmup_step_seconds": [seconds for run in timed.get_runs() for _, seconds in run.warmups],
                }
            )
            _merge(timed, block, self.store.pyperf_file(cell))
            return record
        except ValidationError as error:
            reason = f"{cell.engine}: its figures are out of range for a record: {first_of(error)}"
            raise NoResult("failed", reason, REMEDY, seconds=answer.seconds) from None
        except ValueError as error:
            reason = f"pyperf refuses to merge this block with the others: {error}"
            raise NoResult("failed", reason, "Start a new run.", seconds=answer.seconds) from None

    def _python(self, cell: Cell) -> Path:
        """Python of the cell's environment. Raises NoEnvironment."""
        return self.environment(self.plan.interpreters[cell.interpreter], lock=lock_of(cell.engine))

    def _vouching(self, workload: str) -> Vouching:
        """The cells that vouch for the workload's engines, determined once. Raises NoResult and NoEnvironment."""
        run = self.plan.run
        if workload not in self._vouched:
            interpreters, name = self.plan.interpreters, run.reference_interpreter
            vouchers = Vouchers(self.isolate, self.store, run, lambda: self.environment(interpreters[name]))
            try:
                self._vouched[workload] = vouchers.vouching(workload)
            except NoResult as nobody:
                self._vouched[workload] = nobody
        known = self._vouched[workload]
        if isinstance(known, NoResult):
            raise known
        return known

    def _job(self, cell: Cell, block: int, vouching: Vouching, earlier: Record | None) -> Job:
        run, settings = self.plan.run, self.plan.run.settings
        return {
            "engine": cell.engine,
            "workload": cell.workload,
            "reference_folder": str(self.store.evidence_folder(vouching.reference).absolute()),
            "reference_cell": vouching.reference.key,
            "reference_steps": vouching.steps,
            "reference_drills": list(vouching.drills),
            "warmups": settings.jit_warmups if self.plan.interpreters[cell.interpreter].warms_up else settings.warmups,
            "values": settings.values,
            "value_seconds": settings.value_seconds,
            "offset_steps": random.Random(f"{run.seed} {block}").randrange(MOST_OFFSET_STEPS + 1),
            "stretch_steps": earlier.stretch_steps if earlier else 0,
            "steps_per_value": earlier.steps_per_value if earlier else 0,
        }


def lock_of(engine: str) -> str:
    """The lock file of an engine's environment. Only peers have environments of their own."""
    return engines.load(engine).environment


def _is_last(record: Record) -> bool:
    """Whether the cell is not measured again after this block."""
    return record.status != "measured" or record.worker_seconds > REPEAT_SECONDS


def _is_final(record: Record) -> bool:
    """Whether a worker ran for it. If not, vouching failed, or its interpreter, environment or data was missing."""
    return record.status != "skipped" and (record.status == "measured" or record.worker_seconds > 0.0)


def _merge(added: Any, block: int, suite_file: Path) -> None:
    """Add one process's pyperf benchmark to its cell's suite file.

    Raises ValueError if pyperf refuses to combine them, for example after a change of the host's name.
    """
    import pyperf  # most commands read no times

    added.update_metadata({BLOCK: block})
    earlier = []
    # An unreadable suite starts anew, because the records hold its times. pyperf raises errors of many types for one.
    with contextlib.suppress(Exception):
        earlier = list(read_times(read_bounded(suite_file) or b"").get_runs())
    # A block whose record was lost is measured again and must not count twice.
    others = [run for run in earlier if run.get_metadata().get(BLOCK) != block]
    with tempfile.TemporaryDirectory(prefix="zoomgrad-") as folder:
        draft = Path(folder) / "suite.json"
        pyperf.Benchmark([*others, *added.get_runs()]).dump(str(draft), replace=True)
        suite_file.parent.mkdir(exist_ok=True)  # git does not keep empty folders
        write_atomically(suite_file, draft.read_text(encoding="utf-8"))
