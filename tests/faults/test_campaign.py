"""Batches run in separate processes, their results are kept, and a page summarises the results."""

import json
import tempfile
from pathlib import Path

import psutil
import pytest

from faults import campaign, kinds, reliability
from faults.campaign import Done, Kept, planned
from faults.sandbox import ROOT
from faults.tally import COUNTS, Tally, total

BROKEN = "tests.faults.broken"


def done(index=0, *, kind="kills", seed=1, commit="abc", tally=None, skipped=""):
    return Done(kind, index, seed, commit, "2026-11-22 20:00", 1.0, tally or Tally(tries=10), skipped)


def test_a_batch_that_dies_is_a_crash_and_one_that_never_ends_is_a_hang(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = [campaign.one(BROKEN, index, 1, "abc").tally for index in range(5)]
    counts = [{name: getattr(tally, name) for name in COUNTS if getattr(tally, name)} for tally in found]
    assert counts == [{}, {"crashes": 1}, {"hangs": 1}, {"crashes": 1}, {"torn": 1}]
    assert "the batch's own mistake" in found[3].notes[0]
    assert found[3].tries == 1, "the tries made before the failure were not counted"
    victim = int((tmp_path / "victim").read_text())
    assert not psutil.pid_exists(victim) or psutil.Process(victim).status() == psutil.STATUS_ZOMBIE


def test_a_campaign_resumes_where_it_stopped(tmp_path, monkeypatch):
    ran = []

    def one(kind, index, seed, commit, **rest):
        ran.append(index)
        return done(index, kind=kind, seed=seed, commit=commit)

    monkeypatch.setattr(campaign, "one", one)
    monkeypatch.setattr(campaign.facts, "commit", lambda folder: "abc")

    def run(share, seed=1):
        return campaign.run(["kills"], share=share, seed=seed, jobs=1, told=lambda done: None, folder=tmp_path)

    assert [each.index for each in run(0.1)] == ran == [0, 10]
    with Kept("kills", tmp_path).path.open("a") as file:
        file.write('{"kind": "kills", "ind')  # cut short by a kill
    assert len(run(1.0)) == kinds.load("kills").BATCHES
    assert sorted(ran) == list(range(kinds.load("kills").BATCHES)), "a batch did not run exactly once"
    run(0.1, seed=2)
    assert len(ran) == kinds.load("kills").BATCHES + 2, "a new seed must start a new campaign"
    monkeypatch.setattr(campaign.facts, "commit", lambda folder: "def")
    run(0.1, seed=2)
    assert len(ran) == kinds.load("kills").BATCHES + 4, "a new commit must start a new campaign"


def test_a_share_is_spread_over_all_batches():
    assert planned("kills", 0.001) == [0]
    assert planned("kills", 0.5) == list(range(0, 20, 2))


def test_the_page_has_every_kind_and_no_path_of_the_machine():
    bad = Tally(tries=10)
    bad.count("torn", "half a record")
    found = {"kills": [done(0), done(1, tally=bad)], "disks": [done(kind="disks", tally=Tally(), skipped="no disks")]}
    page = reliability.told(found)
    rows = {line.split("`")[1]: line.split(" | ") for line in page.splitlines() if line.startswith("| `")}
    assert list(rows) == list(kinds.NAMES)
    assert [cell.strip(" |") for cell in rows["kills"][2:]] == ["10 %", "20", "0", "1", "0", "0", "0", "0", "0"]
    assert rows["disks"][2] == "0 %"
    assert "no disks" in page
    assert "`python -m faults one kills 1 --seed 1`: 1 failures" in page
    assert str(ROOT) not in page


def test_tallies_add_up():
    one = Tally(tries=2, lost=1, notes=["x"])
    assert total([one, one, Tally()]) == Tally(tries=4, lost=2)
    assert json.loads(json.dumps(one.__dict__)) == one.__dict__


@pytest.mark.parametrize("name", kinds.NAMES)
def test_every_kind_describes_itself(name):
    kind = kinds.load(name)
    assert name == kind.NAME
    assert kind.FAULTS
    assert kind.UNIT
    assert kind.BATCHES > 0
    assert isinstance(kind.lacks(), str)
    assert Path(kind.__file__).stem == name
