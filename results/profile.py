"""The schema of a profile: where the time and the memory of one cell go, as one profiler saw it.

Profiles lie beside a run's records and never mix with them: a profiled step is slower than a timed one, so that nothing
here is compared with, or divided by, a record's seconds. Shares are of the profile's own samples or seconds.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter, model_validator

from results.fields import Bytes, Count, Moment, OneLine, Seconds, Share, Text
from results.record import Cell, Model

PROFILE_VERSION: Final = 1

Size = Annotated[float, Field(ge=0.0, le=2.0**60)]
"""Bytes that were sampled, and so are no whole number."""


class Profile(Model):
    """What every profiler tells; `status`, `reason` and `remedy` are a record's."""

    profile_version: Literal[1] = PROFILE_VERSION
    cell: Cell
    status: Literal["measured", "skipped", "failed", "timed-out"]
    reason: Text = ""
    remedy: Text = ""
    started_at: Moment
    worker_seconds: Seconds = 0.0
    tool: OneLine = ""
    """Name and version of what looked."""
    steps: Count = 0
    """Steps of training while it looked."""
    seconds: Seconds = 0.0
    """How long it looked."""
    preparations: Count = 0
    """How often the engine was prepared meanwhile: Scalene and perf see what compiles do so half of the time."""

    @model_validator(mode="after")
    def _a_reason_where_there_is_no_profile(self) -> Profile:
        if self.status != "measured" and not self.reason:
            raise ValueError(f"a {self.status} profile needs a reason")
        return self


class Line(Model):
    """A line of source, with its shares of the CPU time and what it allocates."""

    file: OneLine
    """Relative to the project, with `/`."""
    line: Count
    source: OneLine
    python: Share
    native: Share
    """In C that the line called, a garbage collection on its way included."""
    system: Share
    allocated_bytes: Size = 0.0
    """In all, however soon it was freed."""
    peak_bytes: Size = 0.0
    copied_bytes_per_second: Size = 0.0

    @property
    def cpu(self) -> float:
        return self.python + self.native + self.system


class LineProfile(Profile):
    """Scalene's: CPU and memory by line of source."""

    profiler: Literal["scalene"] = "scalene"
    python: Share = 0.0
    native: Share = 0.0
    system: Share = 0.0
    peak_bytes: Size = 0.0
    lines: tuple[Line, ...] = ()
    """Every line with a sample of either kind, in the order of files and lines."""


class Symbol(Model):
    """A function of the interpreter, the compiled object or the kernel, and the samples that ended in it."""

    name: OneLine
    object: OneLine
    """The library or program it lies in, without its folder."""
    group: OneLine
    share: Share


class SymbolProfile(Profile):
    """perf's: samples by symbol, and by group of symbols."""

    profiler: Literal["perf"] = "perf"
    samples: Count = 0
    groups: dict[OneLine, Share] = Field(default_factory=dict)
    """Group -> share; they add up to 1."""
    symbols: tuple[Symbol, ...] = ()
    """The most frequent, most frequent first."""


class Generation(Model):
    """Collections of one generation of a garbage collector."""

    name: OneLine
    collections: Count
    seconds: Seconds
    collected: Count = 0
    """Objects found unreachable; 0 where the interpreter does not count them."""


class CollectorProfile(Profile):
    """The interpreter's own account: its garbage collections, and its blocks of memory."""

    profiler: Literal["collector"] = "collector"
    share: Share = 0.0
    """Of the wall time of all steps."""
    generations: tuple[Generation, ...] = ()
    blocks_left: Annotated[float, Field(ge=-(2.0**53), le=2.0**53)] | None = None
    """Blocks of memory that a step leaves to the collector: with it switched off they stay. None where not counted."""
    peak_blocks: Count | None = None
    """Most blocks seen at the start of a collection, beyond those before the first step."""


class JitProfile(Profile):
    """PyPy's own account of its just-in-time compiler, and of its start: shares are of the wall time of all steps."""

    profiler: Literal["jit"] = "jit"
    tracing: Share = 0.0
    """Recording what the interpreter does."""
    backend: Share = 0.0
    """Turning traces into machine code, their optimisation included."""
    loops: Count = 0
    bridges: Count = 0
    operations: Count = 0
    """That were recorded, in all traces."""
    machine_code_bytes: Bytes = 0
    aborts: dict[OneLine, Count] = Field(default_factory=dict)
    """Reason -> traces that were given up."""
    first_step_seconds: Seconds = 0.0
    last_step_seconds: Seconds = 0.0
    """What a step took at the end: the median of the last tenth."""


PARTS: Final = ("build", "forward", "order", "backward", "update", "free", "collector", "rest")
"""Of a step, in the order in which they happen; see AnatomyProfile."""
ROUNDING: Final = 1e-6
"""Relative error of a sum of parts."""


