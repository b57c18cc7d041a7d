"""The schema of a run: plain, immutable records between the harness that measures and the reports that read.

A figure is recorded by adding one field to `Record`; the tables derive their columns from the fields.

A record outlives the code that wrote it, so older records stay readable. A field that is added later has a default that
says "unknown" or "none", or a validator that converts what older releases wrote. A field is never renamed or given
another unit without raising `SCHEMA_VERSION`. tests/results/test_previous_release.py reads runs of earlier releases.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from results.fields import (
    Blocks,
    Bytes,
    CellKey,
    Count,
    Limit,
    Moment,
    Name,
    OneLine,
    PaceSeconds,
    Seconds,
    Share,
    StepSeconds,
    Text,
)

SCHEMA_VERSION: Final = 1

BASELINE: Final = "baseline"
"""The engine that speedups are over."""

Status = Literal["measured", "skipped", "failed", "timed-out"]


class Model(BaseModel):
    """Immutable, strict about unknown fields, and exact about floats: all survive a round trip.

    NaN and infinity are refused, except by the fields that say so.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants")


AnyFloat = Annotated[float, Field(allow_inf_nan=True)]


class Cell(Model):
    """One point of the matrix. It prints as its key, `engine/interpreter/workload`."""

    engine: Name
    interpreter: Name
    workload: Name

    @property
    def key(self) -> str:
        return f"{self.engine}/{self.interpreter}/{self.workload}"

    def __str__(self) -> str:
        return self.key


class Proof(Model):
    """The gate of correctness: losses, gradients and parameters beside those of the cell that vouches for them."""

    reference: CellKey
    """Key of that cell."""
    steps: Count
    """Of the longest training that was compared. In older runs: a few steps before anything was timed."""
    stretches: Count = 0
    """Passes of the timed stretch that were compared, warm-ups included. 0 in older runs."""
    seconds: Seconds = 0.0
    """That the worker spent on it."""
    identical: bool
    """Whether every double is the same (NaN equals NaN, the sign of zero is free)."""
    worst_error: Annotated[AnyFloat, Field(ge=0.0)]
    """Largest |x - reference| / max(1, |reference|); infinite where only one of the two is finite."""


class Voucher(Model):
    """A cell that vouches for others, and who vouches for it."""

    cell: Cell
    checked_by: tuple[CellKey, ...] = ()
    """Keys of the cells that its losses, gradients and parameters were compared with, and equal."""
    drills: tuple[Name, ...] = ()
    """Short trainings that it went through."""
    steps: Count
    """Of the longest stretch that it vouches for."""
    worker_seconds: Seconds = 0.0


class PassedOver(Model):
    """An engine that might have vouched for others, and why it did not."""

    engine: Name
    status: Status
    reason: Text
    remedy: Text = ""


class Vouching(Model):
    """Who vouches for the engines of a workload, the most trusted first."""

    workload: Name
    vouchers: Annotated[tuple[Voucher, ...], Field(min_length=3)]
    passed_over: tuple[PassedOver, ...] = ()

    @model_validator(mode="after")
    def _each_checked_by_those_before(self) -> Vouching:
        before: list[str] = []
        for voucher in self.vouchers:
            key = voucher.cell.key
            if voucher.cell.workload != self.workload or key in before:
                raise ValueError(f"{key} vouches for another workload than {self.workload}, or twice")
            if not set(voucher.checked_by) <= set(before):
                raise ValueError(f"{key} was checked by a cell that does not vouch before it")
            before.append(key)
        return self

    @property
    def reference(self) -> Cell:
        """The cell that all others are compared with."""
        return self.vouchers[1].cell

    @property
    def steps(self) -> int:
        """Of the longest stretch that both engines after the first went through: what others may be compared over."""
        return min(voucher.steps for voucher in self.vouchers[1:])

    @property
    def drills(self) -> tuple[str, ...]:
        """The drills that both went through."""
        return tuple(name for name in self.vouchers[1].drills if name in self.vouchers[2].drills)


class LossPoint(Model):
    """A point of a loss curve."""

    step: Count
    loss: AnyFloat


