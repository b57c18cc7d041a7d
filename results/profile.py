"""Schema of a profile: where one cell's time and memory go, according to one profiler.

Profiles are stored beside a run's records and never mixed with them. A profiled step is slower than a timed one, so no
figure here is compared with, or divided by, a record's seconds. Shares refer to the profile's own samples or seconds.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter, model_validator

from zoomgrad.results.fields import Bytes, Count, Elapsed, Moment, OneLine, Seconds, Share, Text
from zoomgrad.results.record import Cell, Model

PROFILE_VERSION: Final = 1

Size = Annotated[float, Field(ge=0.0, le=2.0**60)]
"""Bytes estimated from samples, so not a whole number."""


class Profile(Model):
    """Fields of every profile. `status`, `reason` and `remedy` mean the same as in a record."""

    profile_version: Literal[1] = PROFILE_VERSION
    cell: Cell
    status: Literal["measured", "skipped", "failed", "timed-out"]
    reason: Text = ""
    remedy: Text = ""
    started_at: Moment
    worker_seconds: Elapsed = 0.0
    tool: OneLine = ""
    """Name and version of the profiler."""
    steps: Count = 0
    """Training steps while profiling."""
    seconds: Seconds = 0.0
    """Duration of profiling."""
    preparations: Count = 0
    """How often the engine was prepared while profiling. Under Scalene and perf, a compiling engine spends half of the
    time on it."""

    @model_validator(mode="after")
    def _a_reason_where_there_is_no_profile(self) -> Profile:
        if self.status != "measured" and not self.reason:
            raise ValueError(f"a {self.status} profile needs a reason")
        return self


class Line(Model):
    """A source line with its shares of CPU time and its allocations."""

    file: OneLine
    """Path relative to the project, with `/`."""
    line: Count
    source: OneLine
    python: Share
    native: Share
    """In C code that the line called, including any garbage collection."""
    system: Share
    allocated_bytes: Size = 0.0
    """Total allocated, including what was freed at once."""
    peak_bytes: Size = 0.0

    @property
    def cpu(self) -> float:
        return self.python + self.native + self.system


class LineProfile(Profile):
    """Scalene's profile: CPU time and memory by source line."""

    profiler: Literal["scalene"] = "scalene"
    python: Share = 0.0
    native: Share = 0.0
    system: Share = 0.0
    peak_bytes: Size = 0.0
    lines: tuple[Line, ...] = ()
    """Every line with a CPU or memory sample, by file and line number."""


class Symbol(Model):
    """A function of the interpreter, the compiled object or the kernel, and its share of innermost frames."""

    name: OneLine
    object: OneLine
    """File name of its library or program, without the folder."""
    group: OneLine
    share: Share


class SymbolProfile(Profile):
    """perf's profile: samples by symbol and by group of symbols."""

    profiler: Literal["perf"] = "perf"
    samples: Count = 0
    groups: dict[OneLine, Share] = Field(default_factory=dict)
    """Group -> share; the shares add up to 1."""
    symbols: tuple[Symbol, ...] = ()
    """Most frequent symbols, in descending order."""


PARTS: Final = ("build", "forward", "order", "backward", "update", "free", "collector", "rest")
"""Parts of a step in the order in which they happen; see AnatomyProfile."""
ROUNDING: Final = 1e-6
"""Tolerated relative error of the sum of parts."""


class AnatomyProfile(Profile):
    """Where the time of a step goes, by the stages of an interpreted engine's trainer.

    `build` makes the graph, `forward` computes its data, `order` sorts it, `backward` computes gradients, `update` is
    one step's share of the parameter update, `free` drops the graph, `collector` is the garbage collector's pauses,
    which no other part includes, and `rest` is rows, checks and the loop. An engine that builds a graph for each step
    computes while it builds: its `build` includes `forward`.
    """

    profiler: Literal["anatomy"] = "anatomy"
    parts: dict[OneLine, Seconds] = Field(default_factory=dict)
    """Seconds per step for each of PARTS; they add up to `step_seconds`."""
    pauses: dict[OneLine, Seconds] = Field(default_factory=dict)
    """Collector seconds per step, by the part that they interrupted."""
    step_seconds: Seconds = 0.0
    """Time of a step with timed stages."""
    plain_step_seconds: Seconds = 0.0
    """Time of a warmed-up step in the same process before any stage was wrapped."""
    early_floor_bytes: Bytes = 0
    """Least resident memory in the first third of the unwrapped training after its warm-up; 0 for too few steps."""
    late_floor_bytes: Bytes = 0
    """The same for the last third."""

    def part(self, *names: str) -> float:
        """Share of the named parts in the step."""
        return sum(self.parts[name] for name in names) / self.step_seconds

    @model_validator(mode="after")
    def _parts_add_up(self) -> AnatomyProfile:
        if self.status != "measured":
            return self
        if set(self.parts) != set(PARTS):
            raise ValueError(f"parts must be {', '.join(PARTS)}, not {', '.join(self.parts) or 'none'}")
        total = sum(self.parts.values())
        if not self.step_seconds or abs(total - self.step_seconds) > ROUNDING * self.step_seconds:
            raise ValueError(f"parts add up to {total:g} s, but the step takes {self.step_seconds:g} s")
        return self


AnyProfile = Annotated[
    AnatomyProfile | LineProfile | SymbolProfile,
    Field(discriminator="profiler"),
]
PROFILE: Final[TypeAdapter[AnyProfile]] = TypeAdapter(AnyProfile)
