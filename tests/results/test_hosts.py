"""Fleets and merged runs in the store and the statistics: hosts are clusters, seconds are never mixed."""

import math
import random

import pytest

from reports.measured.table import cells
from reports.story import story
from results.files import Unreadable
from results.fleet import merging
from results.fleet.home import Home
from results.fleet.hosts import by_type, machines, main_type
from results.record import HostFacts
from results.stats import clusters
from results.stats.intervals import TooFewProcesses
from results.store import Store
from tests.harness.runs import STEPS, cell, kept, measured, run
from tests.studies.hosts import covered


@pytest.mark.parametrize("scenario", ["equal hosts", "hosts differ by 10 %"])
def test_intervals_over_hosts_cover_the_truth(scenario):
    kind, fleet, _ = covered(scenario, 5, 5, trials=1000)
    assert 93 <= kind <= 97
    assert 93 <= fleet <= 97


def test_equal_hosts_seldom_disagree_and_different_ones_do():
    assert covered("equal hosts", 16, 5, trials=300)[2] < 4
    assert covered("hosts differ by 10 %", 16, 5, trials=100)[2] > 95


def test_figures_of_hosts_by_hand():
    logs = [[0.0, 0.2], [0.1, 0.3], [0.2, 0.4]]
    kind, fleet = clusters.of_type(logs), clusters.of_fleet(logs)
    assert math.log(kind.value) == pytest.approx(0.2)
    assert math.log(kind.high) - 0.2 == pytest.approx(4.302653 * 0.1 / math.sqrt(3), rel=1e-6)
    assert math.log(fleet.high) - 0.2 == pytest.approx(3.182446 * math.sqrt(0.02 * 1.5) / 3, rel=1e-6)
    with pytest.raises(TooFewProcesses):
        clusters.of_type(logs[:2])
    with pytest.raises(TooFewProcesses):
        clusters.of_fleet([[0.1], [0.2], [0.3, 0.4]])
    assert clusters.disagree([[0.0, 0.0], [1.0, 1.0]])
    assert not clusters.disagree([[0.0, 0.0], [0.0, 0.0]])
    assert not clusters.disagree([])


def runs(folder, *processors, blocks=3):
    """One run per processor; each machine is slower than the one before, with the same speedup."""
    stores = []
    for number, processor in enumerate(processors):
        store = Store.create(run(f"run-{number}", machine={"processor": processor}, blocks=blocks), under=folder)
        rng = random.Random(number)
        for engine, seconds in STEPS.items():
            for block in range(blocks):
                store.write(measured(engine, block, step_seconds=((1 + number) * seconds * rng.uniform(0.99, 1.01),)))
        stores.append(store)
    return stores


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(merging, "RUNS", tmp_path)
    return tmp_path


def test_a_merged_run_has_every_record_once_and_seconds_of_one_host(folder):
    stores = runs(folder, "a", "a", "a", "b")
    merged = merging.merge(stores, ["zoomgrad", "merge"])
    records = merged.records()
    assert len(records) == sum(len(store.records()) for store in stores)
    assert sorted(r.step_seconds for r in records) == sorted(r.step_seconds for s in stores for r in s.records())
    (first, of_a), (second, of_b) = by_type(merged.run, records)
    assert (first.machine, second.machine) == ({"processor": "a"}, {"processor": "b"})
    assert (len({r.host for r in of_a}), len({r.host for r in of_b})) == (3, 1)
    table = cells(*main_type(merged.run, records)).set_index("engine")
    assert table.loc["tuple", "speedup"] == pytest.approx(1.25, rel=0.02)
    assert table.loc["tuple", "speedup_high"] > 1.25 > table.loc["tuple", "speedup_low"] - 0.02
    ratio = table.loc["baseline", "step_seconds"] / round(table.loc["baseline", "step_seconds"])
    assert ratio == pytest.approx(1.0, abs=0.02)  # 1, 2 or 3 s: one host's, never between them
    told = story(merged.run, records)
    assert told.hosts.title == "Over 3 hosts"
    assert told.across  # the other machine type is beside it


def test_hosts_of_one_type_that_disagree_are_a_caution(folder):
    stores = runs(folder, "a", "a", "a")
    for block in range(3):
        stores[0].write(measured("tuple", block, step_seconds=(0.5 + 0.001 * block,)))
    merged = merging.merge(stores, [])
    causes = [caution.cause for caution in story(merged.run, merged.records()).cautions]
    assert any("disagree on 1 of 1 speedup" in cause for cause in causes)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"code": "d", "commit": "0" * 12}, "measured 000000000000, and run-0 measured an unknown commit"),
        ({"code": ""}, "measured an unknown commit"),
        ({"settings": {"values": 9}}, "other settings"),
        ({"interpreters": {"cpython-3.13": {"version": "3.13.9"}}}, "another cpython-3.13"),
        ({"blocks": 9_999}, "more than a run can have"),
        ({"reference_interpreter": "cpython-3.12"}, "different references"),
    ],
)
def test_runs_that_measured_something_else_are_not_merged(folder, fields, problem):
    (one,) = runs(folder, "a")
    other = Store.create(run("other", **fields), under=folder)
    before = set(folder.iterdir())
    with pytest.raises(Unreadable, match=rf"{problem}[^\n]*\n  \S"):
        merging.merge([one, other], [])
    with pytest.raises(Unreadable, match="given twice"):
        merging.merge([one, one], [])
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("codes", "commits", "same"),
    [
        (("c", "c"), ("a", "b+"), True),
        (("c", "d"), ("a+", "a+"), False),
        (("c", ""), ("a", "a"), True),
        (("", ""), ("a+", "a+"), False),
        (("", ""), ("", ""), False),
    ],
)
def test_a_commit_with_changed_files_may_be_any_code(folder, codes, commits, same):
    stores = [
        Store.create(run(f"run-{number}", code=code, commit=commit), under=folder)
        for number, (code, commit) in enumerate(zip(codes, commits, strict=True))
    ]
    if same:
        merging.merge(stores, [])
    else:
        with pytest.raises(Unreadable, match=r"measured .*\n  \S"):
            merging.merge(stores, [])


