"""Kept batches -> docs/reliability.md: the table of faults, and what it was made with."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from faults import kinds
from faults.campaign import KEPT, Done, Kept
from faults.tally import COUNTS, total
from harness import machine
from harness.interpreters import ROOT

PAGE = ROOT / "docs" / "reliability.md"

MACHINE = ("processor", "cores", "memory", "system", "libc", "gcc", "clang", "tcc")
"""What a reader may know of the machine: no name, no path."""

TOP = """\
# Reliability

The fault campaign does to zoomgrad what users, machines and strangers might do: it kills runs, fills disks, runs
engines that misbehave, damages files, and compiles random graphs. This page is generated: `python -m faults report`.

Each row is a kind of fault. A *try* is one fault in a scratch tree of its own. The other columns count what went wrong
in all tries together; each must be 0.

- *Records lost*: a result that was on disk before the fault is gone or another afterwards, or a resumed run is not
  complete.
- *Records torn*: a file of a run that can't be read after the fault.
- *Crashes*: a traceback, a signal, an exception that is not one of the documented ones, an unexpected exit code, or a
  sanitizer's report.
- *Hangs*: something was still running long after it should have ended.
- *Files touched outside the run folder*: in the scratch home, among other runs, or in the checkout.
- *Mismatches*: a number that differs from the reference's, or a record that does not say what happened.
- *Processes left over*: whatever session or name they have.
"""

BOTTOM = """\
## What is left out

Engines are code that runs as you do. One that replaces the clock, forges pyperf's file or removes your files is not
contained, so the campaign has no such engine. Engines that are not strict (`-fma`, `-fast`) promise no bits: `graphs`
leaves them out, and `sanitizers` does not compare their numbers.

## Run it again

    tox -e faults                         the whole campaign; goes on where it ended
    tox -e faults -- run --share 0.1      a tenth of each kind
    tox -e faults -- run kills --fresh    one kind, from the start
    tox -e faults -- report               this page

A failure prints the command that repeats its batch, as in `python -m faults one kills 3 --seed 1`. Everything random
comes from that seed. The moment of a kill also depends on the machine's speed, and so may how a try ends.
"""


def write(folder: Path = KEPT, page: Path = PAGE) -> Path:
    """Write the page from what is kept there."""
    page.write_text(told({name: list(Kept(name, folder).read().values()) for name in kinds.NAMES}), encoding="utf-8")
    return page


def told(found: Mapping[str, Sequence[Done]]) -> str:
    """The page's text. found: the batches of each kind."""
    headings = ["kind", "faults", "share done", "tries", *COUNTS.values()]
    lines = ["| " + " | ".join(headings) + " |", "|---|---|" + "---:|" * (len(headings) - 2)]
    for name in kinds.NAMES:
        lines.append("| " + " | ".join(_row(name, found.get(name, ()))) + " |")
    everything = [done for batches in found.values() for done in batches]
    return "\n".join([TOP, *lines, "", *_notes(found), "## Made with", "", *_made_with(everything), "", BOTTOM])


def _row(name: str, batches: Sequence[Done]) -> list[str]:
    kind = kinds.load(name)
    done = [batch for batch in batches if not batch.skipped]
    tally = total(batch.tally for batch in done)
    counts = [f"{getattr(tally, count):,}" for count in COUNTS]
    # The share is rounded down: 100 % means complete.
    return [
        f"`{name}`",
        kind.FAULTS,
        f"{100 * len(done) // kind.BATCHES} %",
        f"{tally.tries:,}",
        *(counts if done else ["" for _ in counts]),
    ]


def _notes(found: Mapping[str, Sequence[Done]]) -> list[str]:
    """What could not run, and every failure with the command that repeats it."""
    lines = []
    for name, batches in found.items():
        reasons = {reason for batch in batches for reason in (batch.skipped, *batch.tally.remarks) if reason}
        lines += [f"`{name}` was not tried in full: {reason}.\n" for reason in sorted(reasons)]
    failures = [done for batches in found.values() for done in batches if done.tally.failures]
    if failures:
        lines += ["## Failures", ""]
        lines += [f"- `{done.command}`: {done.tally.failures} failures" for done in failures]
    return [*lines, ""] if lines else []


def _made_with(batches: Sequence[Done]) -> list[str]:
    commits = ", ".join(sorted({done.commit or "unknown" for done in batches})) or "nothing yet"
    seeds = ", ".join(map(str, sorted({done.seed for done in batches}))) or "none"
    dates = sorted(done.at for done in batches)
    hours = sum(done.seconds for done in batches) / 3600
    facts = machine.facts()
    lines = [
        f"- command: `python -m faults run`, seed {seeds}",
        f"- commit: {commits} (`+`: with changes that were not committed)",
        f"- date: {dates[0]} to {dates[-1]} UTC; the batches took {hours:.1f} hours together"
        if dates
        else "- date: never",
        f"- Python: {platform.python_implementation()} {platform.python_version()} on {sys.platform}",
    ]
    # A kernel's full version names its builder.
    facts["system"] = " ".join([platform.system(), *re.findall(r"^\d+\.\d+", platform.release())])
    return lines + [f"- {name}: {facts[name]}" for name in MACHINE if name in facts]
