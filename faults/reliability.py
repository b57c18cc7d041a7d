"""Stored batches -> docs/reliability.md: the table of faults and how it was made."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from faults import kinds
from faults.campaign import KEPT, Done, Kept
from faults.tally import COUNTS, total
from harness.machine import facts
from results.places import ROOT

PAGE = ROOT / "docs" / "reliability.md"

MACHINE = ("processor", "cores", "memory", "system", "libc", "gcc", "clang", "tcc")
"""Facts about the machine that may be published: no names, no paths."""

TOP = """\
# Reliability

This page shows how often zoomgrad kept its promises under faults. The fault campaign kills runs, fills disks, runs
engines that misbehave, damages files, and compiles random graphs. `python -m faults report` generates the page.

Each row is a kind of fault. A *try* is one fault in its own scratch tree. The remaining columns count failures over all
tries; each must be 0.

- *Records lost*: a result that was on disk before the fault is missing or different afterwards, or a resumed run is
  incomplete.
- *Records torn*: a file of a run is unreadable after the fault.
- *Crashes*: a traceback, a signal, an undocumented exception, an unexpected exit code, or a sanitizer's report.
- *Hangs*: something was still running long after it should have ended.
- *Files touched outside the run folder*: in the scratch home, among other runs, or in the checkout.
- *Mismatches*: a number differs from the reference's, or a record does not say what happened.
- *Processes left over*: any descendant that is still running, in any session and under any name.
"""

BOTTOM = """\
## What is left out

Engines run with your rights. Workers cannot contain an engine that replaces the clock, forges pyperf's file or removes
your files, so the campaign has no such engine. Engines that are not strict (`-fma`, `-fast`) do not promise identical
bits: `graphs` leaves them out, and `sanitizers` does not compare their numbers.

## Run it again

```
tox -e faults                         the whole campaign; resumes where it stopped
tox -e faults -- run --share 0.1      a tenth of each kind
tox -e faults -- run kills --fresh    one kind, from the start
tox -e faults -- report               this page
```

A failure prints the command that repeats its batch, such as `python -m faults one kills 3 --seed 1`. That seed
determines every random choice. The moment of a kill also depends on the machine's speed, and so may the outcome of a
try.
"""


def write(folder: Path = KEPT, page: Path = PAGE) -> Path:
    """Write the page from the results in the folder."""
    page.write_text(told({name: list(Kept(name, folder).read().values()) for name in kinds.NAMES}), encoding="utf-8")
    return page


def told(found: Mapping[str, Sequence[Done]]) -> str:
    """Text of the page. found: the batches of each kind."""
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
    # Round the share down, so that 100 % means complete.
    return [
        f"`{name}`",
        kind.FAULTS,
        f"{100 * len(done) // kind.BATCHES} %",
        f"{tally.tries:,}",
        *(counts if done else ["" for _ in counts]),
    ]


def _notes(found: Mapping[str, Sequence[Done]]) -> list[str]:
    """Lines on what could not run, and on every failure with the command that repeats it."""
    lines = []
    for name, batches in found.items():
        reasons = {reason for batch in batches for reason in (batch.skipped, *batch.tally.remarks) if reason}
        lines += [f"`{name}` is incomplete: {reason}.\n" for reason in sorted(reasons)]
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
    known = facts.gather()
    lines = [
        f"- command: `python -m faults run`, seed {seeds}",
        f"- commit: {commits} (`+`: with uncommitted changes)",
        f"- date: {dates[0]} to {dates[-1]} UTC; the batches took {hours:.1f} hours in total"
        if dates
        else "- date: never",
        f"- Python: {platform.python_implementation()} {platform.python_version()} on {sys.platform}",
    ]
    # The kernel's full version may name its builder.
    known["system"] = " ".join([platform.system(), *re.findall(r"^\d+\.\d+", platform.release())])
    return lines + [f"- {name}: {known[name]}" for name in MACHINE if name in known]
