"""Plan -> records: every cell once per block in shuffled order, one worker at a time.

Each block is shuffled anew, so that drift in the machine's speed affects all cells equally. A record is on disk before
the next cell's worker starts. A cell without a result is not tried again in later blocks, and never stops the others.
"""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from zoomgrad import engines
from zoomgrad.engines.api import KEPT_FROM_SECONDS
from zoomgrad.engines.discovery import is_peer
from zoomgrad.harness.containment import Limits
from zoomgrad.harness.machine.environments import NoEnvironment
from zoomgrad.harness.machine.interpreters import Interpreter
from zoomgrad.harness.machine.peers import WORKER, NoPeer, PeerEnvironments
from zoomgrad.harness.plan.planning import Plan
from zoomgrad.harness.run.isolate import MOST_PADDING, Draw, Isolate, Task, WorkerResult
from zoomgrad.harness.run.replies import REMEDY, first_error, read_bounded, read_times
from zoomgrad.harness.run.vouchers import NoVouching, Vouchers
from zoomgrad.harness.worker.job import Job, ReadyJob, VouchJob
from zoomgrad.results import units
from zoomgrad.results.files import write_atomically
from zoomgrad.results.precision import MOST_BLOCKS, imprecise, looks
from zoomgrad.results.record import Cell, Record, Vouching
from zoomgrad.results.samples import compile_seconds
from zoomgrad.results.store import Store

NO_ENVIRONMENT_REMEDY = "Check the network, then resume the run."

MOST_OFFSET_STEPS = 4
"""About one period of the garbage collector, in steps of the workloads that have one. More would waste slow steps."""

BLOCK = "zoomgrad_block"
"""Metadata key that identifies a block in its cell's pyperf suite."""

Environment = Callable[[Interpreter], Path]
"""Make or find a worker environment, and return the path of its Python. Raises NoEnvironment."""


class Observer(Protocol):
    """Receives the events of a schedule. The command line displays them."""

    def started(self, cell: Cell, block: int) -> None: ...
    def finished(self, record: Record, seconds_left: float) -> None: ...
    def extended(self, cells: int) -> None:
        """One more block with this number of cells was added."""

    def abandoned(self) -> None:
        """A further block of a cell without a result is skipped."""


@dataclass
class _Progress:
    """Estimated seconds of work done and left, and the actual seconds taken, whose ratio corrects the estimate."""

    left: float
    done: float = 0.0
    taken: float = 0.0

    def seconds_left(self, estimate: float, seconds: float) -> float:
        self.left -= estimate
        self.done += estimate
        self.taken += seconds
        # The first cells say little about the rest, so the plan's estimate counts like one minute of finished work.
        return max(0.0, self.left * (self.taken + 60.0) / (self.done + 60.0))


