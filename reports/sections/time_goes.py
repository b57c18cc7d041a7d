"""Profile index -> where the time goes: the anatomy of a step, the claims of the post, and each profiler's account."""

from __future__ import annotations

from zoomgrad.reports.measured.outcome import MEASURED
from zoomgrad.reports.profiling.anatomy import anatomies, largest_parts
from zoomgrad.reports.profiling.claims import claims, verdict
from zoomgrad.reports.profiling.hottest import hottest, pages
from zoomgrad.reports.profiling.profile_index import ProfileIndex
from zoomgrad.reports.text.figures import Section
from zoomgrad.results import units

ACCOUNTS = (anatomies, claims, hottest, pages)
"""Each yields its sheets, in this order."""


def time_goes(index: ProfileIndex | None) -> Section | None:
    """The accounts that the run's profiles allow; None without a profile."""
    if index is None or not index.profiles:
        return None
    seen = sum(profile.status == MEASURED for profile in index.profiles)
    answer = "; ".join(filter(None, (largest_parts(index), verdict(index))))
    sheets = tuple(sheet for account in ACCOUNTS for sheet in account(index))
    note = (
        f"{seen} of {units.count(len(index.profiles), 'profile')} gave a result. Profilers ran apart from timing, and "
        "a profiled step is slower: compare no figure here with a time above."
    )
    return Section("profiles", "Where does the time go?", answer or note, sheets, (), (note,) if answer else ())
