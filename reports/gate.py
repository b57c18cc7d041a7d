"""A run and the reference it is held against -> verdicts, cell by cell, with their evidence.

Speedups are compared, never seconds, and counts of instructions where both runs have them. A compile time is compared
in steps of the baseline that ran beside it, so that a faster machine does not hide what became slower. A cell fails
only if the whole interval of its change lies beyond the limit and the change exceeds the noise floor; what only may
have become worse is a suspect, to be measured again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from reports.instructions import change
from reports.outcome import MEASURED, Outcome, outcome
from results import stats
from results.limits import Limits
from results.machines import same_machine
from results.noise import Noise
from results.profile import InstructionsProfile
from results.record import BASELINE, Cell, Record, Run
from results.samples import Blocks, baseline_of, common, compile_seconds, step_seconds
from results.stats import Interval
from results.store import Unreadable

Word = Literal["wrong", "lost", "worse", "unsure", "same", "better", "new"]
"""From the worst on: the order of a table of verdicts."""
FAILING: tuple[Word, ...] = ("wrong", "lost", "worse")

SPEEDUP, COMPILE_TIME, INSTRUCTIONS, RESULT = "speedup", "compile time", "instructions", "result"

ALIKE = ("values", "warmups", "jit_warmups", "value_seconds")
"""Settings that two runs must share: a value that is longer, or comes later, is another figure."""

NAN = float("nan")
NO_CHANGE = Interval(NAN, NAN, NAN)
"""Of a cell without a result."""


@dataclass(frozen=True)
class Verdict:
    """What became of a cell's speedup, of its compile time, or of its result altogether."""

    cell: Cell
    subject: str
    word: Word
    change: Interval = NO_CHANGE
    """Of a speedup new over old, of all else old over new: below 1 is a loss."""
    then: float = NAN
    """The reference's speedup, compile time in steps of the baseline, or instructions a step."""
    now: float = NAN
    limit: float = NAN
    """What the figure may lose: 0.10 lets a time, or a count, grow by a tenth."""
    floor: float = NAN
    reason: str = ""

    @property
    def fails(self) -> bool:
        return self.word in FAILING

    @property
    def suspect(self) -> bool:
        """Whether another measurement may tell: it looks worse, surely or not."""
        if self.subject == INSTRUCTIONS:
            return False
        return self.word == "worse" or (self.word == "unsure" and self.change.value * (1 + self.limit) < 1)


@dataclass(frozen=True)
class Measured:
    """A run, its records, and its counts of instructions."""

    run: Run
    records: Sequence[Record]
    counts: Sequence[InstructionsProfile] = ()

    def outcomes(self) -> Mapping[Cell, Outcome]:
        """Of every cell of the plan."""
        blocks: dict[Cell, list[Record]] = {cell: [] for cell in self.run.cells}
        for record in self.records:
            if record.cell in blocks:
                blocks[record.cell].append(record)
        return {cell: outcome(found, self.run.engines.get(cell.engine)) for cell, found in blocks.items()}


def judge(new: Measured, reference: Measured, limits: Limits, noise: Noise | None = None) -> list[Verdict]:
    """Verdicts on all that the new run was to measure, failing ones first.

    Cells of the reference that are not in the new run's plan were not asked for. Raises Unreadable where the two runs
    are not comparable, or share no cell.
    """
    _refuse_unlike(new.run, reference.run)
    scale = 1.0 if same_machine(new.run.machine, reference.run.machine) else limits.elsewhere
    found: list[Verdict] = []
    now, then = new.outcomes(), reference.outcomes()
    steps, old_steps = step_seconds(new.records), step_seconds(reference.records)
    compiles, old_compiles = compile_seconds(new.records), compile_seconds(reference.records)
    for cell, here in now.items():
        there, base = then.get(cell), baseline_of(cell)
        if there is None or there.status != MEASURED:
            found += [Verdict(cell, RESULT, "new")] if here.status == MEASURED else []
        elif here.status != MEASURED:
            word: Word = "wrong" if here.bits == "different" else "lost"
            found.append(Verdict(cell, RESULT, word, reason=here.reason))
        elif cell.engine != BASELINE and all(base in run for run in (steps, old_steps)):
            floor = (noise.floor(cell) if noise else None) or limits.noise_floor
            sides = (steps[base], old_steps[base])
            limit = scale * limits.slowdown_of(cell)
            found.append(_verdict(cell, SPEEDUP, sides, (steps[cell], old_steps[cell]), limit, floor))
            if cell in compiles and cell in old_compiles:
                limit = scale * limits.compile_growth_of(cell)
                found.append(_verdict(cell, COMPILE_TIME, sides, (compiles[cell], old_compiles[cell]), limit, floor))
    found += _counted(new, reference, limits)
    if all(verdict.word == "new" for verdict in found):
        raise Unreadable(
            f"{new.run.id} and {reference.run.id} have no cell in common\n"
            "  Name a reference with the same engines, interpreters and workloads (--against), or move it (--update)."
        )
    return sorted(found, key=lambda verdict: _WORDS.index(verdict.word))


