"""Run -> on which machine it was measured, with which compilers and interpreters, and by which command."""

from __future__ import annotations

import shlex

from zoomgrad.reports.text.figures import Figure, Section, Sheet
from zoomgrad.reports.view import View
from zoomgrad.results import units

_IN_SHORT = {"processor": "", "cpu": "", "cores": "cores: ", "memory": "", "system": ""}
"""Facts of the answer -> the word before each."""


def machine(view: View) -> Section:
    """Facts of the machine and the run, the flags of each compiled engine, and each interpreter's version."""
    run = view.run
    facts = {
        **run.machine,
        "command": shlex.join(run.command),
        "preset": f"{run.preset}, {units.count(run.blocks, 'block')}, seed {run.seed}",
        "commit": run.commit or "unknown",
        **{name: facts.version for name, facts in run.interpreters.items()},
    }
    if run.hosts:
        facts["hosts"] = ", ".join(run.hosts)
    rows = tuple((Figure(name), Figure(value, mark="reason")) for name, value in facts.items())
    sheets = [Sheet("", 2, ("fact", "value"), rows)]
    if flags := _flags(view):
        lines = tuple((Figure(", ".join(names)), Figure(text, mark="code")) for text, names in flags.items())
        sheets.append(Sheet("Compilers and flags", 2, ("engines", "compiler and flags"), lines))
    known = ", ".join(f"{_IN_SHORT[name]}{run.machine[name]}" for name in _IN_SHORT if name in run.machine)
    answer = known or "The run does not say"
    return Section("machine", "On which machine, and how?", answer, tuple(sheets))


def _flags(view: View) -> dict[str, list[str]]:
    """Compiler and flags -> the engines that use them. Search paths change no code and name folders of one machine."""
    engines: dict[str, list[str]] = {}
    for record in view.records:
        if record.compiler:
            text = " ".join((record.compiler, *(flag for flag in record.compiler_flags if not flag.startswith("-I"))))
            names = engines.setdefault(text, [])
            if record.cell.engine not in names:
                names.append(record.cell.engine)
    return engines
