"""Two runs -> a verdict for each cell, with the evidence.

Speedups are compared, never seconds. Compile times are compared in units of the baseline's step time in the same block,
both as measured, so that a faster machine can't hide a regression.
A cell fails only if the whole interval of its change is beyond the limit. A cell that may have become slower is a
suspect, to be measured again.

The gate looks at many intervals, and at those of suspects again and again. So it must also be certain that there is a
change at all: the intervals that show this share one probability of an error equally (Bonferroni), and equal code fails
at most once in a hundred runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from zoomgrad.reports.gate.limits import Limits
from zoomgrad.reports.measured.outcome import MEASURED, Outcome, outcomes, promise
from zoomgrad.results import units
from zoomgrad.results.comparability import same_machine, unlike_settings
from zoomgrad.results.compare import (
    COMPILE_TIME,
    ERROR,
    RESULT,
    SPEEDUP,
    Sides,
    Verdict,
    Word,
    between_runs,
)
from zoomgrad.results.files import Unreadable
from zoomgrad.results.record import BASELINE, Cell, EngineFacts, Record, Run
from zoomgrad.results.samples import (
    Blocks,
    at_median_pace,
    baseline_of,
    common,
    compiled_seconds,
    step_seconds,
    step_seconds_as_measured,
)
from zoomgrad.results.stats import intervals
from zoomgrad.results.stats.intervals import MIN_PROCESSES
from zoomgrad.results.store import Store


@dataclass(frozen=True)
class MeasuredRun:
    """A run and its records."""

    run: Run
    records: Sequence[Record]


def measured_run(store: Store) -> MeasuredRun:
    """Return a stored run with what the rules need of it."""
    return MeasuredRun(store.run, store.records())


def refuse_incomparable(new: Run, old: Run) -> None:
    """Raise Unreadable if the new run, measured or only planned, is not comparable with the old one."""
    unlike = unlike_settings(new, old)
    if unlike:
        raise Unreadable(
            f"{new.id} and {old.id} were measured with different settings: {'; '.join(unlike)}\n"
            "  Compare runs of one preset, for example with another --against or --preset."
        )
    if not {*new.cells} & {*old.cells}:
        raise Unreadable(
            f"{new.id} and {old.id} have no cell in common\n"
            "  Compare runs of the same engines, interpreters and workloads, for example with another --against."
        )
    if old.blocks < MIN_PROCESSES:
        raise Unreadable(
            f"{old.id}: {units.count(old.blocks, 'block')}, but an interval needs {MIN_PROCESSES}\n"
            "  Name a run with more blocks: compared with this one, every change is unsure."
        )


def verdicts(new: MeasuredRun, old: MeasuredRun, limits: Limits, *, tolerant: bool = True) -> list[Verdict]:
    """Return the verdicts on every cell of the new run's plan.

    Ignores cells that only the old run planned. tolerant: whether a slowdown within the limits does not count.
    Raises Unreadable if the two runs are not comparable.
    """
    refuse_incomparable(new.run, old.run)
    scale = 1.0 if not tolerant or same_machine(new.run.machine, old.run.machine) else limits.elsewhere
    now, then = _samples(new), _samples(old)
    figures = sum(1 + (cell in now.compiled) for cell in now.outcomes if cell != baseline_of(cell))
    # Only one of an interval's two sides can fail the gate.
    error = 2 * ERROR / (max(1, figures) * (1 + limits.reruns))

    def compared(cell: Cell, figure: str, share: float, here: Sides, there: Sides) -> Verdict:
        limit = scale * share
        word, ratio, reason = between_runs(here, there, limit, limit if tolerant else 0.0, error)
        before, after = (intervals.ratio_of_medians(*sides) if sides[0] else math.nan for sides in (there, here))
        unit = ""
        if figure == COMPILE_TIME:
            before, after, unit = 1 / before, 1 / after, f"{BASELINE} steps"
        return Verdict(
            cell.key, figure, word, ratio, then=before, now=after, limit=limit, unit=unit, reason=reason, cell=cell
        )

    def of_cell(cell: Cell, here: Outcome) -> Iterator[Verdict]:
        there, base = then.outcomes.get(cell), baseline_of(cell)
        if broken := _broken(here, there, new.run.engines.get(cell.engine), old.run.engines.get(cell.engine)):
            word, reason = broken
            yield Verdict(cell.key, RESULT, word, reason=reason, cell=cell)
        elif here.status == MEASURED and cell in now.elsewhere:
            yield Verdict(cell.key, RESULT, "lost", reason=now.elsewhere[cell], cell=cell)
        elif there is None or there.status != MEASURED:
            if here.status == MEASURED:
                yield Verdict(cell.key, RESULT, "new", cell=cell)
        elif cell == base:
            return
        elif cell in then.elsewhere or not (now.has_result(base) and then.has_result(base)):
            reason = then.elsewhere.get(cell, f"no {BASELINE} result in one of the runs or both")
            yield Verdict(cell.key, SPEEDUP, "unsure", reason=reason, cell=cell)
        else:
            yield compared(cell, SPEEDUP, limits.slowdown, now.step_times(cell), then.step_times(cell))
            if cell in now.compiled and cell in then.compiled:
                growth = limits.compile_growth
                yield compared(cell, COMPILE_TIME, growth, now.compile_times(cell), then.compile_times(cell))

    return [verdict for cell, here in now.outcomes.items() for verdict in of_cell(cell, here)]


def _broken(
    here: Outcome, there: Outcome | None, promised: EngineFacts | None, before: EngineFacts | None
) -> tuple[Word, str] | None:
    """Return why a cell has no result that counts, or a weaker one than before; None if it has one, or never had."""
    had = there is not None and there.status == MEASURED
    if here.status == MEASURED and had and _bound(promised) > _bound(before):
        return "weaker", f"promised {promise(before)}, and now {promise(promised)}"
    if here.status != MEASURED and had:
        return "wrong" if here.bits == "different" else "lost", here.reason
    return None


def _bound(facts: EngineFacts | None) -> float:
    """Largest error that an engine's promise allows."""
    if facts is None or facts.strict:
        return 0.0
    return math.inf if facts.error_bound is None else facts.error_bound


