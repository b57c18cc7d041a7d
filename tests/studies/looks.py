"""How often a figure errs that is looked at again and again: `python -m tests.studies.looks` prints the table.

They are part of docs/trust.md, and simulate `check`: whole runs of equal code with ten figures, and runs in which one
figure is worse. The seed is fixed.
"""

from itertools import pairwise

import numpy as np

from tests.studies.coverage import both, factors, skewed
from zoomgrad.results.compare import ERROR, between_runs

BLOCKS = 5
RUNS = 400
SCENARIOS = {
    "equal spread, 3 %": both(factors),
    "spread 6 %": both(factors, spread=0.06),
    "log-normal delays": both(skewed),
    "1 process in 10 disturbed": both(factors, disturbed=0.1),
}
FIGURES, RERUNS = 10, 3


def failing(pair, rng, slower, error, limit, figures):
    """Whether a run fails in which each figure is slower by that much, with suspects measured again as `check` does."""
    counts = [BLOCKS << turn for turn in range(RERUNS + 1)]
    for _ in range(figures):
        old = tuple(side[:, None].tolist() for side in pair(rng, 2 * BLOCKS))
        base, engine = pair(rng, counts[-1])
        engine *= 1 + slower
        for before, count in pairwise([0, *counts]):
            new = base[:count, None].tolist(), engine[:count, None].tolist()
            word, ratio, _ = between_runs(new, old, limit, limit, error)
            if word == "slower" and (before or count == counts[-1]):
                return True
            # Suspects are measured again: at first those beyond half the limit, later those beyond it.
            if word in ("same", "faster") or ratio.value <= 1 + (limit if before else limit / 2):
                break
    return False


def failures(pair, slower, error, runs, limit=0.10, seed=1):
    """Share of runs that fail: equal code with all its figures, or one figure that is slower."""
    rng, figures = np.random.default_rng(seed), 1 if slower else FIGURES
    return sum(failing(pair, rng, slower, error, limit, figures) for _ in range(runs)) / runs


SHARED = 2 * ERROR / (FIGURES * (1 + RERUNS))
"""What each look at each figure of such a run may err."""


def main():
    print("| `check` | equal, limit 2 % | equal, limit 10 % | 15 % slower | 25 % slower | 50 % slower |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, pair in SCENARIOS.items():
        for rule, error in (("5 % for each interval", 1.0), ("and 1 % for equal code", SHARED)):
            cases = ((0.0, 0.02), (0.0, 0.10), (0.15, 0.10), (0.25, 0.10), (0.5, 0.10))
            shares = [failures(pair, slower, error, RUNS, limit) for slower, limit in cases]
            print(f"| {name}: {rule} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |", flush=True)


if __name__ == "__main__":
    main()
