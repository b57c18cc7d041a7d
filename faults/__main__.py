"""The campaign's command line: `run`, `one` and `report`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from faults import campaign, kinds
from faults.campaign import Done
from faults.tally import COUNTS, total
from harness.machine import facts
from results.places import ROOT


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code: 1 if any count is not 0."""
    parser = argparse.ArgumentParser(prog="python -m faults", description="The fault campaign.")
    commands = parser.add_subparsers(dest="command", required=True)

    run = commands.add_parser("run", help="run the remaining batches; resumes where it stopped")
    run.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(kinds.NAMES)}; default: all")
    run.add_argument("--share", type=_share, default=1.0, help="share of each kind's batches; default: 1")
    run.add_argument("--seed", type=int, default=1)
    run.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="batches to run in parallel")
    run.add_argument("--fresh", action="store_true", help="discard earlier results")

    one = commands.add_parser("one", help="repeat one batch")
    one.add_argument("kind", choices=kinds.NAMES)
    one.add_argument("index", type=int)
    one.add_argument("--seed", type=int, default=1)

    commands.add_parser("report", help="write docs/reliability.md from the stored results")

    chosen = parser.parse_args(arguments)
    if chosen.command == "run":
        unknown = sorted({*chosen.kinds} - {*kinds.NAMES})
        if unknown:
            parser.error(f"there is no kind {unknown[0]!r}; known: {', '.join(kinds.NAMES)}")
        return _run(chosen.kinds or kinds.NAMES, chosen)
    if chosen.command == "one":
        done = campaign.one(chosen.kind, chosen.index, chosen.seed, facts.commit(ROOT))
        _tell(done)
        return 1 if done.tally.failures else 0
    from faults import reliability

    _print(f"wrote {reliability.write()}")
    return 0


def _share(text: str) -> float:
    share = float(text)
    if not 0.0 < share <= 1.0:
        raise argparse.ArgumentTypeError("must be more than 0 and at most 1")
    return share


def _run(names: Sequence[str], chosen: argparse.Namespace) -> int:
    if chosen.fresh:
        for name in names:
            campaign.Kept(name).forget()
    try:
        finished = campaign.run(names, share=chosen.share, seed=chosen.seed, jobs=chosen.jobs, told=_tell)
    except KeyboardInterrupt:
        _print("Interrupted. The same command resumes from here.")
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
    _print("Next: python -m faults report" if not failures else "Each failure above shows the command that repeats it.")
    return 1 if failures else 0


def _tell(done: Done) -> None:
    """Print one line for a batch and one for each failure."""
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
