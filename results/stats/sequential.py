"""Intervals that stay valid while blocks are added: a confidence sequence for a median.

An ordinary 95 % interval covers the truth 19 times in 20 if its number of blocks was fixed in advance. Whoever looks
after every block, and stops when the interval excludes 1, is wrong far more often. A confidence sequence covers the
truth at *all* times at once with the stated probability, so any rule may decide when to stop.

Method: the sign test as a bet. If the true median is m, each block falls above m with probability 1/2, whatever the
earlier blocks did. A gambler who bets on "above" at the odds of p, for all p from 1/2 to 1 at once, then owns

    wealth(n, k) = sum over j of 0 ... n - k of C(n + 1, j)  /  ((n + 1) C(n, k))

times the stake after n blocks of which k fell below m. The wealth is a nonnegative martingale that starts at 1, so it
ever reaches 2 / error with a probability of at most error / 2 (Ville's inequality). Another gambler bets on "below".
The interval holds every m against which neither reached 2 / error. Sources: Robbins, "Statistical methods related to
the law of the iterated logarithm", 1970, for mixtures of bets; Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform,
nonparametric, nonasymptotic confidence sequences", Annals of Statistics 2021.

Example: 14 blocks above m give a wealth of (2^15 - 1) / 15 = 2184. So at an error of 0.001, 14 blocks that all agree
are enough, and 13 are not.

Nothing is assumed about the blocks' distribution. If both sides run the same code and it is drawn by lot which of them
goes first, each block favours either side with probability 1/2 on any machine, so the error holds on any machine too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache


def wealth_reaches(count: int, below: int, target: float) -> bool:
    """Whether the gambler on "above" owns the target after `count` blocks of which `below` fell below the point."""
    term = lost = 1  # C(count + 1, 0)
    for j in range(below):
        term = term * (count + 1 - j) // (j + 1)
        lost += term
    # Exact, because these integers exceed any float.
    return (1 << count + 1) - lost >= Fraction(target) * (count + 1) * math.comb(count, below)


@cache
def rank(count: int, error: float) -> int | None:
    """Rank of the lower bound among `count` values, from 0; None if so few values give no bound.

    The upper bound has the same rank from above.
    """
    low, high = -1, count // 2  # a bound is known for `low` values below it, and not for `high`
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wealth_reaches(count, middle, 2 / error) else (low, middle)
    return low if low >= 0 else None


def bounds(values: Sequence[float], error: float) -> tuple[float, float]:
    """Lower and upper bound of the median at this moment; infinite if there are too few values."""
    place = rank(len(values), error)
    if place is None:
        return -math.inf, math.inf
    ranked = sorted(values)
    return ranked[place], ranked[-1 - place]
