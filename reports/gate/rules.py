"""A new run and its baseline run -> a verdict for each cell, with the evidence.

The gate compares speedups, never seconds, and instruction counts where both runs have them. It compares compile times
in units of the baseline's step time in the same block, both as measured, so that a faster machine can't hide a
regression. A cell fails only if the whole interval of its change is beyond the limit. A cell that may have become
worse is a suspect, to be measured again.

The gate looks at many intervals, and at those of suspects again and again. So it must also be certain that there is a
change at all: the intervals that show this share one probability of an error equally (Bonferroni), and equal code fails
at most once in a hundred runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reports.gate.limits import Limits
from reports.gate.verdict import COMPILE_TIME, INSTRUCTIONS, NAN, RESULT, SPEEDUP, WORDS, Verdict, Word, word_of
from reports.measured.outcome import MEASURED, UNSTEADY, Outcome, outcomes
from reports.profiling.instructions import change
from results import units
from results.comparability import same_machine, unlike_settings
from results.files import Unreadable
from results.profile import InstructionsProfile
from results.record import BASELINE, Cell, Record, Run
from results.samples import Blocks, baseline_of, common, compiled_seconds, step_seconds, step_seconds_as_measured
from results.stats import intervals
from results.stats.intervals import MIN_PROCESSES, Interval

ERROR = 0.01
"""Probability that a run of equal code fails."""


@dataclass(frozen=True)
class MeasuredRun:
    """A run, its records and its instruction counts."""

    run: Run
    records: Sequence[Record]
    counts: Sequence[InstructionsProfile] = ()


def refuse_incomparable(new: Run, baseline_run: Run) -> None:
    """Raise Unreadable if the new run, measured or only planned, is not comparable with the baseline run."""
    unlike = unlike_settings(new, baseline_run)
    if unlike:
        raise Unreadable(
            f"{new.id} and {baseline_run.id} were measured with different settings: {'; '.join(unlike)}\n"
            "  Compare runs of one preset: name another baseline run (--against), or another preset (--preset)."
        )
    if not {*new.cells} & {*baseline_run.cells}:
        raise Unreadable(
            f"{new.id} and {baseline_run.id} have no cell in common\n"
            "  Name a baseline run of the same engines, interpreters and workloads (--against), or make one (--update)."
        )
    if baseline_run.blocks < MIN_PROCESSES:
        raise Unreadable(
            f"{baseline_run.id}: {units.count(baseline_run.blocks, 'block')}, but an interval needs {MIN_PROCESSES}\n"
            "  Name a baseline run with more blocks (--against): compared with this one, every change is unsure."
        )


def verdicts(new: MeasuredRun, baseline_run: MeasuredRun, limits: Limits) -> list[Verdict]:
    """Return the verdicts on every cell of the new run's plan, failing ones first.

    Ignores cells that only the baseline run planned. Raises Unreadable if the two runs are not comparable.
    """
    refuse_incomparable(new.run, baseline_run.run)
    scale = 1.0 if same_machine(new.run.machine, baseline_run.run.machine) else limits.elsewhere
    now, then = _samples(new), _samples(baseline_run)
    figures = sum(1 + (cell in now.compiled) for cell in now.outcomes if cell != baseline_of(cell))
    # Only one of an interval's two sides can fail the gate.
    error = 2 * ERROR / (max(1, figures) * (1 + limits.reruns))

    def of_cell(cell: Cell, here: Outcome) -> Iterator[Verdict]:
        there, base = then.outcomes.get(cell), baseline_of(cell)
        if there is None or there.status != MEASURED:
            if here.status == MEASURED:
                yield Verdict(cell, RESULT, "new")
        elif here.status != MEASURED:
            word: Word = "unsure" if here.status == UNSTEADY else "wrong" if here.bits == "different" else "lost"
            yield Verdict(cell, RESULT, word, reason=here.reason)
        elif cell == base:
            return
        elif not (now.has_result(base) and then.has_result(base)):
            yield Verdict(cell, SPEEDUP, "unsure", reason=f"no {BASELINE} result in one of the runs or both")
        else:
            limit = scale * limits.slowdown_of(cell)
            yield _compared(cell, SPEEDUP, now.step_times(cell), then.step_times(cell), limit, error)
            if cell in now.compiled and cell in then.compiled:
                limit = scale * limits.compile_growth_of(cell)
                yield _compared(cell, COMPILE_TIME, now.compile_times(cell), then.compile_times(cell), limit, error)

    found = [verdict for cell, here in now.outcomes.items() for verdict in of_cell(cell, here)]
    found += _counted(new, baseline_run, limits)
    return sorted(found, key=lambda verdict: WORDS.index(verdict.word))


def suspects(found: Iterable[Verdict], measured_again: bool = False) -> list[Cell]:
    """Return the cells to measure again before the gate fails, each with its baseline."""
    wanted: dict[Cell, None] = {}
    for verdict in found:
        if verdict.suspect(measured_again):
            wanted |= dict.fromkeys((verdict.cell, baseline_of(verdict.cell)))
    return list(wanted)


Sides = tuple[intervals.Samples, intervals.Samples]
"""The baseline's and the engine's samples, from the blocks that have both."""


@dataclass(frozen=True)
class _Samples:
    """Samples and outcomes of one of the two runs."""

    outcomes: Mapping[Cell, Outcome]
    steps: Mapping[Cell, Blocks]
    steps_as_measured: Mapping[Cell, Blocks]
    compiled: Mapping[Cell, Blocks]

    def has_result(self, cell: Cell) -> bool:
        return cell in self.outcomes and self.outcomes[cell].status == MEASURED

    def step_times(self, cell: Cell) -> Sides:
        return common(self.steps[baseline_of(cell)], self.steps[cell])

    def compile_times(self, cell: Cell) -> Sides:
        # No pace is recorded for a compile time. Dividing it by a steadied step would keep whatever slowed its block;
        # dividing it by the step as measured in the same block cancels that.
        return common(self.steps_as_measured[baseline_of(cell)], self.compiled[cell])


def _samples(of: MeasuredRun) -> _Samples:
    return _Samples(
        outcomes(of.run, of.records),
        step_seconds(of.records),
        step_seconds_as_measured(of.records),
        compiled_seconds(of.records),
    )


def _compared(cell: Cell, subject: str, new: Sides, old: Sides, limit: float, error: float) -> Verdict:
    """Return the verdict on a ratio of two samples, the baseline's over the engine's.

    error: probability with which equal code may be `worse`.
    """
    if not new[0] or not old[0]:
        return Verdict(cell, subject, "unsure", limit=limit, reason="no block measured both sides")
    ratios = [intervals.ratio_of_medians(*sides) for sides in (new, old)]
    try:
        changed, reason = intervals.speedup_change(*new, *old), ""
    except intervals.TooFewProcesses as few:
        blocks = [intervals.ratio_of_blocks(*sides) for sides in (new, old)]
        changed, reason = Interval(blocks[0] / blocks[1], NAN, NAN), str(few)
    now, then = ratios if subject == SPEEDUP else [1 / ratio for ratio in ratios]
    word = word_of(changed, limit)
    if word == "worse" and intervals.speedup_change(*new, *old, error).high >= 1:
        word = "unsure"
    return Verdict(cell, subject, word, changed, then, now, limit, reason)


def _counted(new: MeasuredRun, baseline_run: MeasuredRun, limits: Limits) -> Iterable[Verdict]:
    """Yield verdicts on instruction counts, where the baseline run has one. A count is exact and needs no interval."""
    then = {profile.cell: profile for profile in baseline_run.counts if profile.status == MEASURED}
    for here in new.counts:
        there = then.get(here.cell)
        if there is None:
            continue
        unlike = _counted_elsewhere(here, new.run, baseline_run.run)
        ratio = change(here, there)
        if unlike or isinstance(ratio, str):
            yield Verdict(here.cell, INSTRUCTIONS, "unsure", reason=unlike or str(ratio))
            continue
        # The processor's own counter also counts the Python code around the compiled code.
        limit = limits.instructions if here.target else limits.slowdown_of(here.cell)
        exact = Interval(1 / ratio, 1 / ratio, 1 / ratio)
        word = word_of(exact, limit)
        yield Verdict(here.cell, INSTRUCTIONS, word, exact, there.step_instructions, here.step_instructions, limit)


def _counted_elsewhere(here: InstructionsProfile, new: Run, baseline_run: Run) -> str:
    """Return why two counts differ even if the code is the same; empty if there is no such reason."""
    if new.machine.get("libc") != baseline_run.machine.get("libc"):
        return "different C libraries, whose instructions are counted too"
    interpreter = here.cell.interpreter
    versions = {run.interpreters[interpreter].version for run in (new, baseline_run) if interpreter in run.interpreters}
    if not here.target and (len(versions) > 1 or not same_machine(new.machine, baseline_run.machine)):
        return "counted on different processors, or under different versions of Python"
    return ""
