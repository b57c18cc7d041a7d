"""Run every micrograd program in a folder by itself and under `zoomgrad exec`, and print how each fares.

`python -m tests.strangers FOLDER [--compiled tcc] [--seconds 60] [--only TEXT] [--json FILE]`

Run programs that you would run anyway: the child process limits careless programs, not hostile ones.
"""

import argparse
import dataclasses
import functools
import json
import statistics
import sys
from collections import Counter
from pathlib import Path

from tests.strangers.find import programs
from tests.strangers.judge import EXEC, LAST_DIGITS, SAME, judge
from tests.strangers.run import run

LONG, SHORT = 2.0, 0.5
"""Seconds of processor time by itself: a speedup counts from the first, and being slower from the second."""


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.strangers", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--compiled", default="", metavar="ENGINE", help="also put the losses under the decorator")
    parser.add_argument("--seconds", type=int, default=60, help="of processor time for one run (%(default)s)")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the programs' packages")
    parser.add_argument("--only", default="", help="programs whose name contains this text")
    parser.add_argument("--json", type=Path, help="write the verdicts to this new file")
    chosen = parser.parse_args()
    if not chosen.folder.is_dir():
        parser.error(f"{chosen.folder} is not a folder\n  Name a folder with one folder per project.")
    if chosen.json and chosen.json.exists():
        parser.error(f"{chosen.json} exists\n  Name a new file.")
    one = functools.partial(run, seconds=chosen.seconds, python=chosen.python)
    verdicts = []
    for program in programs(chosen.folder):
        if chosen.only in program.name:
            verdicts.append(judge(program, chosen.compiled, one))
            print(line(verdicts[-1]), flush=True)
    print(*summary(verdicts), sep="\n")
    if chosen.json:
        text = json.dumps([dataclasses.asdict(verdict) for verdict in verdicts], indent=1)
        chosen.json.write_text(text + "\n", encoding="utf-8")
    return 0 if verdicts else 1


def line(verdict):
    """One program's line of the table."""
    if verdict.alone:
        return f"-         {verdict.program}: does not run by itself: {verdict.alone}"
    state = "in C" if verdict.replaced else "as it is" if verdict.defines else "micrograd"
    times = f"{verdict.seconds['']:.2f} s -> {verdict.seconds[EXEC]:.2f} s"
    reasons = [text.partition(" runs as it is, because ")[2] for text in verdict.lines]
    compiled = f"compiles: {verdict.compiled} ({verdict.moved} lines moved)" if verdict.compiled else ""
    return f"{state:<9} {verdict.program}: {'; '.join(filter(None, [verdict.exec, times, compiled, *reasons]))}"


def summary(verdicts):
    """The totals."""
    able = [verdict for verdict in verdicts if not verdict.alone]
    yield f"\n{len(verdicts)} programs, of which {len(able)} run by themselves"
    yield f"  {sum(v.exec in (SAME, LAST_DIGITS) for v in able)} print the same under exec, of which"
    yield f"  {sum(v.exec == LAST_DIGITS for v in able)} in other last digits"
    own = [v for v in able if v.defines]
    replaced = [v for v in own if v.replaced]
    yield f"  {len(own)} define their own Value; of {len(replaced)} it runs in C"
    times = sorted(v.speedup for v in replaced if v.seconds[""] >= LONG)
    if times:
        yield f"  {len(times)} of these take {LONG} s and more; the median speedup is {statistics.median(times):.1f}"
    slower = sum(v.speedup < 1 for v in replaced if v.seconds[""] >= SHORT)
    yield f"  {slower} that take {SHORT} s and more got slower"
    if any(v.compiled for v in able):
        having = [v for v in able if v.moved]
        count = sum(v.compiled == SAME for v in having)
        yield f"  {len(having)} have a loss, of which {count} compile with the decorator"
    for title, reasons in (
        ("do not run by themselves", [_short(v.alone) for v in verdicts if v.alone]),
        ("print something else", [_short(v.exec) for v in able if v.exec not in (SAME, LAST_DIGITS)]),
        ("are not compiled", [_short(v.compiled) for v in able if v.compiled not in ("", SAME)]),
    ):
        yield f"reasons why {len(reasons)} {title}:"
        yield from (f"  {count:4} {reason}" for reason, count in Counter(reasons).most_common())


def _short(reason):
    return reason.split("\n")[0][:110]


if __name__ == "__main__":
    sys.exit(main())
