"""Schema of a run: plain, immutable records that the harness writes and the reports read.

A change of names or units requires a new `SCHEMA_VERSION`, and the committed baseline runs are converted with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from zoomgrad.results.fields import (
    MOST_CELLS,
    MOST_ERROR,
    MOST_NAMES,
    MOST_VALUES,
    Blocks,
    Bytes,
    CellKey,
    Count,
    Elapsed,
    Limit,
    Moment,
    Name,
    OneLine,
    PaceSeconds,
    Share,
    StepSeconds,
    Text,
    Values,
)

SCHEMA_VERSION: Final = 3

BASELINE: Final = "baseline"
"""The engine that speedups are relative to."""

Status = Literal["measured", "skipped", "failed", "timed-out"]


class Model(BaseModel):
    """Immutable model that refuses unknown fields and preserves floats exactly in a round trip.

    It refuses NaN and infinity, except in a field that permits them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants")


_FEW = Field(max_length=MOST_VALUES)


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
    """Correctness check: losses, gradients and parameters compared with those of a vouching cell."""

    reference: CellKey
    """Key of the vouching cell."""
    steps: Annotated[Count, Field(ge=1)]
    """Length of the longest training that was compared."""
    stretches: Count = 0
    """Number of compared passes over the timed stretch, including warm-ups."""
    seconds: Elapsed = 0.0
    """Time that the worker spent on the comparison."""
    identical: bool
    """Whether all doubles are equal (NaN equals NaN, and the sign of zero does not count)."""
    worst_error: Annotated[float, Field(ge=0.0, allow_inf_nan=True)]
    """Largest |x - reference| / max(1, |reference|); infinite if only one of the two is finite."""

    @model_validator(mode="after")
    def _identical_without_an_error(self) -> Proof:
        if self.identical != (self.worst_error == 0.0):
            raise ValueError("worst_error must be 0 for identical results, and above 0 for others")
        return self


class Voucher(Model):
    """A cell that vouches for others. Its losses, gradients and parameters equal those of the vouchers before it."""

    cell: Cell
    drills: tuple[Name, ...] = ()
    """Short trainings that it completed."""
    steps: Count
    """Length of the longest stretch that it vouches for."""
    worker_seconds: Elapsed = 0.0


class PassedOver(Model):
    """A candidate that could not vouch for others, and the reason."""

    engine: Name
    status: Status
    reason: Text
    remedy: Text = ""


class Vouching(Model):
    """The cells that vouch for a workload's engines, most trusted first."""

    workload: Name
    vouchers: Annotated[tuple[Voucher, ...], Field(min_length=3)]
    passed_over: tuple[PassedOver, ...] = ()

    @model_validator(mode="after")
    def _different_cells_of_the_workload(self) -> Vouching:
        if {voucher.cell.workload for voucher in self.vouchers} != {self.workload}:
            raise ValueError(f"a cell vouches for another workload than {self.workload}")
        if len({voucher.cell for voucher in self.vouchers}) < len(self.vouchers):
            raise ValueError("a cell vouches twice")
        return self

    @property
    def reference(self) -> Cell:
        """The cell that all engines other than the vouchers are compared with."""
        return self.vouchers[1].cell

    @property
    def steps(self) -> int:
        """Longest stretch that the second and third voucher both completed, and so the longest for comparing others."""
        return min(voucher.steps for voucher in self.vouchers[1:])

    @property
    def drills(self) -> tuple[str, ...]:
        """The drills that the second and third voucher both completed."""
        return tuple(name for name in self.vouchers[1].drills if name in self.vouchers[2].drills)


