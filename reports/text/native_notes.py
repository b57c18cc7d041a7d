"""Notes on engines compiled with `-march=native`, for tables that mix them with engines compiled without it.

`-march=native` may give an engine wider vectors than others, an advantage unrelated to the idea that it tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from zoomgrad.reports.text.figures import Section, Sheet
from zoomgrad.results.record import EngineFacts

Facts = Mapping[str, EngineFacts]


def native_note(engines: Iterable[str], facts: Facts) -> tuple[str, ...]:
    """Return the note; empty if all engines are native, none is, or the run is too old to record it."""
    known = {name: facts[name].native for name in dict.fromkeys(engines) if name in facts}
    if None in known.values() or len(set(known.values())) < 2:
        return ()
    names = ", ".join(name for name, native in known.items() if native)
    return (f"Compiled for this machine's processor (-march=native): {names}. The other engines are not.",)


def noted(section: Section, facts: Facts) -> Section:
    """Add the note to each sheet of the section that needs it."""
    sheets = (replace(sheet, notes=(*sheet.notes, *native_note(_named(sheet), facts))) for sheet in section.sheets)
    return replace(section, sheets=tuple(sheets))


def _named(sheet: Sheet) -> Iterable[str]:
    """Yield every text in the sheet that may be an engine's name, without the caveat in brackets that may follow."""
    yield from sheet.headings
    for row in sheet.rows:
        yield from (figure.text.partition(" ")[0] for figure in row)