def suspects(verdicts: Iterable[Verdict]) -> list[Cell]:
    """Cells to be measured again before the gate fails, each with its baseline."""
    wanted: dict[Cell, None] = {}
    for verdict in verdicts:
        if verdict.suspect:
            wanted |= dict.fromkeys((verdict.cell, baseline_of(verdict.cell)))
    return list(wanted)


_WORDS: tuple[Word, ...] = ("wrong", "lost", "worse", "unsure", "same", "better", "new")


def _refuse_unlike(new: Run, reference: Run) -> None:
    for name in ALIKE:
        here, there = getattr(new.settings, name), getattr(reference.settings, name)
        if here != there:
            raise Unreadable(
                f"{reference.id}: was measured with {name} {there:g}, {new.id} with {here:g}\n"
                "  Compare runs of one preset: name another reference (--against), or another preset (--preset)."
            )


def _verdict(
    cell: Cell, subject: str, bases: tuple[Blocks, Blocks], others: tuple[Blocks, Blocks], limit: float, floor: float
) -> Verdict:
    """Of a ratio of two samples, base over other; each pair is (new, reference)."""
    new, old = (common(base, other) for base, other in zip(bases, others, strict=True))
    if not new[0] or not old[0]:
        return Verdict(cell, subject, "unsure", limit=limit, floor=floor, reason="no block measured both sides")
    ratios = [stats.median_of_processes(base) / stats.median_of_processes(other) for base, other in (new, old)]
    try:
        changed = stats.speedup_change(*new, *old)
        reason = ""
    except stats.TooFewProcesses as error:
        changed, reason = Interval(ratios[0] / ratios[1], NAN, NAN), str(error)
    now, then = ratios if subject == SPEEDUP else [1 / ratio for ratio in ratios]
    return Verdict(cell, subject, _word(changed, limit, floor), changed, then, now, limit, floor, reason)


def _counted(new: Measured, reference: Measured, limits: Limits) -> Iterable[Verdict]:
    """Where both runs counted a cell's instructions: a count has no noise, and needs no interval."""
    then = {profile.cell: profile for profile in reference.counts if profile.status == MEASURED}
    limit = limits.instructions
    for here in new.counts:
        there = then.get(here.cell)
        if there is None or here.status != MEASURED:
            continue
        ratio = change(here, there)
        if isinstance(ratio, str):
            yield Verdict(here.cell, INSTRUCTIONS, "unsure", limit=limit, reason=ratio)
            continue
        sure = Interval(1 / ratio, 1 / ratio, 1 / ratio)
        word = _word(sure, limit, 0.0)
        yield Verdict(here.cell, INSTRUCTIONS, word, sure, there.step_instructions, here.step_instructions, limit, 0.0)


def _word(changed: Interval, limit: float, floor: float) -> Word:
    """NaN bounds compare as false: without an interval nothing is sure."""
    if changed.high < 1 / (1 + limit) and changed.value < 1 / (1 + floor):
        return "worse"
    if changed.low > 1 + limit and changed.value > 1 + floor:
        return "better"
    if changed.low >= 1 / (1 + limit) and changed.high <= 1 + limit:
        return "same"
    return "unsure"
