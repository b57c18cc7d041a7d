"""Error rates of `zoomgrad ab`: `python -m tests.harness.ab_trials FOLDER` prints a table.

The script clones the checkout's HEAD, commits planted slowdowns there, and compares HEAD with each of them, and with an
equal commit, in real duets of one cheap cell. A planted slowdown makes every training of a compiled engine take that
much longer. Each trial is kept as a line of FOLDER/trials.jsonl and is not repeated, so the same command goes on after
it was stopped or killed. A trial ends within `--budget` and a block; one that fails is a line too, and is tried again
the next time. Let it run alone for a night: 20 trials of each slowdown take two hours if each takes three minutes.
"""

import argparse
import json
import shutil
import subprocess
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from harness.containment import Limits
from harness.duet import commits, compare
from harness.machine import environments, interpreters
from harness.run.lock import locked
from results.duet.blocks import Duet
from results.files import Unreadable
from results.places import ROOT
from results.record import Cell

BLOCK_SECONDS = 60.0
PLACE = "engines/kernel/trainer.py"
PLANT = """

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


def planted(folder, share):
    """Commit a slowdown in the clone, and return its hash. 0: an empty commit."""
    git(folder, "checkout", "--quiet", "--force", "--detach", "start")
    file = folder / PLACE
    if share:
        file.write_text(f"{file.read_text()}\nfrom time import perf_counter\n{PLANT.format(share=share)}")
    git(folder, "commit", "--quiet", "--allow-empty", "--all", "--message", f"slower by {share:.0%}")
    return git(folder, "rev-parse", "HEAD")


def cloned(folder):
    """A clone of the checkout, whose commit `start` is the checkout's HEAD."""
    clone = folder / "clone"
    if not (clone / ".git/refs/tags/start").exists():
        shutil.rmtree(clone, ignore_errors=True)  # half of one
        git(ROOT, "clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(clone))
        git(clone, "checkout", "--quiet", "--detach", git(ROOT, "rev-parse", "HEAD"))
        git(clone, "tag", "start")
    return clone


def trial(clone, sha, cell, budget_seconds):
    """One real duet of `start` and that commit; what it found about the cell's steps."""
    interpreter = interpreters.reference(interpreters.discover())
    pythons = {interpreter.name: (environments.environment(interpreter), interpreter.has_jit)}
    both = {"base": commits.commit("start", clone), "head": commits.commit(sha, clone)}
    now = datetime.now(UTC)
    duet = Duet(
        id="trial",
        created_at=now,
        command=(),
        base=both["base"],
        head=both["head"],
        cells=(Cell(engine=cell.split("/")[0], interpreter=interpreter.name, workload=cell.split("/")[1]),),
        figures=("step",),
        within=0.02,
        budget_seconds=budget_seconds,
        seed=time.time_ns() % 2**32,
    )
    start = time.monotonic()
    with commits.worktrees(both, clone, clone.parent / "worktrees") as places:
        sides = {side: compare.Place(checkout, pythons) for side, checkout in places.items()}
        comparison = compare.Comparison(
            duet, sides, lambda line, found: None, limits=Limits(BLOCK_SECONDS), until=start + budget_seconds
        )
        comparison.measure()
    compare.refuse_hopeless(comparison)
    if comparison.absences:  # a block failed after others had succeeded, so there is no verdict
        raise Unreadable(comparison.absences[0].reason)
    (found,) = [one for one in comparison.found() if one.figure == "step"]
    return {
        "word": found.word,
        "ratio": found.ratio.value,
        "blocks": found.blocks,
        "seconds": time.monotonic() - start,
    }


def kept(log):
    """The trials on disk. Half a line at the end, of a script that was killed, is cut off."""
    text = log.read_text() if log.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        log.write_text(whole)
    return [json.loads(line) for line in whole.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--equal", type=int, default=100)
    parser.add_argument("--slowdowns", type=float, nargs="*", default=[0.05, 0.03])
    parser.add_argument("--cell", default="tcc/xor")
    parser.add_argument("--budget", type=float, default=600.0, help="seconds of a duet")
    parser.add_argument("--most-seconds", type=float, default=float("inf"), help="start no trial after this time")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    log = asked.folder / "trials.jsonl"
    done = [found for found in kept(log) if found["word"] != "failed"]
    clone = cloned(asked.folder.resolve())
    shas = {share: planted(clone, share) for share in (0.0, *asked.slowdowns)}
    wanted = [(0.0, number) for number in range(asked.equal)]
    wanted += [(share, number) for share in asked.slowdowns for number in range(asked.trials)]
    # In turns, so that whatever fits into the time says something about each.
    for share, number in sorted(wanted, key=lambda one: one[1]):
        if number < sum(found["share"] == share for found in done):
            continue
        if time.monotonic() - STARTED > asked.most_seconds:
            break
        with locked(["ab_trials"], waiting=lambda holder: None):
            try:
                found = trial(clone, shas[share], asked.cell, asked.budget)
            except (Unreadable, OSError, subprocess.CalledProcessError) as error:  # the others may still succeed
                found = {"word": "failed", "ratio": 1.0, "blocks": 0, "seconds": 0.0, "reason": str(error)}
            done.append({"share": share, **found})
        with log.open("a") as file:
            file.write(json.dumps(done[-1]) + "\n")
        print(json.dumps(done[-1]), flush=True)
    print(f"\n| `{asked.cell}` | trials | slower | same within 2 % | other | longest |\n|---|---:|---:|---:|---:|---:|")
    for share in shas:
        found = [each for each in done if each["share"] == share]
        words = Counter(each["word"] for each in found)
        other = len(found) - words["slower"] - words["same"]
        longest = max((each["seconds"] for each in found), default=0.0)
        name = f"slower by {share:.0%}" if share else "equal commits"
        print(f"| {name} | {len(found)} | {words['slower']} | {words['same']} | {other} | {longest:.0f} s |")


STARTED = time.monotonic()

if __name__ == "__main__":
    main()