@dataclass
class Schedule:
    """Carries out a plan: runs its workers with `isolate` and writes their records to `store`."""

    plan: Plan
    store: Store
    isolate: Isolate
    environment: Environment
    observer: Observer
    peers: PeerEnvironments = field(default_factory=PeerEnvironments)
    _vouched: dict[str, Vouching | NoVouching] = field(default_factory=dict)
    _given_up: set[Cell] = field(default_factory=set)
    """Cells that gave no result while this schedule ran."""
    _vouching_seconds: float = 0.0
    """Total time of its vouching workers."""

    def execute(self) -> None:
        """Measure all cells and blocks missing from the store, then add blocks until the run's precision is reached."""
        self._measure_all(list(self.plan.order()))
        run = self.plan.run
        while run.precision:
            records = self.store.records()
            cells = imprecise(records, run.precision, looks(run))
            if not cells or _next_block(records) >= MOST_BLOCKS or not self.add_block(cells):
                break

    def measure(self, points: Sequence[tuple[int, Cell]]) -> None:
        """Measure these (block, cell) unless they are in the store. A host of a fleet measures a part of the run."""
        self._measure_all(points)

    def add_block(self, cells: Sequence[Cell]) -> bool:
        """Measure one more block of some cells. Return whether anything was measured.

        Nothing is measured if the block does not fit into the run's budget, or if all these cells were given up.
        """
        run, records = self.plan.run, self.store.records()
        block = _next_block(records)
        vouchers = [voucher for vouching in self.store.vouchings() for voucher in vouching.vouchers]
        spent = sum(record.worker_seconds for record in records) + sum(one.worker_seconds for one in vouchers)
        needed = sum(self.plan.block_seconds(cell, block) for cell in cells)
        if run.budget_seconds and spent + needed > run.budget_seconds:
            return False
        self.observer.extended(len(cells))
        order = random.Random(f"{run.seed} {block}").sample(list(cells), len(cells))
        return bool(self._measure_all([(block, cell) for cell in order]))

    def clean_up(self) -> None:
        """Remove files that only further blocks would need: shared objects and evidence, megabytes each."""
        self.store.remove_objects()
        for vouching in self.store.vouchings():
            for voucher in vouching.vouchers:
                self.store.remove(self.store.evidence_folder(voucher.cell))

    def _measure_all(self, planned: Sequence[tuple[int, Cell]]) -> int:
        """Measure the planned points that are not on disk. Return the number of records written.

        A resumed run tries a cell again if no worker ran for it, because what was missing may now be available.
        """
        records = [record for record in self.store.records() if _is_final(record)]
        finished = {(record.block, record.cell) for record in records}
        given_up = self._given_up | {record.cell for record in records if record.status != "measured"}
        measured = {record.cell: record for record in records if record.steps_per_value}
        todo = [point for point in planned if point not in finished]
        vouching = {cell.workload for _, cell in todo} - self._vouched.keys()
        estimates = {name: self.plan.vouching_seconds(name) for name in vouching}
        progress = _Progress(
            sum(self.plan.block_seconds(cell, block) for block, cell in todo) + sum(estimates.values())
        )
        written = 0
        for block, cell in todo:
            estimate = self.plan.block_seconds(cell, block)
            if cell in given_up:
                progress.left -= estimate
                self.observer.abandoned()
                continue
            # Vouching for a workload happens before its first cell.
            estimate += estimates.pop(cell.workload, 0.0)
            self.observer.started(cell, block)
            vouched_before = self._vouching_seconds
            record = self._measure(cell, block, measured.get(cell))
            if record.status == "measured" and block < self.plan.run.settings.ready_blocks:
                record = self._with_ready_time(record)
            self.store.write(record)
            written += 1
            if record.status == "measured":
                measured[cell] = record
            else:
                given_up.add(cell)
                self._given_up.add(cell)
            seconds = record.worker_seconds + self._vouching_seconds - vouched_before
            self.observer.finished(record, progress.seconds_left(estimate, seconds))
        return written

    def _measure(self, cell: Cell, block: int, before: Record | None) -> Record:
        """Run one worker for one cell and return its record, whatever happens. before: record of an earlier block."""
        started_at = datetime.now(UTC)

        def without_result(status: str, reason: str, remedy: str = "", seconds: float = 0.0, limit: str = "") -> Record:
            return Record.model_validate(
                {
                    "cell": cell,
                    "block": block,
                    "status": status,
                    "reason": reason,
                    "remedy": remedy,
                    "limit": limit,
                    "started_at": started_at,
                    "worker_seconds": seconds,
                }
            )

        absent = self.plan.missing.get(cell.interpreter)
        if absent:
            return without_result("skipped", absent.reason, absent.remedy)
        try:
            python = self._python(cell)
            vouching = self._vouching(cell.workload)
        except NoPeer as none:
            return without_result("skipped", str(none), none.remedy)
        except NoEnvironment as error:
            return without_result("failed", str(error), NO_ENVIRONMENT_REMEDY)
        except NoVouching as nobody:
            return without_result(nobody.status, nobody.reason, nobody.remedy, limit=nobody.limit)
        if before and before.stretch_steps > vouching.steps:
            # Blocks with different stretches are not comparable.
            reason = f"earlier blocks train {before.stretch_steps:,} steps per stretch, but {vouching.reference.key}"
            return without_result("failed", f"{reason} vouches for only {vouching.steps:,} now", "Start a new run.")

        job = self._job(cell, block, vouching, before)
        answer = self.isolate("measure", python, job, limits=Limits.of(self.plan.run.settings), draw=self._draw(block))
        reply = answer.reply
        if reply["status"] != "measured" or answer.pyperf is None:
            return without_result(
                reply["status"],
                reply["reason"],
                reply.get("remedy", ""),
                answer.seconds,
                reply.get("limit", ""),
            )
        try:
            timed = _merge(answer.pyperf, block, self.store.pyperf_file(cell))
        except ValueError as error:
            reason = f"pyperf refuses to merge this block with the others: {error}"
            return without_result("failed", reason, "Start a new run.", answer.seconds)
        try:
            return Record.model_validate(
                {
                    **reply,
                    "losses": [{"step": step, "loss": loss} for step, loss in reply["losses"]],
                    "cell": cell,
                    "block": block,
                    "started_at": started_at,
                    "worker_seconds": answer.seconds,
                    "other_load": answer.other_load,
                    "step_seconds": timed.get_values(),
                    "warmup_step_seconds": [seconds for run in timed.get_runs() for _, seconds in run.warmups],
                }
            )
        except ValidationError as error:
            reason = f"{cell.engine}: its figures are out of range for a record: {first_error(error)}"
            return without_result("failed", reason, REMEDY, answer.seconds)

    def _python(self, cell: Cell) -> Path:
        """Python of the cell's environment. Raises NoEnvironment and NoPeer."""
        interpreter, lock = self.plan.interpreters[cell.interpreter], lock_of(cell.engine)
        return self.environment(interpreter) if lock == WORKER else self.peers.python(interpreter, lock)

    def _with_ready_time(self, record: Record) -> Record:
        """The record with its ready time, or with the reason why there is none. Runs one more worker."""
        compiled = compile_seconds(record)
        if compiled is None or compiled > KEPT_FROM_SECONDS:
            reason = f"it compiles for more than {units.duration(KEPT_FROM_SECONDS)}, which a run does only once"
            return record.model_copy(update={"ready_absence": reason})
        cell, settings = record.cell, self.plan.run.settings
        try:
            python = self._python(cell)
        except (NoEnvironment, NoPeer) as error:  # it was there a moment ago
            return record.model_copy(update={"ready_absence": str(error)})
        job: ReadyJob = {"engine": cell.engine, "workload": cell.workload, "reply_file": ""}
        answer = self.isolate("ready", python, job, limits=Limits.of(settings), draw=self._draw(record.block))
        found = dict(answer.reply)
        if found.pop("status") != "measured":
            found = {"ready_absence": found["reason"]}
        seconds = record.worker_seconds + answer.seconds
        load = max(record.other_load, answer.other_load)
        return Record.model_validate({**dict(record), **found, "worker_seconds": seconds, "other_load": load})

    def _vouching(self, workload: str) -> Vouching:
        """The cells that vouch for the workload's engines, determined once. Raises NoVouching and NoEnvironment."""
        if workload not in self._vouched:
            run = self.plan.run
            vouchers = Vouchers(
                isolate=self._isolate_for_vouching,
                store=self.store,
                interpreter=run.reference_interpreter,
                python=lambda: self.environment(self.plan.interpreters[run.reference_interpreter]),
                seconds=run.settings.vouch_seconds,
                limits=Limits.of(run.settings),
                values=run.settings.values,
            )
            stretches = [record.stretch_steps for record in self.store.records() if record.cell.workload == workload]
            try:
                self._vouched[workload] = vouchers.vouching(workload, max(stretches, default=0))
            except NoVouching as nobody:
                self._vouched[workload] = nobody
        found = self._vouched[workload]
        if isinstance(found, NoVouching):
            raise found
        return found

    def _isolate_for_vouching(
        self, task: Task, python: Path, job: Job | VouchJob | ReadyJob, *, limits: Limits, draw: Draw
    ) -> WorkerResult:
        answer = self.isolate(task, python, job, limits=limits, draw=draw)
        self._vouching_seconds += answer.seconds
        return answer

    def _draw(self, block: int) -> Draw:
        return Draw(block + 1, random.Random(f"{self.plan.run.seed} {block} padding").randrange(MOST_PADDING))

    def _job(self, cell: Cell, block: int, vouching: Vouching, before: Record | None) -> Job:
        settings = self.plan.run.settings
        interpreter = self.plan.interpreters[cell.interpreter]
        return {
            "engine": cell.engine,
            "workload": cell.workload,
            "interpreter": cell.interpreter,
            "reference_folder": str(self.store.evidence_folder(vouching.reference).absolute()),
            "reference_cell": vouching.reference.key,
            "reference_steps": vouching.steps,
            "reference_drills": list(vouching.drills),
            "reply_file": "",
            "warmups": settings.jit_warmups if interpreter.warms_up else settings.warmups,
            "values": settings.values,
            "value_seconds": settings.value_seconds,
            "offset_steps": random.Random(f"{self.plan.run.seed} {block}").randrange(MOST_OFFSET_STEPS + 1),
            "objects": str(self.store.objects_folder(cell).absolute()),
            "stretch_steps": before.stretch_steps if before else 0,
            "steps_per_value": before.steps_per_value if before else 0,
        }


