"""Coverage of the 95 % intervals: `python -m tests.results.coverage` prints the tables of docs/statistics.md.

It simulates cells whose true speedup is 3. A scenario gives the slowdown of each process, each of a process's three
values deviates by another 1 %, and all factors multiply. The seed is fixed, so every run prints the same figures. A run
takes two to three minutes.
"""

from __future__ import annotations

import math
from statistics import NormalDist, median

import numpy as np

from results.stats.intervals import change, geometric_mean, speedup, speedup_change, step_time

TRIALS = 2000
TRUTH = 3.0
VALUES, OF_A_VALUE = 3, 0.01
SPREAD = 0.03
RESAMPLES = 500


def factors(rng, processes, spread=SPREAD, disturbed=0.0):
    """Slowdown of each process relative to the truth; a disturbed process takes 1.5 times as long."""
    return np.exp(rng.normal(0, spread, processes)) * np.where(rng.random(processes) < disturbed, 1.5, 1.0)


def skewed(rng, processes):
    """Slowdown of each process: a fastest possible time plus a log-normal delay of about a tenth; most are small."""
    return (1 + 0.1 * np.exp(rng.normal(0, 0.75, processes))) / 1.1


def drift(rng, processes):
    """Slowdown of each block: the machine gets slower by a tenth over the run, and each block deviates by 5 %."""
    return np.linspace(1, 1.1, processes) * np.exp(rng.normal(0, 0.05, processes))


def both(make, **fields):
    return lambda rng, n: (make(rng, n, **fields), make(rng, n, **fields))


def drifting(disturbed):
    def pair(rng, n):
        common = drift(rng, n)
        return common * factors(rng, n, disturbed=disturbed), common * factors(rng, n, disturbed=disturbed)

    return pair


SCENARIOS = {
    "equal spread, 3 %": both(factors),
    "unequal spread, 2 and 10 %": lambda rng, n: (factors(rng, n, 0.02), factors(rng, n, 0.1)),
    "wide log-normal, 30 %": both(factors, spread=0.3),
    "log-normal delays": both(skewed),
    "1 process in 10 disturbed": both(factors, disturbed=0.1),
    "the same, spread 2 and 6 %": lambda rng, n: (factors(rng, n, 0.02, 0.1), factors(rng, n, 0.06, 0.1)),
    "blocks drift": drifting(0.0),
    "blocks drift, 1 in 10 disturbed": drifting(0.1),
    "log-normal delays in one engine": lambda rng, n: (factors(rng, n), skewed(rng, n)),
    "1 in 10 disturbed in one engine": lambda rng, n: (factors(rng, n), factors(rng, n, disturbed=0.1)),
}
"""Number of processes -> slowdowns of the baseline's and of the engine's; the n-th of both are in one block."""


def samples(rng, of_processes, seconds=1.0):
    return (seconds * of_processes[:, None] * np.exp(rng.normal(0, OF_A_VALUE, (len(of_processes), VALUES)))).tolist()


def cell(rng, scenario, processes):
    """Return the samples of a baseline and of an engine."""
    base, engine = SCENARIOS[scenario](rng, processes)
    return samples(rng, base, TRUTH), samples(rng, engine)


# Alternatives to `speedup`


def percentile_bootstrap(base, engine, rng):
    """Resample each side's processes, then values within each; return the middle 95 % of the ratios of medians."""

    def medians(side):
        side = np.asarray(side)
        chosen = rng.integers(len(side), size=(RESAMPLES, len(side)))
        values = rng.integers(VALUES, size=(RESAMPLES, len(side), VALUES))
        return np.median(side[chosen[:, :, None], values].mean(2), axis=1)

    return tuple(np.percentile(medians(base) / medians(engine), [2.5, 97.5]))


