"""How sure a figure is. Pure functions over seconds per step; the process is the sampling unit.

Two values of one process share its address layout, its hash seed and its JIT's decisions, so they say less than two
processes do: intervals resample processes first, then values within each (Kalibera and Jones, "Rigorous benchmarking in
reasonable time", 2013).

Within a process values are averaged, across processes the median is taken. A full garbage collection every fifth step
makes that step eight times as long (`baseline` on `digits`, CPython 3.13): it is part of what an epoch costs, and a
median within the process would not see it. A process that the machine disturbed is an outlier, which a median leaves
out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray

Samples = Sequence[Sequence[float]]
"""Seconds per step, one inner sequence a process."""

MIN_PROCESSES = 3
"""Below this nothing can be said of the spread between processes."""

BOOTSTRAP_PROCESSES = 5
"""Below this a bootstrap of a median covers too little: three processes, 5 % apart, 83 % instead of 95 %."""

RESAMPLES = 2000


class TooFewProcesses(ValueError):
    """An interval was asked of too few processes."""


@dataclass(frozen=True)
class Interval:
    """A figure with its bounds."""

    value: float
    low: float
    high: float

    @property
    def relative_width(self) -> float:
        return (self.high - self.low) / self.value if self.value else 0.0


def median_of_processes(samples: Samples) -> float:
    """Median over processes of each process's mean, in seconds."""
    if not samples or any(not len(values) for values in samples):
        raise TooFewProcesses("a median needs at least one process, and each process at least one value")
    return float(np.median([fmean(values) for values in samples]))


def step_time(samples: Samples, *, confidence: float = 0.95, seed: int = 0) -> Interval:
    """Seconds per step with its interval: hierarchical bootstrap, or Student's t on logarithms below 5 processes.

    samples: seconds per step, shape (processes, values). Raises TooFewProcesses below 3 processes.
    """
    value = median_of_processes(samples)
    if len(_enough(samples)) < BOOTSTRAP_PROCESSES:
        return _student(value, *_log_mean(samples), confidence)
    return _percentiles(value, _resampled_medians(samples, np.random.default_rng(seed)), confidence)


def speedup(base: Samples, engine: Samples, *, confidence: float = 0.95, seed: int = 0) -> Interval:
    """Ratio of step times, base over engine, with its interval, made as `step_time` makes it.

    base, engine: seconds per step, shape (processes, values). Raises TooFewProcesses below 3 processes on either side.
    """
    value = median_of_processes(base) / median_of_processes(engine)
    if min(len(_enough(base)), len(_enough(engine))) < BOOTSTRAP_PROCESSES:
        (base_mean, base_error), (engine_mean, engine_error) = _log_mean(base), _log_mean(engine)
        return _student(value, base_mean - engine_mean, math.hypot(base_error, engine_error), confidence)
    rng = np.random.default_rng(seed)
    return _percentiles(value, _resampled_medians(base, rng) / _resampled_medians(engine, rng), confidence)


def change(new: Interval, old: Interval) -> Interval:
    """Ratio of two figures that are positive and independent, new over old, with the interval theirs give it.

    On logarithms half-widths add up as the roots of their squares, for each side by itself. NaN where either has none.
    """
    up = math.hypot(math.log(new.high / new.value), math.log(old.value / old.low))
    down = math.hypot(math.log(new.value / new.low), math.log(old.high / old.value))
    value = new.value / old.value
    return Interval(value, value * math.exp(-down), value * math.exp(up))


def _enough(samples: Samples) -> Samples:
    if len(samples) < MIN_PROCESSES:
        raise TooFewProcesses(
            f"an interval needs {MIN_PROCESSES} processes, here are {len(samples)}: run more blocks (--blocks)"
        )
    return samples


def _log_mean(samples: Samples) -> tuple[float, float]:
    """Mean of the logarithms of the processes' means, and its standard error."""
    logs = [math.log(fmean(values)) for values in samples]
    return fmean(logs), stdev(logs) / math.sqrt(len(logs))


def _student(value: float, log_mean: float, error: float, confidence: float) -> Interval:
    """Student's t interval of a logarithm, taken back; it is widened to hold the value, which is a median."""
    # The quantile for two degrees of freedom, in closed form: right for three processes, cautious for four.
    p = (1 + confidence) / 2
    reach = error * (2 * p - 1) / math.sqrt(2 * p * (1 - p))
    return Interval(value, min(value, math.exp(log_mean - reach)), max(value, math.exp(log_mean + reach)))


def _percentiles(value: float, resampled: NDArray[np.float64], confidence: float) -> Interval:
    tail = 50 * (1 - confidence)
    low, high = np.percentile(resampled, [tail, 100 - tail])
    return Interval(value, float(low), float(high))


def _resampled_medians(samples: Samples, rng: np.random.Generator) -> NDArray[np.float64]:
    """Medians of `RESAMPLES` resamplings, processes first, then values within each."""
    of_process = np.stack(
        [np.mean(rng.choice(np.asarray(values), size=(RESAMPLES, len(values))), axis=1) for values in samples]
    )
    chosen = rng.integers(len(samples), size=(len(samples), RESAMPLES))
    medians: NDArray[np.float64] = np.median(np.take_along_axis(of_process, chosen, axis=0), axis=0)
    return medians