class Record(Model):
    """The result of a cell in a block, or the reason why there is none."""

    schema_version: Literal[1] = SCHEMA_VERSION
    cell: Cell
    block: Blocks
    status: Status
    reason: Text = ""
    """Why there is no result; empty where there is one."""
    remedy: Text = ""
    """What the reader can do about it: a command, where one exists."""
    limit: Literal["", "time", "memory", "output", "processes"] = ""
    """What the worker took too much of, where it was ended for that."""
    started_at: Moment
    worker_seconds: Seconds = 0.0
    """Wall time of the whole worker, its start included: what the next run's estimate is made from."""
    other_load: Annotated[float, Field(ge=0.0, le=1e6)] = 0.0
    """Processors that others kept busy while the worker ran, on average, stolen time included: 0 on a quiet machine."""

    phases: dict[OneLine, Seconds] = {}
    """Compile time in seconds by phase; empty for an engine that compiles nothing."""
    warmup_step_seconds: tuple[StepSeconds, ...] = ()
    """Seconds a step of each warm-up value, in order: the start of the run sequence."""
    step_seconds: tuple[StepSeconds, ...] = ()
    """Seconds a step of each timed value, in order."""
    pace_seconds: tuple[PaceSeconds, ...] = ()
    """Seconds of a fixed piece of work around each of them: how fast the machine was just then. None in older runs."""
    stretch_steps: Count = 0
    """A value trains so many steps from the start, then the same again, until its time is full. 0 in older runs: it
    went on where the one before had ended."""
    steps_per_value: Count = 0
    """Steps of a value, all its stretches together."""
    peak_bytes: Bytes = 0
    """Largest resident set of the worker process."""
    peak_compiler_bytes: Bytes = 0
    """Largest resident set of any compiler that the worker ran; 0 where it ran none."""
    tape_rows: Count = 0
    """Rows of the tape that was compiled: the size of the graph."""
    source_bytes: Bytes = 0
    """Generated source text."""
    object_bytes: Bytes = 0
    """The shared object that came of it."""
    translation_units: Count = 0
    """Files of C that were compiled apart; 0 where no C was compiled, or in an older run."""
    parallel_compilers: Count = 0
    """How many of them were compiled at once: no more than there are cores. 0 where they did not run, or not told."""
    vector_doubles: Count = 0
    """Doubles of the widest vector that the C names; 1 for scalar code, in which a compiler may find vectors itself."""
    compiler: OneLine = ""
    """Name and version; empty where no C was compiled."""
    compiler_flags: tuple[OneLine, ...] = ()
    looped_share: Share = 0.0
    """Of all primitives the share that runs in recovered loops; 0 for an engine that recovers none."""
    losses: tuple[LossPoint, ...] = ()
    """The loss curve of the timed training, thinned, with its first and last step."""
    parameters_sha256: OneLine = ""
    """Digest of the parameters after the timed stretch, over doubles with the sign of zero dropped."""
    proof: Proof | None = None

    @model_validator(mode="after")
    def _a_result_or_a_reason(self) -> Record:
        if self.status == "measured" and not self.step_seconds:
            raise ValueError("a measured record needs step_seconds")
        if self.status != "measured" and self.step_seconds:
            raise ValueError(f"a {self.status} record must not carry step_seconds: a wrong result has no speed")
        if self.pace_seconds and len(self.pace_seconds) != len(self.step_seconds):
            raise ValueError("pace_seconds needs one figure for each of step_seconds, or none at all")
        if self.status != "measured" and not self.reason:
            raise ValueError(f"a {self.status} record needs a reason")
        return self


class EngineFacts(Model):
    """What a report says of an engine without importing it."""

    idea: OneLine
    builds_on: Name | Literal[""] = ""
    strict: bool
    error_bound: float | None = None
    native: bool | None = None
    """Whether its C is compiled for this very processor (`-march=native`); None in an older run: unknown."""


class WorkloadFacts(Model):
    """What a report says of a workload without importing it."""

    description: OneLine
    steps_per_epoch: Count
    samples_per_step: Count
    batch: Count


class InterpreterFacts(Model):
    """What a report says of an interpreter."""

    version: OneLine
    """As the interpreter prints it, on one line."""
    build: dict[OneLine, OneLine] = {}
    """Compiler, configure flags and the like."""


class Settings(Model):
    """How each worker measures: stored with the run, so that resuming it measures alike."""

    values: Blocks = 3
    """Timed values a process."""
    warmups: Blocks = 1
    """Values before them that are kept but not counted."""
    jit_warmups: Blocks = 4
    """The same under a just-in-time compiler, whose first steps run interpreted."""
    value_seconds: Limit = 0.4
    """A value takes as many steps as fill this time: long enough to hold garbage collections, not to dodge them."""
    timeout_seconds: Limit = 120.0
    """A worker that takes longer is ended, and its record says so."""
    memory_bytes: Annotated[Bytes, Field(gt=0)] = 16 << 30
    """The same for memory: of all its processes where a cgroup counts it, else of each one's address space."""
    output_bytes: Annotated[Bytes, Field(gt=0)] = 16 << 20
    """The same for what it prints."""
    most_processes: Count = 512
    """The same for how many of its processes there are at once: a compiler has two, and each core may have one."""
    vouch_seconds: Limit = 3.0
    """About how long an engine trains that vouches for the others: its steps are the most that a timed stretch has."""
    proof_steps: Count | None = None
    """Of older runs: steps that were compared before anything was timed. None: all that is timed is compared."""


class Run(Model):
    """One invocation of the harness: its plan, its machine and its settings."""

    schema_version: Literal[1] = SCHEMA_VERSION
    id: Name
    created_at: Moment
    command: tuple[Text, ...]
    preset: Name
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)]
    """Seed of the shuffled order of cells within each block."""
    blocks: Blocks
    """Of every cell; those that `precision` wanted more of have more."""
    precision: Share = 0.0
    """Relative half-width of a speedup's interval from which on a cell gets no further block; 0: none asked for."""
    budget_seconds: Seconds = 0.0
    """What the whole run was to fit into; 0: no limit."""
    left_out: tuple[Cell, ...] = ()
    """Cells that did not fit."""
    settings: Settings = Settings()
    cells: tuple[Cell, ...]
    reference_interpreter: Name
    """The reference CPython: hosts the reference engine, and is the base of the absolute speedup."""
    engines: dict[Name, EngineFacts]
    """In the ladder's order."""
    workloads: dict[Name, WorkloadFacts]
    interpreters: dict[Name, InterpreterFacts]
    machine: dict[OneLine, OneLine]
    commit: OneLine = ""

    @model_validator(mode="after")
    def _every_cell_once(self) -> Run:
        if len(set(self.cells)) < len(self.cells):
            raise ValueError("a plan has each of its cells once")
        return self
