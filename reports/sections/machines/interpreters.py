"""View -> the table of interpreters: what each prints as its version, and the compiler and flags that built it."""

from __future__ import annotations

from reports.text.figures import Figure, Section, Sheet
from reports.view import View
from results import units

_LEAD = (
    "A build's compiler and flags decide how fast it interprets: link-time and profile-guided optimisation alone are "
    "worth tens of percent. Flags that hold paths are left out."
)


def interpreters(view: View) -> Section | None:
    """One row for each interpreter of the run that was there; None if none says how it was built."""
    rows = tuple(
        (
            Figure(name),
            Figure(facts.version),
            *(Figure(facts.build.get(key) or units.ABSENT) for key in ("compiler", "configure", "cflags")),
        )
        for name, facts in view.run.interpreters.items()
        if facts.build
    )
    sheet = Sheet("", 5, ("interpreter", "version", "compiler", "configured with", "flags"), rows, folded=False)
    return Section("interpreter-builds", "Interpreters", _LEAD, (sheet,)) if rows else None