def suspects(found: Iterable[Verdict], *, measured_again: bool = False) -> list[Cell]:
    """Return the cells to measure again before the gate fails, each with its baseline.

    After the first measurement no failure is final, because a bad minute of the machine looks like a regression; a cell
    that looks slower by half its limit is also a suspect. Later, only unsure changes beyond their limit are.
    """
    wanted: dict[Cell, None] = {}
    for verdict in found:
        # A cell that compiled in only one block would load its object in every later one and add no compile time.
        again = verdict.figure == SPEEDUP or (verdict.figure == COMPILE_TIME and not math.isnan(verdict.ratio.low))
        least = 1 + (verdict.limit if measured_again else verdict.limit / 2)
        failing = verdict.word == "slower" and not measured_again
        if verdict.cell and again and (failing or (verdict.word == "unsure" and verdict.ratio.value > least)):
            wanted |= dict.fromkeys((verdict.cell, baseline_of(verdict.cell)))
    return list(wanted)


@dataclass(frozen=True)
class _Samples:
    """Samples and outcomes of one of the two runs."""

    outcomes: Mapping[Cell, Outcome]
    steps: Mapping[Cell, Blocks]
    steps_as_measured: Mapping[Cell, Blocks]
    compiled: Mapping[Cell, Blocks]
    elsewhere: Mapping[Cell, str]
    """Cell -> why its blocks do not count."""

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
        outcomes(of.run, at_median_pace(of.records)),
        step_seconds(of.records),
        step_seconds_as_measured(of.records),
        compiled_seconds(of.records),
        _elsewhere(of),
    )


def _elsewhere(of: MeasuredRun) -> Mapping[Cell, str]:
    """Cells with a record of another host than its baseline's, whose ratio means nothing."""
    measured = [record for record in of.records if record.status == MEASURED]
    hosts = {(record.cell, record.block): record.host for record in measured}
    found = {}
    for record in measured:
        base = hosts.get((baseline_of(record.cell), record.block), record.host)
        if base != record.host:
            names = " and ".join(name or "the run's own machine" for name in (base, record.host))
            reason = f"{BASELINE} and the engine were measured on two hosts, {names}"
            found[record.cell] = f"{of.run.id}, block {record.block}: {reason}"
    return found
