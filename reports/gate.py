"""Two runs -> a verdict for each cell: the rules of the gate. `zoomgrad check` measures.

Speedups are compared, never seconds. Compile times are compared in units of the baseline's step time in the same block,
so that a faster machine can't hide a regression. All times are at the median pace of their run.
A cell fails only if the whole interval of its change is beyond the limit. A cell that may have become slower is a
suspect, to be measured again.

The gate looks at many intervals, and at those of suspects again and again. So it must also be certain that there is a
change at all: the intervals that show this share one probability of an error equally (Bonferroni), and equal code fails
at most once in a hundred runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from zoomgrad.reports.measured.outcome import MEASURED, Outcome, outcomes, promise
from zoomgrad.results import units
from zoomgrad.results.comparability import same_machine, unlike_settings
from zoomgrad.results.compare import COMPILE_TIME, ERROR, RESULT, SPEEDUP, Limits, Verdict, Word, between_runs
from zoomgrad.results.files import Unreadable
from zoomgrad.results.record import BASELINE, Cell, Run
from zoomgrad.results.samples import Blocks, at_median_pace, baseline_of, common, compiled_seconds, step_seconds
from zoomgrad.results.stats import intervals
from zoomgrad.results.stats.intervals import MIN_PROCESSES
from zoomgrad.results.store import Store


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


def refuse_as_baseline(store: Store) -> None:
    """Raise Unreadable if later runs could not be compared with the run."""
    of_cells = outcomes(store.run, store.records())
    failed = [cell.key for cell, outcome in of_cells.items() if outcome.status not in (MEASURED, "skipped")]
    if failed:
        raise Unreadable(
            f"{store.run.id} can't be a baseline run: "
            f"{units.count(len(failed), 'cell')} without a proven result ({failed[0]} …)\n"
            "  Fix the engine, or remove it from the preset."
        )


@dataclass(frozen=True)
class MeasuredRun:
    """A run, the outcomes of its cells, and their times in seconds."""

    run: Run
    outcomes: Mapping[Cell, Outcome]
    steps: Mapping[Cell, Blocks]
    compiled: Mapping[Cell, Blocks]

    def has_result(self, cell: Cell) -> bool:
        return cell in self.outcomes and self.outcomes[cell].status == MEASURED

    def bound(self, engine: str) -> float:
        """Largest error that the engine's promise allows."""
        facts = self.run.engines.get(engine)
        if facts is None or facts.strict:
            return 0.0
        return math.inf if facts.error_bound is None else facts.error_bound


def _measured(store: Store) -> MeasuredRun:
    """Return a stored run with what the rules need of its records."""
    at_pace = at_median_pace(store.records())
    return MeasuredRun(store.run, outcomes(store.run, at_pace), step_seconds(at_pace), compiled_seconds(at_pace))


def verdicts(new_run: Store, old_run: Store, limits: Limits, *, tolerant: bool = True) -> list[Verdict]:
    """Return the verdicts on every cell of the new run's plan.

    Ignores cells that only the old run planned. tolerant: whether a slowdown within the limits does not count.
    Raises Unreadable if the two runs are not comparable.
    """
    refuse_incomparable(new_run.run, old_run.run)
    new, old = _measured(new_run), _measured(old_run)
    scale = 1.0 if not tolerant or same_machine(new.run.machine, old.run.machine) else limits.elsewhere
    figures = sum(1 + (cell in new.compiled) for cell in new.outcomes if cell != baseline_of(cell))
    # Only one of an interval's two sides can fail the gate.
    error = 2 * ERROR / (max(1, figures) * (1 + limits.reruns))

    def compared(cell: Cell, figure: str, share: float) -> Verdict:
        base, limit = baseline_of(cell), scale * share
        times = ((run.steps, run.compiled if figure == COMPILE_TIME else run.steps) for run in (old, new))
        there, here = (common(steps[base], seconds[cell]) for steps, seconds in times)
        word, ratio, reason = between_runs(here, there, limit, limit if tolerant else 0.0, error)
        then, now = (intervals.ratio_of_medians(*sides) if sides[0] else math.nan for sides in (there, here))
        unit = ""
        if figure == COMPILE_TIME:
            then, now, unit = 1 / then, 1 / now, f"{BASELINE} steps"
        return Verdict(
            cell.key, figure, word, ratio, then=then, now=now, limit=limit, unit=unit, reason=reason, cell=cell
        )

    def of_cell(cell: Cell) -> Iterator[Verdict]:
        base = baseline_of(cell)
        if broken := _broken(cell, new, old):
            word, reason = broken
            yield Verdict(cell.key, RESULT, word, reason=reason, cell=cell)
        elif new.has_result(cell) and not old.has_result(cell):
            yield Verdict(cell.key, RESULT, "new", cell=cell)
        elif cell == base or not old.has_result(cell):
            return
        elif not (new.has_result(base) and old.has_result(base)):
            reason = f"no {BASELINE} result in one of the runs or both"
            yield Verdict(cell.key, SPEEDUP, "unsure", reason=reason, cell=cell)
        else:
            yield compared(cell, SPEEDUP, limits.slowdown)
            if cell in new.compiled and cell in old.compiled:
                yield compared(cell, COMPILE_TIME, limits.compile_growth)

    return [verdict for cell in new.outcomes for verdict in of_cell(cell)]


def _broken(cell: Cell, new: MeasuredRun, old: MeasuredRun) -> tuple[Word, str] | None:
    """Return why a cell has no result that counts, or a weaker one than before; None if it has one, or never had."""
    here, engine = new.outcomes[cell], cell.engine
    if not old.has_result(cell):
        return None
    if here.status != MEASURED:
        return "wrong" if here.bits == "different" else "lost", here.reason
    if new.bound(engine) > old.bound(engine):
        before, promised = (promise(one.run.engines.get(engine)) for one in (old, new))
        return "weaker", f"promised {before}, and now {promised}"
    return None


def suspects(verdicts: Iterable[Verdict], *, measured_again: bool = False) -> list[Cell]:
    """Return the cells to measure again before the gate fails, each with its baseline.

    After the first measurement no failure is final, because a bad minute of the machine looks like a regression; a cell
    that looks slower by half its limit is also a suspect. Later, only unsure changes beyond their limit are.
    """
    wanted: dict[Cell, None] = {}
    for verdict in verdicts:
        # A cell that compiled in only one block would load its object in every later one and add no compile time.
        again = verdict.figure == SPEEDUP or (verdict.figure == COMPILE_TIME and not math.isnan(verdict.ratio.low))
        least = 1 + (verdict.limit if measured_again else verdict.limit / 2)
        failing = verdict.word == "slower" and not measured_again
        if verdict.cell and again and (failing or (verdict.word == "unsure" and verdict.ratio.value > least)):
            wanted |= dict.fromkeys((verdict.cell, baseline_of(verdict.cell)))
    return list(wanted)