def lock_of(engine: str) -> str:
    """The lock file of an engine's environment. Only peers have environments of their own."""
    found = engines.load(engine)
    return str(getattr(found, "environment", WORKER)) if is_peer(found) else WORKER


def _next_block(records: Sequence[Record]) -> int:
    return max((record.block for record in records), default=-1) + 1


def _is_final(record: Record) -> bool:
    """Whether a worker ran for it. If not, vouching failed, or its interpreter, environment or data was missing."""
    return record.status != "skipped" and (record.status == "measured" or record.worker_seconds > 0.0)


def _merge(pyperf_json: bytes, block: int, suite_file: Path) -> Any:
    """Add one process's pyperf result to its cell's suite file, and return that process's benchmark.

    Raises ValueError if pyperf refuses to combine them, for example after a change of the host's name.
    """
    import pyperf  # most commands read no times

    added = read_times(pyperf_json)
    added.update_metadata({BLOCK: block})
    # A block whose record was lost is measured again and must not count twice.
    others = [run for run in _runs(suite_file) if run.get_metadata().get(BLOCK) != block]
    with tempfile.TemporaryDirectory(prefix="zoomgrad-") as folder:
        draft = Path(folder) / "suite.json"
        pyperf.Benchmark([*others, *added.get_runs()]).dump(str(draft), replace=True)
        suite_file.parent.mkdir(exist_ok=True)  # git does not keep empty folders
        write_atomically(suite_file, draft.read_text(encoding="utf-8"))
    return added


def _runs(suite_file: Path) -> list[Any]:
    """Runs in the suite so far. An unreadable suite starts anew, because the records hold its times."""
    with contextlib.suppress(Exception):  # pyperf raises errors of many types for a damaged file
        return list(read_times(read_bounded(suite_file) or b"").get_runs())
    return []