def price_bonett(base, engine, _):
    """Price and Bonett, "Distribution-free confidence intervals for difference and ratio of medians", 2002."""

    def of_logs(side):
        logs = sorted(math.log(math.fsum(values) / VALUES) for values in side)
        n = len(logs)
        c = max(round((n + 1) / 2 - math.sqrt(n)), 1)
        z = NormalDist().inv_cdf(1 - sum(math.comb(n, k) for k in range(c)) / 2**n)
        return median(logs), (logs[n - c] - logs[c - 1]) / (2 * z)

    (over, over_error), (under, under_error) = of_logs(base), of_logs(engine)
    reach = 1.96 * math.hypot(over_error, under_error)
    return math.exp(over - under - reach), math.exp(over - under + reach)


def ours(base, engine, _):
    found = speedup(base, engine)
    return found.low, found.high


def covered(method, scenario, processes):
    """Return the share of trials whose interval holds the truth, and the median width, both in per cent."""
    rng = np.random.default_rng(7)
    found = [method(*cell(rng, scenario, processes), rng) for _ in range(TRIALS)]
    held = sum(bool(low <= TRUTH <= high) for low, high in found)
    return 100 * held / TRIALS, 100 * median((high - low) / TRUTH for low, high in found)


# Other figures with intervals


def of_time(rng, scenario, processes):
    return step_time(cell(rng, scenario, processes)[0])


def of_change(rng, scenario, processes):
    new, old = cell(rng, scenario, processes), cell(rng, scenario, processes)
    return scaled(speedup_change(*new, *old))


def of_mean(rng, scenario, processes):
    return geometric_mean([speedup(*cell(rng, scenario, processes)) for _ in range(4)])


def of_change_of_means(rng, scenario, processes):
    return scaled(change(of_mean(rng, scenario, processes), of_mean(rng, scenario, processes)))


def scaled(interval):
    """Scale a change, whose truth is 1, so that its truth is `TRUTH`, like that of every other figure."""
    return type(interval)(*(TRUTH * bound for bound in (interval.value, interval.low, interval.high)))


STEADY_MACHINE = ("equal spread, 3 %", "1 process in 10 disturbed")
ANY_MACHINE = (*STEADY_MACHINE, "blocks drift")
OTHERS = {
    "a step's time": (of_time, STEADY_MACHINE),  # a drifting machine has no single true time
    "change of a speedup": (of_change, ANY_MACHINE),
    "geometric mean of 4 speedups": (of_mean, ANY_MACHINE),
    "change of such a mean": (of_change_of_means, ANY_MACHINE),
}


def held(figure, scenario, processes):
    rng = np.random.default_rng(7)
    found = (figure(rng, scenario, processes) for _ in range(TRIALS))
    return 100 * sum(one.low <= TRUTH <= one.high for one in found) / TRIALS


def row(*cells):
    print("|", " | ".join(cells), "|")


def heading(first, *columns):
    row(first, *columns)
    print("|---|" + "---:|" * len(columns))


def main():
    counts = (3, 4, 5, 6, 10, 20)
    heading("`speedup`, processes", *map(str, counts))
    for scenario in SCENARIOS:
        row(scenario, *(f"{covered(ours, scenario, n)[0]:.1f}" for n in counts))
    methods = {"`speedup`": ours, "bootstrap": percentile_bootstrap, "Price-Bonett": price_bonett}
    counts = (5, 10, 20)
    print()
    heading("coverage (width)", *(f"{name}, {n}" for name in methods for n in counts))
    for scenario in SCENARIOS:
        found = (covered(method, scenario, n) for method in methods.values() for n in counts)
        row(scenario, *(f"{share:.1f} ({width:.0f})" for share, width in found))
    counts = (3, 4, 5, 10, 20)
    print()
    heading("processes", *map(str, counts))
    for name, (figure, scenarios) in OTHERS.items():
        for scenario in scenarios:
            row(f"{name}; {scenario}", *(f"{held(figure, scenario, n):.1f}" for n in counts))


if __name__ == "__main__":
    main()
