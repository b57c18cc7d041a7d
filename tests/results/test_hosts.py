"""Fleets in the store and the statistics: hosts are clusters, and times divide."""

import math
import random

import pytest
from pydantic import ValidationError

from tests.harness.runs import STEPS, measured, run
from zoomgrad.reports.measured.table import cells
from zoomgrad.results.files import Unreadable
from zoomgrad.results.record import HostFacts
from zoomgrad.results.run_file import Snapshot
from zoomgrad.results.stats.intervals import interval_of_median
from zoomgrad.results.store import Store


def test_each_of_three_hosts_counts_once():
    logs, hosts = [0.0, 0.2, 0.1, 0.3, 0.2, 0.4], ["a", "a", "b", "b", "c", "c"]
    found = interval_of_median(math.exp(0.2), logs, hosts=hosts)
    assert math.log(found.high) - 0.2 == pytest.approx(4.302653 * 0.1 / math.sqrt(3), rel=1e-6)
    assert interval_of_median(1.0, logs, hosts=["a"] * 3 + ["b"] * 3) == interval_of_median(1.0, logs)


def fleet(folder, blocks=3):
    """A run on three hosts; each host is slower than the one before, with the same speedup."""
    hosts = {f"host-{n}": HostFacts(identity=str(n), machine={"processor": "a"}) for n in range(3)}
    store = Store.create(run("a-run", blocks=blocks * len(hosts), hosts=hosts), under=folder)
    for number, host in enumerate(hosts):
        rng = random.Random(number)
        for engine, seconds in STEPS.items():
            for block in range(number * blocks, (number + 1) * blocks):
                step = (1 + number) * seconds * rng.uniform(0.99, 1.01)
                pace = (0.01 * (1 + number),)
                store.write(measured(engine, block, step_seconds=(step,), host=host, pace_seconds=pace))
    return store


def test_the_times_of_a_fleet_divide(tmp_path):
    store = fleet(tmp_path)
    table = cells(store.run, store.records()).set_index("engine")
    base, engine = table.loc["baseline"], table.loc["tuple"]
    assert engine["speedup"] == base["step_seconds"] / engine["step_seconds"] == pytest.approx(1.25, rel=0.02)
    # Each host has its own pace, to which its times are corrected, and its own 1 % of noise.
    assert base["step_seconds_low"] == pytest.approx(base["step_seconds_high"], rel=0.05)


def test_a_record_of_an_unknown_host_is_named(tmp_path):
    """Else it would belong to no machine type, and the report would be empty."""
    store, record = Store.create(run("a-run"), under=tmp_path), measured("tuple", 1, host="host-9")
    path = store.write(record)
    with pytest.raises(Unreadable, match=rf"{path}: .* was measured by host-9, which is not a host[^\n]*\n  \S"):
        store.records()
    with pytest.raises(ValidationError, match="by host-9, which is not a host of this run"):
        Snapshot(run=store.run, records=(record,))
