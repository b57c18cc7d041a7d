"""docs/cli.md is what the commands and the record say about themselves. `--update-golden` writes it."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.test_readme import ROOT
from zoomgrad.harness.cli import COMMANDS, load
from zoomgrad.results.record import Figures

PAGE = ROOT / "docs" / "cli.md"
HEAD = """# The command line

One section for each command, in the order of use, generated from the commands themselves; [using.md](using.md) has
examples. A name of an engine, a workload or an interpreter is one that `zoomgrad list` prints; a run is an id or a
folder. A command ends with exit code 0 if nothing failed, 1 if a cell, a check or the disk failed, 2 after wrong use,
and 130 after Ctrl-C, with the command that resumes.

Every command that uses engines also takes `--suite FILE.toml`, `--engine-file FILE.py` and `--workload-file FILE.py`:
[using.md](using.md#your-own-suite-as-a-gate-for-pull-requests).
"""


def row(parameter, context):
    """An option's or an argument's row of the table. Each says what it is for."""
    assert parameter.help, f"{context.info_name}: {parameter.name}"
    name, text = parameter.get_help_record(context)
    return f"| `{name}` | {' '.join(text.split())} |".replace("||", "\\|\\|")


def rows(name):
    """The rows of a command's arguments, then of its options."""
    command = load(name)
    context = command.make_context(name, [], resilient_parsing=True)
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.expose_value]
    return [row(parameter, context) for parameter in (*arguments, *options)]


def table(lines):
    return "\n".join(["| | |", "|---|---|", *lines])


def section(name, shared):
    """A command's section: what it does, then its arguments and options; those of several commands by their names."""
    own = [line for line in rows(name) if line not in shared]
    also = [line.split("`")[1].split()[0].strip(",") for line in rows(name) if line in shared]
    parts = [" ".join(part.split()) for part in load(name).help.split("\n\n")]
    if own:
        parts.append(table(own))
    if also:
        parts.append(f"Also {', '.join(f'`{option}`' for option in also)}.")
    return "\n\n".join([f"## zoomgrad {name}", *parts])


def figures():
    """The figures of a measured cell, as results/record.py describes them: names in records and exports."""
    described = ((name, field.description) for name, field in Figures.model_fields.items())
    return [f"| `{name}` | {' '.join(text.split())} |" for name, text in described if text]


def page():
    """The whole page. Options that several commands describe in the same words are listed once."""
    counts = Counter(line for name in COMMANDS for line in rows(name))
    shared = [line for line, count in counts.items() if count > 1]
    several = f"## Arguments and options of several commands\n\n{table(shared)}"
    last = f"## Figures of records and exports\n\n{table(figures())}"
    return "\n\n".join([HEAD.strip(), several, *(section(name, shared) for name in COMMANDS), last]) + "\n"


@pytest.mark.host
def test_the_reference_is_what_the_commands_say(request):
    text = page()
    if request.config.getoption("--update-golden"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, "run `pytest tests/test_cli_reference.py --update-golden`"
