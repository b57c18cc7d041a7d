"""Run every micrograd program in a folder by itself and under `zoomgrad exec`, and print how each fares.

`python -m tests.strangers FOLDER [--seconds 60] [--only TEXT]`

Run programs that you would run anyway: the child process limits careless programs, not hostile ones.
"""

import argparse
import functools
import sys
from collections import Counter
from pathlib import Path

from tests.strangers.find import programs
from tests.strangers.judge import LAST_DIGITS, SAME, judge
from tests.strangers.run import run


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.strangers", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="with one folder per project")
    parser.add_argument("--seconds", type=int, default=60, help="of processor time for one run (%(default)s)")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the programs' packages")
    parser.add_argument("--only", default="", help="programs whose name contains this text")
    chosen = parser.parse_args()
    one = functools.partial(run, seconds=chosen.seconds, python=chosen.python)
    verdicts = []
    for program in programs(chosen.folder):
        if chosen.only in program.name:
            verdicts.append(judge(program, one))
            print(line(verdicts[-1]), flush=True)
    print(*summary(verdicts), sep="\n")
    return 0 if verdicts else 1


def line(verdict):
    """One program's line of the table."""
    if verdict.alone:
        return f"{verdict.program}: - {verdict.alone}"
    state = "in C" if verdict.replaced else "as it is" if verdict.defines else "micrograd"
    reasons = [text.partition(" runs as it is, because ")[2] for text in verdict.lines]
    return f"{verdict.program}: {'; '.join(filter(None, [state, verdict.exec, *reasons]))}"


def summary(verdicts):
    """The totals."""
    able = [verdict for verdict in verdicts if not verdict.alone]
    own = [verdict for verdict in able if verdict.defines]
    yield f"\n{len(verdicts)} programs, of which {len(able)} run by themselves"
    yield f"  {sum(v.exec in (SAME, LAST_DIGITS) for v in able)} print the same under exec, of which"
    yield f"  {sum(v.exec == LAST_DIGITS for v in able)} in other last digits"
    yield f"  {len(own)} define their own Value; of {sum(v.replaced for v in own)} it runs in C"
    for title, reasons in (
        ("do not run by themselves", [_short(v.alone) for v in verdicts if v.alone]),
        ("print something else", [_short(v.exec) for v in able if v.exec not in (SAME, LAST_DIGITS)]),
    ):
        yield f"reasons why {len(reasons)} {title}:"
        yield from (f"  {count:4} {reason}" for reason, count in Counter(reasons).most_common())


def _short(reason):
    return reason.split("\n")[0][:110]


if __name__ == "__main__":
    sys.exit(main())
