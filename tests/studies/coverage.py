"""Coverage of the 95 % intervals: `python -m tests.studies.coverage` prints tables, the first for docs/trust.md.

It simulates cells whose true speedup is 3. A scenario gives the slowdown of each process, each of a process's three
values deviates by another 1 %, and all factors multiply. The seed is fixed, so every run prints the same figures. A run
takes two to three minutes.
"""

from __future__ import annotations

import numpy as np

from zoomgrad.results.stats.intervals import speedup, speedup_change, step_time

TRIALS = 2000
TRUTH = 3.0
VALUES, OF_A_VALUE = 3, 0.01
SPREAD = 0.03


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


def drifting(rng, n):
    common = drift(rng, n)
    return common * factors(rng, n, disturbed=0.1), common * factors(rng, n, disturbed=0.1)


SCENARIOS = {
    "equal spread, 3 %": both(factors),
    "wide log-normal, 30 %": both(factors, spread=0.3),
    "log-normal delays": both(skewed),
    "1 process in 10 disturbed": both(factors, disturbed=0.1),
    "blocks drift, 1 in 10 disturbed": drifting,
    "1 in 10 disturbed in one engine": lambda rng, n: (factors(rng, n), factors(rng, n, disturbed=0.1)),
}
"""Number of processes -> slowdowns of the baseline's and of the engine's; the n-th of both are in one block."""


def samples(rng, of_processes, seconds=1.0):
    return (seconds * of_processes[:, None] * np.exp(rng.normal(0, OF_A_VALUE, (len(of_processes), VALUES)))).tolist()


def cell(rng, scenario, processes):
    """Return the samples of a baseline and of an engine."""
    base, engine = SCENARIOS[scenario](rng, processes)
    return samples(rng, base, TRUTH), samples(rng, engine)


def of_speedup(rng, scenario, processes):
    return speedup(*cell(rng, scenario, processes))


def of_time(rng, scenario, processes):
    return step_time(cell(rng, scenario, processes)[0])


def of_change(rng, scenario, processes):
    new, old = cell(rng, scenario, processes), cell(rng, scenario, processes)
    return scaled(speedup_change(*new, *old))


def scaled(interval):
    """Scale a change, whose truth is 1, so that its truth is `TRUTH`, like that of every other figure."""
    return type(interval)(*(TRUTH * bound for bound in (interval.value, interval.low, interval.high)))


STEADY_MACHINE = ("equal spread, 3 %", "1 process in 10 disturbed")
ANY_MACHINE = (*STEADY_MACHINE, "blocks drift, 1 in 10 disturbed")
FIGURES = {
    "speedup": (of_speedup, SCENARIOS),
    "a step's time": (of_time, STEADY_MACHINE),  # a drifting machine has no single true time
    "change of a speedup": (of_change, ANY_MACHINE),
}


def covered(figure, scenario, processes):
    """Return the percentage of trials whose interval holds the truth."""
    rng = np.random.default_rng(7)
    found = (figure(rng, scenario, processes) for _ in range(TRIALS))
    return 100 * sum(one.low <= TRUTH <= one.high for one in found) / TRIALS


def main():
    counts = (3, 4, 5, 6, 10, 20)
    print(f"| processes | {' | '.join(map(str, counts))} |\n|---|{'---:|' * len(counts)}")
    for name, (figure, scenarios) in FIGURES.items():
        for scenario in scenarios:
            shares = (f"{covered(figure, scenario, n):.1f}" for n in counts)
            print(f"| {name}; {scenario} | {' | '.join(shares)} |")


if __name__ == "__main__":
    main()
