"""How often a duet errs: `python -m tests.results.duet_trials BLOCKS…` prints the tables of docs/statistics.md.

BLOCKS are files `blocks.jsonl` of duets of a commit with itself. A simulated duet replays a stretch of a cell's blocks,
from a random one on, in their order, so that slow hours stay together. Both sides ran the same code, so which of them
was the base is drawn again for each block. A planted slowdown multiplies the ratios. The second table replays whole
runs: steps and compile times of all cells of one duet, round by round, and their geometric means.
"""

import argparse
import json
import math
import random
from collections import defaultdict
from pathlib import Path
from statistics import fmean, median

import numpy as np

from results.duet.blocks import ERROR, FIGURES, Block
from results.stats import sequential
from results.stats.intervals import step_time

SECONDS = 600.0
"""Budget of a duet."""
WITHIN = 0.02
CELLS = 4
"""Cells of the duet whose family the trials share: those of `zoomgrad ab`."""
ROUNDS = 60
"""Rounds of a simulated run: more than `zoomgrad ab` has time for, so more chances to err."""
SLOWDOWNS = (0.02, 0.03, 0.05, 0.10)


def read(files):
    """Logarithms of the step ratios, and the mean seconds of a block, by cell."""
    logs, seconds = defaultdict(list), defaultdict(list)
    for file in files:
        for line in file.read_text().splitlines():
            for kind, fields in json.loads(line).items():
                if kind == "block":
                    block = Block.model_validate(fields)
                    logs[block.cell.key].append(block.log_ratio("step"))
                    seconds[block.cell.key].append(block.seconds)
    return {key: (found, fmean(seconds[key])) for key, found in logs.items()}


def replayed(logs, count, rng, slowdown=0.0):
    """A simulated sequence of blocks."""
    start = rng.randrange(len(logs))
    return [rng.choice((-1, 1)) * logs[(start + i) % len(logs)] + math.log1p(slowdown) for i in range(count)]


def verdict(values, error):
    """The first verdict of a sequence, and after how many blocks."""
    limit = math.log1p(WITHIN)
    for count in range(1, len(values) + 1):
        low, high = sequential.bounds(values[:count], error)
        if -limit < low and high < limit:
            return "same", count
        if low > 0 or high < 0:
            return ("slower" if low > 0 else "faster"), count
    return "unknown", len(values)


def rounds(file):
    """Logarithms of all figures of a duet, by cell and figure, in the rounds in which every cell was measured."""
    blocks = defaultdict(dict)
    for line in file.read_text().splitlines():
        for kind, fields in json.loads(line).items():
            if kind == "block":
                block = Block.model_validate(fields)
                blocks[block.cell.key][block.block] = block
    common = sorted(set.intersection(*map(set, blocks.values())))
    logs = [
        [[of_cell[number].log_ratio(figure) or 0.0 for number in common] for figure in FIGURES]
        for of_cell in blocks.values()
    ]
    return np.array(logs)  # shape (cells, figures, rounds)


def run_of(logs, count, rng):
    """A simulated run of equal commits: all figures of all cells, and the geometric means; shape (statements, rounds).

    Rounds follow one another as they were measured. Steps and compilations of a block keep their common side.
    """
    places = (rng.integers(logs.shape[2]) + np.arange(count)) % logs.shape[2]
    both = rng.choice((-1, 1), (logs.shape[0], 1, count)) * logs[:, :, places]
    return np.concatenate([both.reshape(-1, count), both.mean(axis=0)] if len(logs) > 1 else [both[0]])


def alarms(duets, count, trials, seed=1):
    """Share of whole runs of equal commits in which any of their intervals ever excludes 1."""
    rng = np.random.default_rng(seed)
    wrong = 0
    for _ in range(trials):
        statements = run_of(duets[rng.integers(len(duets))], count, rng)
        wrong += any(excludes(values, ERROR / len(statements)) for values in statements)
    return wrong / trials


def excludes(values, error):
    """Whether an interval excludes 0 at any time."""
    ranks = np.array([-1 if (r := sequential.rank(n, error)) is None else r for n in range(1, len(values) + 1)])
    return bool(np.any(np.cumsum(values <= 0) <= ranks) or np.any(np.cumsum(values >= 0) <= ranks))


def peeked(values):
    """Whether an ordinary 95 % interval excludes 1 after any block from the third on."""
    found = (step_time([[math.exp(x)] for x in values[:n]]) for n in range(3, len(values) + 1))
    return any(each.low > 1 or each.high < 1 for each in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blocks", type=Path, nargs="+")
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    rng = random.Random(asked.seed)
    cells = read(asked.blocks)
    family = len(FIGURES) * (CELLS + 1)
    headings = " | ".join(f"{share:.0%} slower" for share in SLOWDOWNS)
    print(f"| cell | blocks measured | typical difference | a block | {headings} |")
    print(f"|---|---:|---:|---:|{'---:|' * len(SLOWDOWNS)}")
    for key, (logs, seconds) in cells.items():
        shown = []
        for slowdown in SLOWDOWNS:
            most = int(SECONDS / seconds)
            found = [verdict(replayed(logs, most, rng, slowdown), ERROR / family) for _ in range(asked.trials)]
            caught = [count for word, count in found if word == "slower"]
            when = f", {median(caught) * seconds:.0f} s" if caught else ""
            shown.append(f"{100 * len(caught) / asked.trials:.0f} %{when}")
        spread = 100 * math.expm1(median(map(abs, logs)))
        print(f"| `{key}` | {len(logs)} | {spread:.1f} % | {seconds:.1f} s | {' | '.join(shown)} |")
    duets = [rounds(file) for file in asked.blocks]
    shown = ", ".join(f"{len(logs)} cells in {logs.shape[2]} rounds" for logs in duets)
    print(f"\n| whole runs of equal commits ({shown}), {ROUNDS} rounds each | with a false alarm |\n|---|---:|")
    share = alarms(duets, ROUNDS, 10 * asked.trials, asked.seed)
    print(f"| confidence sequences, {ERROR:.0%} for the whole run | {100 * share:.2f} % of {10 * asked.trials:,} |")
    draw = np.random.default_rng(asked.seed)
    often = fmean(
        any(peeked(values) for values in run_of(duets[draw.integers(len(duets))], ROUNDS, draw))
        for _ in range(asked.trials // 4)
    )
    print(f"| ordinary 95 % intervals, read after each round | {100 * often:.0f} % of {asked.trials // 4:,} |")


if __name__ == "__main__":
    main()
