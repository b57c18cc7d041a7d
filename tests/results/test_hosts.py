"""Fleets in the store and the statistics: hosts are clusters, seconds are never mixed."""

import math
import random

import pytest
from pydantic import ValidationError

from tests.harness.runs import STEPS, kept, measured, run
from tests.studies.hosts import covered
from zoomgrad.reports.measured.table import cells
from zoomgrad.reports.story import story
from zoomgrad.results.files import Unreadable
from zoomgrad.results.record import HostFacts
from zoomgrad.results.run_file import Snapshot
from zoomgrad.results.stats import clusters
from zoomgrad.results.stats.intervals import TooFewProcesses
from zoomgrad.results.store import Store


@pytest.mark.parametrize("scenario", ["equal hosts", "hosts differ by 10 %"])
def test_intervals_over_hosts_cover_the_truth(scenario):
    kind, these, _ = covered(scenario, 5, 5, trials=1000)
    assert 93 <= kind <= 97
    assert 93 <= these <= 97


def test_equal_hosts_seldom_disagree_and_different_ones_do():
    assert covered("equal hosts", 16, 5, trials=300)[2] < 4
    assert covered("hosts differ by 10 %", 16, 5, trials=100)[2] > 95


def test_figures_of_hosts_by_hand():
    logs = [[0.0, 0.2], [0.1, 0.3], [0.2, 0.4]]
    kind, these = clusters.of_type(logs), clusters.of_fleet(logs)
    assert math.log(kind.value) == pytest.approx(0.2)
    assert math.log(kind.high) - 0.2 == pytest.approx(4.302653 * 0.1 / math.sqrt(3), rel=1e-6)
    assert math.log(these.high) - 0.2 == pytest.approx(3.182446 * math.sqrt(0.02 * 1.5) / 3, rel=1e-6)
    with pytest.raises(TooFewProcesses):
        clusters.of_type(logs[:2])
    with pytest.raises(TooFewProcesses):
        clusters.of_fleet([[0.1], [0.2], [0.3, 0.4]])
    assert clusters.disagree([[0.0, 0.0], [1.0, 1.0]])
    assert not clusters.disagree([[0.0, 0.0], [0.0, 0.0]])
    assert not clusters.disagree([])


def fleet(folder, *processors, blocks=3):
    """A run on one host per processor; each host is slower than the one before, with the same speedup."""
    hosts = {f"host-{n}": HostFacts(identity=str(n), machine={"processor": one}) for n, one in enumerate(processors)}
    store = Store.create(run("a-run", blocks=blocks * len(hosts), hosts=hosts), under=folder)
    for number, host in enumerate(hosts):
        rng = random.Random(number)
        for engine, seconds in STEPS.items():
            for block in range(number * blocks, (number + 1) * blocks):
                step = (1 + number) * seconds * rng.uniform(0.99, 1.01)
                store.write(measured(engine, block, step_seconds=(step,), host=host))
    return store


def test_a_speedup_is_over_hosts_and_seconds_are_of_one_host(tmp_path):
    store = fleet(tmp_path, "a", "a", "a")
    records = store.records()
    table = cells(store.run, records).set_index("engine")
    assert table.loc["tuple", "speedup"] == pytest.approx(1.25, rel=0.02)
    assert table.loc["tuple", "speedup_high"] > 1.25 > table.loc["tuple", "speedup_low"] - 0.02
    ratio = table.loc["baseline", "step_seconds"] / round(table.loc["baseline", "step_seconds"])
    assert ratio == pytest.approx(1.0, abs=0.02)  # 1, 2 or 3 s: one host's, never between them
    assert not any("machine type" in caution for caution in story(store.run, records).cautions)


def test_hosts_of_one_type_that_disagree_are_a_caution(tmp_path):
    store = fleet(tmp_path, "a", "a", "a")
    for block in range(3):
        store.write(measured("tuple", block, step_seconds=(0.5 + 0.001 * block,), host="host-0"))
    cautions = story(store.run, store.records()).cautions
    assert any("disagree on 1 of 1 speedup" in caution for caution in cautions)


def test_a_record_of_an_unknown_host_is_named(tmp_path):
    """Else it would belong to no machine type, and the report would be empty."""
    store = fleet(tmp_path, "a")
    path = store.write(measured("tuple", 1, host="host-9"))
    with pytest.raises(Unreadable, match=rf"{path}: .* was measured by host-9, which is not a host[^\n]*\n  \S"):
        store.records()
    record = measured("tuple", 1, host="host-9")
    with pytest.raises(ValidationError, match="by host-9, which is not a host of this run"):
        Snapshot(run=store.run, records=(record,))


def test_a_shared_host_never_has_a_speedup(tmp_path):
    store = kept(tmp_path)
    facts = {"host-1": HostFacts(identity="x", machine={"processor": "a"}, shared=True)}
    shared = [r.model_copy(update={"host": "host-1", "shared_host": True}) for r in store.records()]
    told = story(store.run.model_copy(update={"hosts": facts}), shared)
    table = told.view.table
    assert table[table["engine"] == "tuple"]["speedup"].isna().all()
    assert "disturbed each other" in told.cautions[0]
