"""Which engines of a table were compiled for this very processor: a note for each table that has some of both.

`-march=native` may give an engine wider vectors than its neighbour has, which is another advantage than its idea.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from reports.text.figures import Section, Sheet
from results.record import EngineFacts

Facts = Mapping[str, EngineFacts]


def native_note(engines: Iterable[str], facts: Facts) -> tuple[str, ...]:
    """The note; none where all of them are native, none of them is, or a run is too old to tell."""
    known = {name: facts[name].native for name in dict.fromkeys(engines) if name in facts}
    if None in known.values() or len(set(known.values())) < 2:
        return ()
    names = ", ".join(name for name, native in known.items() if native)
    return (f"Compiled for this very processor (-march=native): {names}. The other engines are not.",)


def noted(section: Section, facts: Facts) -> Section:
    """The section, each of its sheets with the note that it needs."""
    sheets = (replace(sheet, notes=(*sheet.notes, *native_note(_named(sheet), facts))) for sheet in section.sheets)
    return replace(section, sheets=tuple(sheets))


def _named(sheet: Sheet) -> Iterable[str]:
    """Everything in the sheet that may be an engine: a caveat in brackets may follow its name."""
    yield from sheet.headings
    for row in sheet.rows:
        yield from (figure.text.partition(" ")[0] for figure in row)
