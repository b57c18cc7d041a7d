"""A run and the reference it is held against -> verdicts, cell by cell, with their evidence.

Speedups are compared, never seconds, and counts of instructions where both runs have them. A compile time is compared
in steps of the baseline that ran beside it, so that a faster machine does not hide what became slower. A cell fails
only if the whole interval of its change lies beyond the limit, or beyond the noise floor where that is higher; what
only may have become worse is a suspect, to be measured again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from reports.instructions import change
from reports.outcome import MEASURED, UNSTEADY, Outcome, outcomes
from results import stats, units
from results.alike import same_machine, unlike_settings
from results.files import Unreadable
from results.limits import Limits
from results.noise import Noise
from results.profile import InstructionsProfile
from results.record import BASELINE, Cell, Record, Run
from results.samples import Blocks, baseline_of, common, compile_seconds, step_seconds
from results.stats import Interval

Word = Literal["wrong", "lost", "worse", "unsure", "same", "better", "new"]
"""From the worst on: the order of a table of verdicts."""
WORDS: tuple[Word, ...] = get_args(Word)
FAILING: tuple[Word, ...] = ("wrong", "lost", "worse")

SPEEDUP, COMPILE_TIME, INSTRUCTIONS, RESULT = "speedup", "compile time", "instructions", "result"

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
    reason: str = ""

    @property
    def fails(self) -> bool:
        return self.word in FAILING

    def suspect(self, measured_again: bool = False) -> bool:
        """Whether another measurement may tell.

        At first it is enough to look worse by half the limit, and nothing is sure: a bad minute of the machine's looks
        like a regression. What was measured again has to be beyond its limit, and not surely.
        """
        if self.subject not in (SPEEDUP, COMPILE_TIME):
            return False
        # What compiled in one block only would load its object in others: they have no compile time to add.
        if self.subject == COMPILE_TIME and math.isnan(self.change.low):
            return False
        if measured_again:
            return self.word == "unsure" and self.change.value * (1 + self.limit) < 1
        return self.word == "worse" or (self.word == "unsure" and self.change.value * (1 + self.limit / 2) < 1)


@dataclass(frozen=True)
class Measured:
    """A run, its records, and its counts of instructions."""

    run: Run
    records: Sequence[Record]
    counts: Sequence[InstructionsProfile] = ()


def refuse_incomparable(new: Run, reference: Run) -> None:
    """Raise Unreadable where no run of that plan could be held against the reference: better told before measuring."""
    unlike = unlike_settings(new, reference)
    if unlike:
        raise Unreadable(
            f"{reference.id}: was measured otherwise than {new.id}: {'; '.join(unlike)}\n"
            "  Compare runs of one preset: name another reference (--against), or another preset (--preset)."
        )
    if not {*new.cells} & {*reference.cells}:
        raise Unreadable(
            f"{new.id} and {reference.id} have no cell in common\n"
            "  Name a reference with the same engines, interpreters and workloads (--against), or move it (--update)."
        )
    if reference.blocks < stats.MIN_PROCESSES:
        raise Unreadable(
            f"{reference.id}: {units.count(reference.blocks, 'block')}, and an interval needs {stats.MIN_PROCESSES}\n"
            "  Hold the run against one with more blocks: whatever were worse, nothing would be sure."
        )


def judge(new: Measured, reference: Measured, limits: Limits, noise: Noise | None = None) -> list[Verdict]:
    """Verdicts on all that the new run was to measure, failing ones first.

    Cells of the reference that are not in the new run's plan were not asked for. Raises Unreadable where the two runs
    are not comparable.
    """
    refuse_incomparable(new.run, reference.run)
    scale = 1.0 if same_machine(new.run.machine, reference.run.machine) else limits.elsewhere
    now, then = (outcomes(one.run, one.records) for one in (new, reference))
    steps, old_steps = step_seconds(new.records), step_seconds(reference.records)
    compiles, old_compiles = compile_seconds(new.records), compile_seconds(reference.records)

    def verdicts(cell: Cell, here: Outcome) -> Iterable[Verdict]:
        there, base = then.get(cell), baseline_of(cell)
        if there is None or there.status != MEASURED:
            if here.status == MEASURED:
                yield Verdict(cell, RESULT, "new")
        elif here.status != MEASURED:
            word: Word = "unsure" if here.status == UNSTEADY else "wrong" if here.bits == "different" else "lost"
            yield Verdict(cell, RESULT, word, reason=here.reason)
        elif cell == base:
            return
        elif any(base not in one or one[base].status != MEASURED for one in (now, then)):
            yield Verdict(cell, SPEEDUP, "unsure", reason=f"no {BASELINE} was measured beside it in both runs")
        else:
            sides = (steps[base], old_steps[base])
            limit = max(scale * limits.slowdown_of(cell), (noise.floor(cell) if noise else None) or 0.0)
            yield _verdict(cell, SPEEDUP, sides, (steps[cell], old_steps[cell]), limit)
            if cell in compiles and cell in old_compiles:
                limit = scale * limits.compile_growth_of(cell)
                yield _verdict(cell, COMPILE_TIME, sides, (compiles[cell], old_compiles[cell]), limit)

    found = [verdict for cell, here in now.items() for verdict in verdicts(cell, here)]
    found += _counted(new, reference, limits)
    return sorted(found, key=lambda verdict: WORDS.index(verdict.word))


def suspects(verdicts: Iterable[Verdict], measured_again: bool = False) -> list[Cell]:
    """Cells to be measured again before the gate fails, each with its baseline."""
    wanted: dict[Cell, None] = {}
    for verdict in verdicts:
        if verdict.suspect(measured_again):
            wanted |= dict.fromkeys((verdict.cell, baseline_of(verdict.cell)))
    return list(wanted)


def _verdict(
    cell: Cell, subject: str, bases: tuple[Blocks, Blocks], others: tuple[Blocks, Blocks], limit: float
) -> Verdict:
    """Of a ratio of two samples, base over other; each pair is (new, reference)."""
    new, old = (common(base, other) for base, other in zip(bases, others, strict=True))
    if not new[0] or not old[0]:
        return Verdict(cell, subject, "unsure", limit=limit, reason="no block measured both sides")
    ratios = [stats.ratio_of_medians(base, other) for base, other in (new, old)]
    try:
        changed, reason = stats.speedup_change(*new, *old), ""
    except stats.TooFewProcesses as error:
        blocks = [stats.ratio_of_blocks(base, other) for base, other in (new, old)]
        changed, reason = Interval(blocks[0] / blocks[1], NAN, NAN), str(error)
    now, then = ratios if subject == SPEEDUP else [1 / ratio for ratio in ratios]
    return Verdict(cell, subject, _word(changed, limit), changed, then, now, limit, reason)


def _counted(new: Measured, reference: Measured, limits: Limits) -> Iterable[Verdict]:
    """Of cells whose instructions both runs were to count. A count has no interval, and needs none."""
    then = {profile.cell: profile for profile in reference.counts if profile.status == MEASURED}
    for here in new.counts:
        there = then.get(here.cell)
        if there is None:
            continue
        unlike = _counted_elsewhere(here, new.run, reference.run)
        ratio = change(here, there)
        if unlike or isinstance(ratio, str):
            yield Verdict(here.cell, INSTRUCTIONS, "unsure", reason=unlike or str(ratio))
            continue
        # The processor's own counter sees Python around the compiled code as well.
        limit = limits.instructions if here.target else limits.slowdown_of(here.cell)
        sure = Interval(1 / ratio, 1 / ratio, 1 / ratio)
        word = _word(sure, limit)
        yield Verdict(here.cell, INSTRUCTIONS, word, sure, there.step_instructions, here.step_instructions, limit)


def _counted_elsewhere(here: InstructionsProfile, new: Run, reference: Run) -> str:
    """Why two counts differ whatever became of the code; empty where nothing says so."""
    if new.machine.get("libc") != reference.machine.get("libc"):
        return "another C library, whose instructions count as well"
    interpreter = here.cell.interpreter
    versions = {run.interpreters[interpreter].version for run in (new, reference) if interpreter in run.interpreters}
    if not here.target and (len(versions) > 1 or not same_machine(new.machine, reference.machine)):
        return "counted by another processor, or beside another Python"
    return ""


def _word(changed: Interval, limit: float) -> Word:
    """NaN bounds compare as false: without an interval nothing is sure."""
    if changed.high < 1 / (1 + limit):
        return "worse"
    if changed.low > 1 + limit:
        return "better"
    if changed.low >= 1 / (1 + limit) and changed.high <= 1 + limit:
        return "same"
    return "unsure"
