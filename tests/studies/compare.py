"""Error rates of `zoomgrad compare`: `python -m tests.studies.compare FOLDER` prints a table.

The script clones the checkout's HEAD, commits planted slowdowns there, and compares HEAD with each of them, and with an
equal commit, in real comparisons of one cheap cell. A planted slowdown makes every training of a compiled engine take
that much longer. Each trial is a line of FOLDER/trials.jsonl, so the same command goes on after it was stopped. Let it
run alone for a night: 20 trials of each slowdown take two hours if each takes three minutes.
"""

import argparse
import json
import subprocess
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from zoomgrad.harness.compare import sides
from zoomgrad.harness.compare.turns import Comparison
from zoomgrad.harness.machine import interpreters
from zoomgrad.results.compare import STEP
from zoomgrad.results.places import ROOT
from zoomgrad.results.record import Cell

ENGINE, WORKLOAD = "tcc", "xor"
PLACE = "engines/kernel/trainer.py"
PLANT = """

from time import perf_counter

_train = CompiledTrainer.train


def _slowed(self, *choices, **named):
    start = perf_counter()
    _train(self, *choices, **named)
    until = perf_counter() + {share} * (perf_counter() - start)
    while perf_counter() < until:
        pass


CompiledTrainer.train = _slowed
"""


def git(folder, *arguments):
    name = ("-c", "user.name=trials", "-c", "user.email=trials@localhost")
    done = subprocess.run(["git", "-C", str(folder), *name, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def planted(clone, share):
    """Commit a slowdown in the clone, and return its hash. 0: an empty commit."""
    git(clone, "checkout", "--quiet", "--force", "--detach", "origin/HEAD")
    if share:
        with (clone / PLACE).open("a") as file:
            file.write(PLANT.format(share=share))
    git(clone, "commit", "--quiet", "--allow-empty", "--all", "--message", f"slower by {share:.0%}")
    return git(clone, "rev-parse", "HEAD")


def trial(clone, sha, budget_seconds):
    """One real comparison of HEAD and that commit; its verdict on the cell's steps."""
    interpreter = interpreters.reference(interpreters.discover())
    both = {"base": sides.commit("origin/HEAD", clone), "head": sides.commit(sha, clone)}
    both = {side: replace(one, hosts={interpreter.name: interpreter}) for side, one in both.items()}
    cells = (Cell(engine=ENGINE, interpreter=interpreter.name, workload=WORKLOAD),)
    start = time.monotonic()
    with sides.placed(both, clone) as places:
        comparison = Comparison(places, cells, (), 0.02, time.time_ns() % 2**32)
        list(comparison.measure(start + budget_seconds))
    verdict = next(one for one in comparison.verdicts() if one.figure == STEP)
    return {"word": verdict.word, "ratio": verdict.ratio.value, "seconds": time.monotonic() - start}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--equal", type=int, default=100)
    parser.add_argument("--slowdowns", type=float, nargs="*", default=[0.05, 0.03])
    parser.add_argument("--budget", type=float, default=600.0, help="seconds of a comparison")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    log, clone = asked.folder / "trials.jsonl", asked.folder.resolve() / "clone"
    done = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    if not clone.exists():
        git(ROOT, "clone", "--quiet", "--shared", str(ROOT), str(clone))
    shas = {share: planted(clone, share) for share in (0.0, *asked.slowdowns)}
    wanted = [(0.0, number) for number in range(asked.equal)]
    wanted += [(share, number) for share in asked.slowdowns for number in range(asked.trials)]
    # In turns, so that whatever fits into the time says something about each.
    for share, number in sorted(wanted, key=lambda one: one[1]):
        if number >= sum(found["share"] == share for found in done):
            done.append({"share": share, **trial(clone, shas[share], asked.budget)})
            with log.open("a") as file:
                file.write(json.dumps(done[-1]) + "\n")
            print(done[-1], flush=True)
    print(f"\n| `{ENGINE}/{WORKLOAD}` | trials | slower | same within 2 % | other | longest |")
    print("|---|---:|---:|---:|---:|---:|")
    for share in shas:
        found = [each for each in done if each["share"] == share]
        words = Counter(each["word"] for each in found)
        other = len(found) - words["slower"] - words["same"]
        longest = max((each["seconds"] for each in found), default=0.0)
        name = f"slower by {share:.0%}" if share else "equal commits"
        print(f"| {name} | {len(found)} | {words['slower']} | {words['same']} | {other} | {longest:.0f} s |")


if __name__ == "__main__":
    main()
