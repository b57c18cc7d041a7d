"""`harness.worker.measure` with a planted slowdown: the job's `slowed` is the factor. For trials of the gate only."""

from time import perf_counter

from harness.worker import measure
from harness.worker.job import read_json

MODULE = "tests.harness.slowed.measure"


def slow_down(factor):
    """Make every timed stretch take `factor` times as long, by waiting at its end."""
    time = measure.Stretch.time

    def longer(stretch):
        start = perf_counter()
        seconds = factor * time(stretch)
        while perf_counter() - start < seconds:
            pass
        return seconds

    measure.Stretch.time = longer


if __name__ == "__main__":
    import sys

    slow_down(read_json(sys.argv[-1])["slowed"])
    measure.main(MODULE)
