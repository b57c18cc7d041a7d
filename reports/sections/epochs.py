"""View -> which engine has the least total time, compiling included, for how long a training."""

from __future__ import annotations

from collections.abc import Sequence

from zoomgrad.reports.break_even import Winner, about, costs, noun, samples_an_epoch, winners
from zoomgrad.reports.charts.total_time import EPOCHS, total_time
from zoomgrad.reports.measured.headline import by_coverage
from zoomgrad.reports.text.figures import Figure, Section, Sheet, compile_time
from zoomgrad.reports.view import View
from zoomgrad.results import units


def epochs(view: View) -> Section | None:
    """The engines that lead on each workload; None if no engine that compiles has a rival."""
    leads: dict[str, list[Winner]] = {}
    for workload in view.workloads(view.table):
        rows = view.table[view.table["workload"] == workload]
        rivals = costs(view.ranked(rows), by_coverage(rows)[0])
        if len(rivals) > 1 and any(cost.compile_seconds > 0 for cost in rivals):
            leads[workload] = winners(rivals)
    if not leads:
        return None
    workload, first = next(iter(leads.items()))
    rows = view.table[view.table["workload"] == workload]
    interpreter, end = by_coverage(rows)[0], EPOCHS * samples_an_epoch(rows)
    answer = _sequence(first, noun(workload))
    shown = [winner for winner in first if winner.samples < end]
    rivals = costs(view.ranked(rows), interpreter)
    chart = total_time("total_time", f"On {workload}: {answer}", noun(workload), rivals, shown, end)
    sheet = Sheet(
        "",
        2,
        ("workload", "engine", "from", "compile", "a sample"),
        tuple(_line(workload, winner, place) for workload, won in leads.items() for place, winner in enumerate(won)),
    )
    note = "Counts are estimates from medians."
    return Section("epochs", "Which engine for how many epochs?", answer, (sheet,), (chart,), (note,))


def _sequence(won: Sequence[Winner], one: str) -> str:
    """`native up to 7 images, rerolled-tcc up to 1,300, then rerolled-gcc`."""
    if len(won) == 1:
        return f"{won[0].cost.engine} from the first {one} on"
    untils = [about(later.samples - 1) for later in won[1:]]
    parts = [f"{winner.cost.engine} up to {until}" for winner, until in zip(won, untils, strict=False)]
    parts[0] += f" {one}{'' if untils[0] == '1' else 's'}"
    return f"{', '.join(parts)}, then {won[-1].cost.engine}"


def _line(workload: str, winner: Winner, place: int) -> tuple[Figure, ...]:
    return (
        Figure("" if place else workload),
        Figure(winner.cost.engine),
        Figure(f"{noun(workload)} {about(winner.samples)}"),
        Figure(compile_time(winner.cost.compile_seconds)),
        Figure(units.duration(winner.cost.sample_seconds)),
    )
