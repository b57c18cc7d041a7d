"""Ratios of blocks on several hosts -> speedups with 95 % intervals. The host is a cluster above the process.

Blocks of one host share its processor, its memory and its libraries, so they carry less information than blocks of
different hosts. Two questions have two answers:

- `of_type`: what does the typical machine of this type give? The median host's figure. Each host counts once, as the
  mean of its blocks' logarithms, because hosts are what was drawn at random.
- `of_fleet`: what do these very hosts give on average? Only blocks were drawn at random, so the interval is narrower.
  It says nothing about other hosts.

Hosts of different types have no common figure, so a report shows one type. docs/proof.md gives the coverage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median

from zoomgrad.results.stats.intervals import ERROR, Interval, TooFewProcesses, interval_of_median

Logs = Sequence[Sequence[float]]
"""Logarithms of ratios within blocks, one inner sequence per host."""

MIN_HOSTS = 3
"""Fewer hosts say nothing about the spread between hosts."""
DISAGREEING = 0.01
"""Probability with which equal hosts are said to disagree."""


def of_type(hosts: Logs) -> Interval:
    """Speedup on the median machine of this type, with its interval.

    Interpolated order statistics of the hosts' means, and Student's interval below five hosts: a median ignores the
    long tail that a few odd machines make. Raises TooFewProcesses below 3 hosts.
    """
    if len(hosts) < MIN_HOSTS:
        raise TooFewProcesses(f"an interval for a machine type needs {MIN_HOSTS} hosts, but there are {len(hosts)}")
    means = [fmean(blocks) for blocks in hosts]
    return interval_of_median(math.exp(median(means)), means)


def of_fleet(hosts: Logs) -> Interval:
    """Mean speedup of these hosts, each with the same weight, with an interval for these hosts only.

    The variance within a host is pooled over hosts. Bounds are Student's, or those of Hall's transformation, which
    corrects for skewed blocks ("On the removal of skewness by transformation", 1992), whichever is further out. Raises
    TooFewProcesses unless there are at least 2 more blocks than hosts.
    """
    from scipy.special import stdtrit  # only reports of fleets need it

    counts = [len(blocks) for blocks in hosts]
    freedom = sum(counts) - len(counts)
    if not hosts or freedom < 2:
        raise TooFewProcesses("an interval for these hosts needs at least two blocks on most of them: run more blocks")
    means = [fmean(blocks) for blocks in hosts]
    rest = [x - mean for blocks, mean in zip(hosts, means, strict=True) for x in blocks]
    within = sum(x**2 for x in rest) / freedom
    error = math.sqrt(within * sum(1 / count for count in counts)) / len(hosts)
    reach = float(stdtrit(freedom, 1 - ERROR / 2))
    below, above = reach, reach
    # The third central moment of blocks, as pooled as their variance, gives the skewness of the mean over hosts.
    share = sum((count - 1) * (count - 2) / count for count in counts)
    if error and share:
        third = sum(x**3 for x in rest) / share
        skewness = third * sum(count**-2 for count in counts) / len(hosts) ** 3 / error**3
        below, above = max(reach, _unskewed(reach, skewness)), max(reach, -_unskewed(-reach, skewness))
    mean = fmean(means)
    return Interval(math.exp(mean), math.exp(mean - below * error), math.exp(mean + above * error))


def _unskewed(quantile: float, skewness: float) -> float:
    """The studentised mean that Hall's transformation, which makes it nearly symmetric, takes to that quantile."""
    if abs(skewness) < 1e-6:
        return quantile
    return (math.cbrt(1 + skewness * (quantile - skewness / 6)) - 1) / (skewness / 3)


def disagree(hosts: Logs, *, families: int = 1) -> bool:
    """Whether hosts of one type differ by more than their blocks explain.

    The F test of one-way analysis of variance. families: how many such tests are made, which divides its error.
    """
    from scipy.special import fdtrc  # only reports of fleets need it

    between, freedom = len(hosts) - 1, sum(len(blocks) - 1 for blocks in hosts)
    if between < 1 or freedom < 1:
        return False
    means = [fmean(blocks) for blocks in hosts]
    whole = fmean(x for blocks in hosts for x in blocks)
    of_hosts = sum(len(blocks) * (mean - whole) ** 2 for blocks, mean in zip(hosts, means, strict=True)) / between
    of_blocks = sum((x - mean) ** 2 for blocks, mean in zip(hosts, means, strict=True) for x in blocks) / freedom
    if of_blocks == 0.0:
        return of_hosts > 0.0
    return bool(fdtrc(between, freedom, of_hosts / of_blocks) < DISAGREEING / families)
