"""Run and profiles -> a written analysis in Markdown: does each published claim hold, why not, and all its evidence."""

from __future__ import annotations

from collections.abc import Iterable

from reports.anatomy import anatomies
from reports.claims import judge
from reports.collector import collectors
from reports.compilers import compilers
from reports.hottest import hottest, ladders
from reports.jit import jits
from reports.markdown import environment
from reports.memory_over_time import memories
from reports.seen import Seen, seen
from reports.symbol_ladder import symbol_ladder
from results.profile import AnyProfile, LineProfile, SymbolProfile
from results.record import Run

HEADING = "# Do the published claims hold?"
"""The first line of the template."""


def analysis(run: Run, profiles: Iterable[AnyProfile]) -> str:
    """The analysis of a run; no figure in it is from anywhere but its profiles."""
    looks = seen(run, profiles)
    template = environment().get_template("analysis.md.j2")
    processor = run.machine.get("processor", "")
    evidence = [
        part(looks) for part in (anatomies, memories, collectors, symbol_ladder, ladders, hottest, jits, compilers)
    ]
    return template.render(
        run=run,
        processor=processor,
        judged=judge(looks),
        tools=_tools(looks),
        evidence=[section for section in evidence if section],
    )


def _tools(looks: Seen) -> list[str]:
    return sorted({profile.tool for kind in (LineProfile, SymbolProfile) for profile in looks.of(kind)})
