"""The campaign's command line: `run`, `one` and `report`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from faults import campaign, kinds
from faults.campaign import Done
from faults.tally import COUNTS, total
from harness import machine
from harness.interpreters import ROOT


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0, or 1 where a count is not 0."""
    parser = argparse.ArgumentParser(prog="python -m faults", description="The fault campaign.")
    commands = parser.add_subparsers(dest="command", required=True)

    run = commands.add_parser("run", help="do what is not done yet; goes on where it ended")
    run.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(kinds.NAMES)}; default: all")
    run.add_argument("--share", type=_share, default=1.0, help="of each kind's batches; default: 1")
    run.add_argument("--seed", type=int, default=1)
    run.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="batches side by side")
    run.add_argument("--fresh", action="store_true", help="forget what was done before")

    one = commands.add_parser("one", help="one batch again")
    one.add_argument("kind", choices=kinds.NAMES)
    one.add_argument("index", type=int)
    one.add_argument("--seed", type=int, default=1)

    commands.add_parser("report", help="write docs/reliability.md from what was done")

    chosen = parser.parse_args(arguments)
    if chosen.command == "run":
        unknown = sorted({*chosen.kinds} - {*kinds.NAMES})
        if unknown:
            parser.error(f"there is no kind {unknown[0]!r}; known: {', '.join(kinds.NAMES)}")
        return _run(chosen.kinds or kinds.NAMES, chosen)
    if chosen.command == "one":
        done = campaign.one(chosen.kind, chosen.index, chosen.seed, machine.commit(ROOT))
        _tell(done)
        return 1 if done.tally.failures else 0
    from faults import reliability

    _print(f"wrote {reliability.write()}")
    return 0


def _share(text: str) -> float:
    share = float(text)
    if not 0.0 < share <= 1.0:
        raise argparse.ArgumentTypeError("more than 0, and 1 at most")
    return share


def _run(names: Sequence[str], chosen: argparse.Namespace) -> int:
    if chosen.fresh:
        for name in names:
            campaign.Kept(name).forget()
    try:
        finished = campaign.run(names, share=chosen.share, seed=chosen.seed, jobs=chosen.jobs, told=_tell)
    except KeyboardInterrupt:
        _print("Interrupted; the same command goes on from here.")
        return 130
    failures = 0
    for name in names:
        batches = [done for done in finished if done.kind == name]
        tally = total(done.tally for done in batches)
        failures += tally.failures
        percent = 100 * len(batches) // kinds.load(name).BATCHES
        skipped = next((done.skipped for done in batches if done.skipped), "")
        found = ", ".join(f"{getattr(tally, each)} {label}" for each, label in COUNTS.items() if getattr(tally, each))
        _print(f"{name}: {percent} % done, {tally.tries:,} tries: {found or skipped or 'nothing went wrong'}")
    _print("Write the table: python -m faults report" if not failures else "Each failure names its command above.")
    return 1 if failures else 0


def _tell(done: Done) -> None:
    """A line a batch, and what went wrong in it."""
    outcome = f"{done.tally.failures} failures" if done.tally.failures else done.skipped or "nothing went wrong"
    _print(f"{done.kind} {done.index}: {done.tally.tries:,} tries in {done.seconds:.0f} s: {outcome}")
    for note in done.tally.notes:
        _print(f"  {note}")
    if done.tally.failures:
        _print(f"  again: {done.command}")


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
