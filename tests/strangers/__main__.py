"""Run every micrograd program in a folder under `tuple` and other engines, and print how each fares.

`python -m tests.strangers FOLDER [--engines native,hoisted,compiled:tcc] [--seconds 60] [--only TEXT] [--json FILE]`

Run programs that you would run anyway: the child process limits careless programs, not hostile ones.
"""

import argparse
import dataclasses
import functools
import json
import sys
from collections import Counter
from pathlib import Path

from tests.strangers.find import programs
from tests.strangers.judge import SAME, judge
from tests.strangers.run import run
from tests.strangers.wrap import COMPILED
from zoomgrad import engines

SHORTEST = 0.2
"""Seconds of processor time below which a ratio says nothing."""


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.strangers", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--engines", default="native,hoisted", help="compared with tuple (%(default)s); compiled:tcc decorates"
    )
    parser.add_argument("--seconds", type=int, default=60, help="of processor time for one run (%(default)s)")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the programs' packages")
    parser.add_argument("--only", default="", help="programs whose name contains this text")
    parser.add_argument("--json", type=Path, help="write the verdicts to this new file")
    chosen = parser.parse_args()
    if not chosen.folder.is_dir():
        parser.error(f"{chosen.folder} is not a folder\n  Name a folder with one folder per project.")
    if chosen.json and chosen.json.exists():
        parser.error(f"{chosen.json} exists\n  Name a new file.")
    names = [name for name in chosen.engines.split(",") if name]
    for name in names:
        try:
            engines.load(name.rpartition(":")[2])
        except (engines.UnknownName, engines.WrongSuffix) as error:
            parser.error(str(error))
    one = functools.partial(run, seconds=chosen.seconds, python=chosen.python)
    verdicts = []
    for program in programs(chosen.folder):
        if chosen.only in program.name:
            verdicts.append(judge(program, names, one))
            print(line(verdicts[-1], names), flush=True)
    print(*summary(verdicts, names), sep="\n")
    if chosen.json:
        text = json.dumps([dataclasses.asdict(verdict) for verdict in verdicts], indent=1)
        chosen.json.write_text(text + "\n", encoding="utf-8")
    return 0 if verdicts else 1


def line(verdict, engines):
    """One program's line of the table."""
    if verdict.alone:
        return f"-          {verdict.program}: does not run by itself: {verdict.alone}"
    if verdict.reason:
        return f"fails      {verdict.program}: {verdict.reason}"
    state = "unchanged" if verdict.unchanged else "differs"
    speeds = ", ".join(f"{engine} {speed(verdict, engine)}" for engine in engines)
    differing = [f"{engine}: {found}" for engine, found in verdict.engines.items() if found != SAME]
    own = f"not as by itself: {verdict.from_alone}" if verdict.from_alone else "as by itself"
    moved = f"compiles with {verdict.moved} lines moved"
    moved = moved if verdict.compiled == SAME else f"not compiled: {verdict.compiled}"
    parts = [f"{verdict.values:,} Values", own, *differing, *filter(None, [verdict.compiled and moved]), speeds]
    return f"{state:<10} {verdict.program}: {'; '.join(parts)}"


def speed(verdict, engine):
    """How many times as fast as the program by itself; nothing for one that takes too little time to tell."""
    alone, found = verdict.seconds[""], verdict.seconds.get(engine, 0)
    return f"{alone / found:.1f}×" if alone >= SHORTEST and found else "-"


def summary(verdicts, engines):
    """The totals."""
    able = [verdict for verdict in verdicts if not verdict.alone]
    interpreted = [engine for engine in engines if not engine.startswith(COMPILED)]
    yield f"\n{len(verdicts)} programs, of which {len(able)} run by themselves"
    yield f"  {sum(v.unchanged for v in able)} run unchanged on {' or '.join(interpreted)} with the bits of tuple"
    for engine in interpreted:
        yield f"    {sum(v.engines.get(engine) == SAME for v in able):4} on {engine}"
    own = [v.from_alone for v in able if v.unchanged]
    yield f"  {own.count('')} of these print what they print by themselves, {own.count('last digits')} other digits"
    if any(v.compiled for v in able):
        yield f"  {sum(v.compiled == SAME for v in able)} compile with the decorator, and all Values left have the bits"
    yield f"  {sum(v.values > 0 for v in able)} leave Values at their top level, {sum(v.values for v in able):,} in all"
    for title, reasons in (
        ("do not run by themselves", [_short(v.alone) for v in verdicts if v.alone]),
        ("fail on tuple", [_short(v.reason) for v in able if v.reason]),
        ("are not compiled", [_short(v.compiled) for v in able if v.compiled not in ("", SAME)]),
    ):
        yield f"reasons why {len(reasons)} {title}:"
        yield from (f"  {count:4} {reason}" for reason, count in Counter(reasons).most_common())


def _short(reason):
    return reason.split("\n")[0][:110]


if __name__ == "__main__":
    sys.exit(main())
