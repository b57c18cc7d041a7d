"""Run and profiles -> the analysis in Markdown: whether each published claim holds."""

from __future__ import annotations

from collections.abc import Iterable

from zoomgrad.reports.profiling.claims import check_claims
from zoomgrad.reports.profiling.profile_index import ProfileIndex, profile_index
from zoomgrad.reports.text.markdown import environment
from zoomgrad.results.profile import AnyProfile, LineProfile, SymbolProfile
from zoomgrad.results.record import Run

HEADING = "# Do the published claims hold?"
"""The first line of the template."""


def analysis(run: Run, profiles: Iterable[AnyProfile]) -> str:
    """Render the analysis of a run. All its figures come from the profiles."""
    index = profile_index(run, profiles)
    template = environment().get_template("analysis.md.j2")
    processor = run.machine.get("processor", "")
    return template.render(
        run=run,
        processor=processor,
        checked=check_claims(index),
        tools=_tools(index),
    )


def _tools(index: ProfileIndex) -> list[str]:
    return sorted({profile.tool for kind in (LineProfile, SymbolProfile) for profile in index.of(kind)})