@pytest.mark.parametrize("host", ["", "host-9"])
def test_a_result_of_no_host_is_not_merged(folder, host):
    """Else it would count for every machine type."""
    one, two, three = runs(folder, "a", "b", "c")
    both = merging.merge([one, two], [])
    both.write(both.records()[0].model_copy(update={"host": host}))
    with pytest.raises(Unreadable, match=r"measured by no host[^\n]*\n  \S"):
        merging.merge([both, three], [])


def test_a_merge_is_no_run_until_it_is_whole(folder, monkeypatch):
    stores, seen, write = runs(folder, "a", "b"), [], Store.write
    monkeypatch.setattr(
        Store, "write", lambda store, record: (seen.append(set(folder.glob("*/run.json"))), write(store, record))
    )
    before = set(folder.glob("*/run.json"))
    merged = merging.merge(stores, [])
    assert len(seen) == 12
    assert set(map(frozenset, seen)) == {frozenset(before)}
    assert {path.name for path in folder.iterdir()} == {"run-0", "run-1", merged.run.id}


def test_two_runs_of_one_machine_are_one_host(folder):
    stores = runs(folder, "a", "a", "a", "a")
    for store, marks in zip(stores, [("id", "1"), ("2",), ("id", "3"), ()], strict=True):
        (store.folder / "run.json").write_text(store.run.model_copy(update={"marks": marks}).model_dump_json())
    merged = merging.merge(stores, [])
    assert machines(merged.run) == {"host-1": "host-1", "host-2": "host-2", "host-3": "host-1", "host-4": "host-4"}
    told = story(merged.run, merged.records())
    assert told.hosts.title == "Over 3 hosts"


def test_merged_runs_and_kept_files_merge_again(folder, tmp_path):
    one, two, three = runs(folder, "a", "a", "a")
    both = merging.merge([one, two], [])
    kept_file = three.keep_as(tmp_path / "three.jsonl.xz")
    monkey = both.run.id
    both.folder.rename(folder / "both")  # ids have seconds, and this test is quicker
    again = merging.merge([Store(folder / "both"), kept_file], [])
    assert len(again.run.hosts) == 3
    assert again.run.id >= monkey
    with pytest.raises(Unreadable, match="run-0 is given twice"):
        merging.merge([Store(folder / "both"), one], [])
    assert len(again.records()) == 18


def test_a_shared_host_never_has_a_speedup(tmp_path):
    store = kept(tmp_path)
    facts = {"host-1": HostFacts(identity="x", machine={"processor": "a"}, shared=True)}
    shared = [r.model_copy(update={"host": "host-1", "shared_host": True}) for r in store.records()]
    told = story(store.run.model_copy(update={"hosts": facts}), shared)
    table = told.view.table
    assert table[table["engine"] == "tuple"]["speedup"].isna().all()
    assert told.hosts is None
    assert "disturbed each other" in told.cautions[0].cause


def test_a_block_that_begins_again_leaves_its_records_aside(tmp_path):
    home = Home(Store.create(run("a-run"), under=tmp_path))
    home.keep(measured("tuple", 1, host="host-1"))
    home.keep(measured("tuple", 11, host="host-1"))
    assert home.kept(cell("tuple"), 1) == measured("tuple", 1, host="host-1")
    assert home.kept(cell("tuple"), 2) is None
    assert home.set_aside(1) == 1
    assert home.set_aside(1) == 0  # as after a crash
    home.keep(measured("tuple", 1, host="host-2", attempt=1))
    home.keep_aside(measured("tuple", 1, host="host-1"))
    home.keep_aside(measured("tuple", 1, host="host-1", step_seconds=(9.0,)))
    home.complete(1, "host-2", 1)
    assert [(r.block, r.host) for r in home.store.records()] == [(1, "host-2"), (11, "host-1")]
    assert [(r.block, r.host, r.step_seconds) for r in home.partial()] == [
        (1, "host-1", (9.0,)),
        (1, "host-1", (0.808,)),
    ]
    assert home.completed() == {1}
    assert home.store.run.hosts == {}
    home.admit("host-1", HostFacts(identity="x", machine={}))
    assert list(Home(home.store).run.hosts) == ["host-1"]
    assert home.store.records()[0].cell == cell("tuple")