class AnatomyProfile(Profile):
    """Where the time of a step goes, by the stages of an interpreted engine's trainer.

    `build` makes the graph, `forward` computes its data, `order` sorts it, `backward` computes gradients, `update` is
    the batch's share of a step, `free` drops the graph, `collector` is the garbage collector's pauses, which are in
    no other part, and `rest` is rows, checks and the loop. An engine that builds a graph for each step computes while
    it builds: its `forward` is what the same model and loss take over bare numbers, and `build` is the remainder.
    """

    profiler: Literal["anatomy"] = "anatomy"
    parts: dict[OneLine, Seconds] = Field(default_factory=dict)
    """Seconds of a step by part, every one of PARTS; they add up to `step_seconds`."""
    pauses: dict[OneLine, Seconds] = Field(default_factory=dict)
    """The collector's seconds of a step by the part that they interrupted. `build` has those of `forward` too."""
    step_seconds: Seconds = 0.0
    """Of a step whose stages are timed."""
    plain_step_seconds: Seconds = 0.0
    """Of a step in the same process, warmed up, before anything was wrapped."""
    preparation_seconds: Seconds = 0.0
    """What an engine does once: `replay` builds and orders its graph."""
    forward_alone_seconds: Seconds | None = None
    """What bare numbers took. More than `forward` where it exceeded all of the engine's building. None for `replay`."""

    @property
    def overhead(self) -> float:
        """What measuring adds to a step, as a share of it; negative where noise is larger."""
        return self.step_seconds / self.plain_step_seconds - 1 if self.plain_step_seconds else float("nan")

    def part(self, *names: str) -> float:
        """Share of the step."""
        return sum(self.parts[name] for name in names) / self.step_seconds

    @model_validator(mode="after")
    def _parts_add_up(self) -> AnatomyProfile:
        if self.status != "measured":
            return self
        if set(self.parts) != set(PARTS):
            raise ValueError(f"parts must be {', '.join(PARTS)}, not {', '.join(self.parts) or 'none'}")
        total = sum(self.parts.values())
        if not self.step_seconds or abs(total - self.step_seconds) > ROUNDING * self.step_seconds:
            raise ValueError(f"parts add up to {total:g} s of a step of {self.step_seconds:g} s")
        return self


class MemoryPoint(Model):
    """How much memory a process had at a moment."""

    seconds: Seconds
    """Since training began."""
    resident_bytes: Bytes


class MemoryProfile(Profile):
    """Resident memory while an engine trains, from after its preparation on."""

    profiler: Literal["memory"] = "memory"
    warm_up_seconds: Seconds = 0.0
    """The first step, or the first quarter where that is longer: until then memory grows whatever comes later."""
    points: tuple[MemoryPoint, ...] = ()
    """In order of time: the lowest and the highest of each interval, so that teeth stay; the first and the last."""

    @property
    def peak_bytes(self) -> int:
        return max((point.resident_bytes for point in self.points), default=0)

    def floor_bytes(self, third: int) -> int | None:
        """Least memory in a third of the time after the warm-up, 0 for the first; None where no point fell in it."""
        if not self.points:
            return None
        start, end = self.warm_up_seconds, self.points[-1].seconds
        low, high = (start + (end - start) * part / 3 for part in (third, third + 1))
        return min((one.resident_bytes for one in self.points if low <= one.seconds <= high), default=None)


class Pass(Model):
    """A part of a compiler's work."""

    name: OneLine
    share: Share


class CompilerProfile(Profile):
    """A C compiler's own account of one preparation: `seconds` is what it says that it took, over all its processes."""

    profiler: Literal["compiler"] = "compiler"
    flags: tuple[OneLine, ...] = ()
    units: Count = 0
    """Translation units."""
    functions: Count = 0
    source_bytes: Bytes = 0
    passes: tuple[Pass, ...] = ()
    """Largest first; what they leave is the rest."""
    fusable_forward: Count | None = None
    """Sums of a step's forward pass with a product among their operands; None in an older profile."""
    fusable_backward: Count | None = None
    fusable_forward_alone: Count | None = None
    """Those of them whose product nothing else reads or keeps."""
    fusable_backward_alone: Count | None = None
    fused_instructions: Count | None = None
    """Fused multiply-adds in all objects; None where nobody counted. In a loop one of them does many operations."""
    fused_reason: Text = ""
    """Why nobody counted."""


class InstructionsProfile(Profile):
    """Instructions of a compiled step: no noise of the machine moves them. `steps` are those that were counted."""

    profiler: Literal["instructions"] = "instructions"
    step_instructions: Annotated[float, Field(ge=0.0, le=2.0**53)] = 0.0
    """Of the compiled code and what it calls, on average, with its share of the update. The processor's own counter
    knows no functions: its figure has Python's part in it, as `tool` tells."""
    target: OneLine = ""
    """The machine that the C was compiled for, where it was not this one: callgrind knows no AVX-512."""
    compiler: OneLine = ""
    """Name and version."""
    flags: tuple[OneLine, ...] = ()


COMPARABLE: Final = ("tool", "target", "compiler", "flags", "steps")
"""Fields that must be the same for two counts of instructions to be compared: a change of any changes the count."""

AnyProfile = Annotated[
    AnatomyProfile
    | MemoryProfile
    | LineProfile
    | SymbolProfile
    | CollectorProfile
    | JitProfile
    | CompilerProfile
    | InstructionsProfile,
    Field(discriminator="profiler"),
]
PROFILE: Final[TypeAdapter[AnyProfile]] = TypeAdapter(AnyProfile)