class Figures(Model):
    """What a worker reports of a measured cell. A field is a figure: its name, unit, bounds and meaning.

    To record another figure, add a field here and the line that measures it, in `harness.worker.measure` or in an
    engine's `sizes`. The worker's reply is validated by this class; the CSV export and the report's table of figures
    take every number, and the last word of the name is the unit. 0 and an empty value mean that the figure does not
    apply.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    phases: Annotated[dict[OneLine, Elapsed], _FEW] = {}
    """Compile time in seconds by phase; empty for an engine that compiles nothing."""
    stretch_steps: Count = 0
    """Steps of a stretch. A value trains this many steps from a start and repeats that until its time is used up."""
    steps_per_value: Count = 0
    """Steps of a value, over all its stretches."""
    pace_seconds: Annotated[tuple[PaceSeconds, ...], _FEW] = ()
    """Seconds of a fixed piece of work around each timed value: the machine's speed at that moment."""
    peak_bytes: Bytes = 0
    """Largest resident set of the worker."""
    peak_compiler_bytes: Bytes = 0
    """Largest resident set of any compiler."""
    tape_rows: Count = 0
    """Rows of the compiled tape."""
    source_bytes: Bytes = 0
    """Generated source."""
    object_bytes: Bytes = 0
    """Compiled shared object."""
    translation_units: Count = 0
    """C files compiled separately."""
    parallel_compilers: Count = 0
    """C files compiled at once."""
    vector_doubles: Count = 0
    """Doubles in the widest vector."""
    threads: Count = 0
    """The most threads that divide a step, where that pays."""
    compiler: OneLine = ""
    """Name and version of the C compiler."""
    compiler_flags: Annotated[tuple[OneLine, ...], _FEW] = ()
    looped_share: Share = 0.0
    """Primitives in recovered loops."""
    proof: Proof | None = None


class Record(Figures):
    """The result of a cell in a block, or the reason for having none."""

    schema_version: Literal[3] = SCHEMA_VERSION
    cell: Cell
    block: Blocks
    status: Status
    reason: Text = ""
    """Why there is no result; empty for a result."""
    remedy: Text = ""
    """What the reader can do about it: a command, if one exists."""
    limit: Literal["", "time", "memory", "output"] = ""
    """The limit that the worker exceeded, if it was ended for that."""
    started_at: Moment
    worker_seconds: Elapsed = 0.0
    """Wall time of the worker, including its start. Budgets and the remaining-time estimate count it."""
    other_load: Annotated[float, Field(ge=0.0, le=1e6)] = 0.0
    """Average number of processors that other processes kept busy while the worker ran, including time stolen by a
    hypervisor. 0 on a quiet machine."""
    warmup_step_seconds: Annotated[tuple[StepSeconds, ...], _FEW] = ()
    """Seconds per step of each warm-up value, in order: the start of the run sequence."""
    step_seconds: Annotated[tuple[StepSeconds, ...], _FEW] = ()
    """Seconds per step of each timed value, in order, as pyperf measured them."""
    host: Name | Literal[""] = ""
    """The host of a fleet that measured it, as in the run's `hosts`; empty for the run's own machine."""

    @model_validator(mode="after")
    def _a_result_or_a_reason(self) -> Record:
        if self.status != "measured":
            if self.step_seconds:
                raise ValueError(f"a {self.status} record must not carry step_seconds: a wrong result has no speed")
            if not self.reason:
                raise ValueError(f"a {self.status} record needs a reason")
            return self
        if not self.step_seconds or len(self.pace_seconds) != len(self.step_seconds):
            raise ValueError("a measured record needs step_seconds, and a figure of pace_seconds for each")
        if self.proof is None:
            raise ValueError("a measured record needs a proof: an unproven result has no speed")
        if not self.stretch_steps:
            return self
        if self.steps_per_value % self.stretch_steps:
            raise ValueError("steps_per_value must be a multiple of stretch_steps")
        timed = len(self.step_seconds) * self.steps_per_value // self.stretch_steps
        if self.proof.steps != self.stretch_steps or self.proof.stretches < timed:
            raise ValueError(f"a proof must compare all {timed} timed stretches of {self.stretch_steps} steps")
        return self


class EngineFacts(Model):
    """Facts about an engine, so that reports need not import it."""

    idea: OneLine
    builds_on: Name | Literal[""] = ""
    strict: bool
    error_bound: Annotated[float, Field(gt=0.0, le=MOST_ERROR)] | None = None
    """Declared by an engine that is not strict."""
    peer: OneLine = ""
    """The project's file of a peer: another library, measured as context for the engines. Empty for an engine."""

    @model_validator(mode="after")
    def _strict_or_bounded(self) -> EngineFacts:
        if self.strict != (self.error_bound is None):
            raise ValueError("an engine is either strict or has an error_bound")
        return self


class WorkloadFacts(Model):
    """Facts about a workload, so that reports need not import it."""

    description: OneLine
    steps_per_epoch: Count
    samples_per_step: Count
    batch: Count


