"""Coverage of intervals over hosts: `python -m tests.studies.hosts [TRIALS]` prints the table of
docs/proof.md.

Each host has its own factor on the speedup, each block on a host another, both on logarithms. The seed is fixed.
"""

from __future__ import annotations

import math
import sys
from functools import cache
from statistics import fmean

import numpy as np

from zoomgrad.results.stats.clusters import disagree, of_fleet, of_type

TRUTH = 3.0
BLOCK = 0.05


def normal(rng, size, spread):
    return rng.normal(0, spread, size)


def skewed(rng, size, spread):
    """Log-normal delays with that spread and mean 0."""
    raw = np.exp(rng.normal(0, 0.75, size))
    return spread * (raw - math.exp(0.75**2 / 2)) / (math.exp(0.75**2 / 2) * math.sqrt(math.exp(0.75**2) - 1))


def disturbed(rng, size, spread):
    """One block in ten takes 1.5 times as long in one of the two engines, in either as often."""
    return rng.normal(0, spread, size) + math.log(1.5) * (rng.random(size) < 0.1) * rng.choice([-1, 1], size)


SCENARIOS = {
    "equal hosts": (0.0, normal, normal),
    "hosts differ by 2 %": (0.02, normal, normal),
    "hosts differ by 10 %": (0.10, normal, normal),
    "hosts differ by 2 %, 1 block in 10 disturbed": (0.02, normal, disturbed),
    "hosts differ by 5 %, skewed": (0.05, skewed, skewed),
}
"""Spread of hosts, and the distributions of hosts and of blocks."""


def trial(rng, scenario, hosts, blocks, uneven=False):
    """Logarithms of ratios by host, and the mean of these very hosts."""
    spread, of_hosts, of_blocks = SCENARIOS[scenario]
    effects = math.log(TRUTH) + of_hosts(rng, hosts, spread)
    counts = rng.integers(2, 2 * blocks - 1, hosts) if uneven else np.full(hosts, blocks)
    return [(effect + of_blocks(rng, count, BLOCK)).tolist() for effect, count in zip(effects, counts, strict=True)], (
        math.exp(fmean(effects))
    )


@cache
def typical(scenario, blocks, uneven):
    """The median host's figure, which is not the mean host's if hosts are skewed."""
    rng, (_, of_hosts, _) = np.random.default_rng(1), SCENARIOS[scenario]
    if of_hosts is normal:
        return TRUTH
    logs, _ = trial(rng, scenario, 100_000, blocks, uneven)
    return math.exp(float(np.median([sum(one) / len(one) for one in logs])))


def covered(scenario, hosts, blocks, trials=2000, uneven=False):
    """Percentages: intervals that hold the median host's speedup, or these hosts' own; hosts said to disagree."""
    rng, truth, found = np.random.default_rng(7), typical(scenario, blocks, uneven), []
    for _ in range(trials):
        logs, own = trial(rng, scenario, hosts, blocks, uneven)
        kind, fleet = of_type(logs), of_fleet(logs)
        found.append((kind.low <= truth <= kind.high, fleet.low <= own <= fleet.high, disagree(logs)))
    return tuple(100 * float(np.mean(column)) for column in zip(*found, strict=True))


SIZES = ((3, 5), (5, 5), (16, 5), (16, 10))


def main(trials=2000):
    """Print the table."""
    print("| type; these hosts; said to differ | " + " | ".join(f"{h} hosts × {b} blocks" for h, b in SIZES) + " |")
    print("|---|" + "---:|" * len(SIZES))
    for uneven in (False, True):
        for name in SCENARIOS:
            figures = [covered(name, *size, trials, uneven) for size in SIZES]
            cells = (f"{kind:.1f}; {own:.1f}; {differ:.0f}" for kind, own, differ in figures)
            print(f"| {name}{', uneven numbers of blocks' if uneven else ''} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