class InterpreterFacts(Model):
    """Facts about an interpreter, for reports."""

    version: OneLine
    """As the interpreter prints it, on one line."""
    build: dict[OneLine, OneLine] = {}
    """Build details, such as the compiler and configure flags."""


class Settings(Model):
    """How each worker measures. Stored with the run, so that a resumed run measures the same way."""

    values: Values = 3
    """Timed values per process."""
    warmups: Values = 1
    """Values before the timed ones, which are recorded but not counted."""
    jit_warmups: Values = 4
    """Warm-up values under a just-in-time compiler, whose first steps run interpreted."""
    value_seconds: Limit = 0.4
    """Duration of a value: as many steps as fill this time, long enough to include garbage collections."""
    timeout_seconds: Limit = 120.0
    """Time limit of a worker. A worker that exceeds this or a limit below is ended, and its record says so."""
    memory_bytes: Annotated[Bytes, Field(gt=0)] = 16 << 30
    """Memory limit of each of its processes: what it can write, used or not. Enforced on Linux."""
    output_bytes: Annotated[Bytes, Field(gt=0)] = 16 << 20
    """Limit of printed output."""
    vouch_seconds: Limit = 3.0
    """Approximate training time of a vouching engine. Its number of steps is the limit for a timed stretch."""


class HostFacts(Model):
    """A machine that measured blocks of a run."""

    identity: OneLine
    """Digest that recognises the machine within this run, and nowhere else."""
    machine: dict[OneLine, OneLine]
    blocks: tuple[Blocks, ...] = ()
    """Blocks whose records were all collected."""


class Run(Model):
    """One invocation of the harness: its plan, its machine and its settings."""

    schema_version: Literal[3] = SCHEMA_VERSION
    id: Name
    created_at: Moment
    command: tuple[Text, ...]
    preset: Name
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)]
    """Seed of the shuffled order of cells within each block."""
    blocks: Blocks
    """Planned blocks per cell. `zoomgrad check` may add more."""
    settings: Settings = Settings()
    cells: Annotated[tuple[Cell, ...], Field(max_length=MOST_CELLS)]
    reference_interpreter: Name
    """The reference CPython, which hosts the reference engine and is the base of the absolute speedup."""
    engines: dict[Name, EngineFacts]
    """In the order of `engines/table.py`."""
    workloads: dict[Name, WorkloadFacts]
    interpreters: dict[Name, InterpreterFacts]
    machine: dict[OneLine, OneLine]
    """The machine that measured; of a fleet, the host that joined last."""
    fleet: OneLine = ""
    """Kind of fleet that measured it, `tls` or `tcp`; empty if this machine did."""
    hosts: dict[Name, HostFacts] = {}
    """The fleet's machines. A block's records come from one of them."""
    commit: OneLine = ""
    """The checkout's, with `+` if files differ from it; empty for an installed copy."""
    code: OneLine = ""
    """Digest of our packages' source files and of the lock files; empty if unknown."""

    def refuse(self, record: Record, vouchings: Mapping[str, Vouching]) -> None:
        """Raise ValueError if the record does not belong to this run, or if its reference vouches for nobody.

        vouchings: by workload. Where there is none, only the reference interpreter's `tuple` vouches.
        """
        if record.cell not in self._planned:
            raise ValueError(f"{record.cell} is not a cell of this run")
        if record.host and record.host not in self.hosts:
            raise ValueError(f"{record.cell} was measured by {record.host}, which is not a host of this run")
        if not record.proof or record.host:  # a run keeps the vouchings of one host
            return
        workload = record.cell.workload
        vouchers = [voucher.cell.key for voucher in vouchings[workload].vouchers] if workload in vouchings else []
        if record.proof.reference not in (vouchers or [f"tuple/{self.reference_interpreter}/{workload}"]):
            raise ValueError(f"{record.cell} was compared with {record.proof.reference}, which vouches for nobody")

    @cached_property
    def _planned(self) -> frozenset[Cell]:
        return frozenset(self.cells)

    @model_validator(mode="after")
    def _every_cell_once(self) -> Run:
        if len(set(self.cells)) < len(self.cells):
            raise ValueError("a cell appears twice in the plan")
        for key in Cell.model_fields:
            names = {getattr(cell, key) for cell in self.cells}
            if len(names) > MOST_NAMES:
                raise ValueError(f"the cells have {len(names):,} {key}s, and a run at most {MOST_NAMES}")
        return self
