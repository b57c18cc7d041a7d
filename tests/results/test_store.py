"""Records on disk are whole or absent and in the plan's order; an error names the unreadable file and field."""

import os

import pytest

from tests.harness.runs import NOW, cell, measured, run
from tests.results.test_files import full
from zoomgrad.results import files
from zoomgrad.results.files import Unreadable
from zoomgrad.results.profile import LineProfile
from zoomgrad.results.record import EngineFacts, Voucher, Vouching
from zoomgrad.results.run_file import unpack
from zoomgrad.results.store import RunFile, Store, latest

CELLS = (cell("tuple"), cell("baseline"))
RECORD = measured("tuple", 0)
PROFILE = LineProfile(cell=CELLS[0], status="measured", started_at=NOW, steps=3)
VOUCHERS = (Voucher(cell=cell(engine), steps=1) for engine in ("tuple", "tcc", "bytecode"))
VOUCHING = Vouching(workload="xor", vouchers=tuple(VOUCHERS))


@pytest.fixture
def store(tmp_path):
    return Store.create(run("2025-01-01", cells=CELLS, blocks=2), under=tmp_path)


def test_records_come_back_in_the_order_of_the_plan(store):
    written = [measured(one.engine, block) for one in CELLS for block in (0, 1)]
    for one in reversed(written):
        store.write(one)
    (store.folder / "records" / ".tuple--cpython-3.13--xor--0.json.123").write_text("{")  # left by a crash
    assert store.records() == written


def test_an_unreadable_record_names_its_file_and_field(store):
    path = store.write(RECORD)
    for text, field in ((b"\xff\xfe", "not UTF-8"), (path.read_bytes().replace(b"0.8", b'"fast"'), "step_seconds.0")):
        path.write_bytes(text)
        with pytest.raises(Unreadable) as caught:
            store.records()
        assert f"{path}: {field}" in str(caught.value)


def test_the_latest_run_is_the_last_by_name(store, tmp_path):
    Store.create(store.run.model_copy(update={"id": "2025-01-02"}), under=tmp_path)
    assert latest(tmp_path).run.id == "2025-01-02"
    assert latest(tmp_path / "empty") is None
    with pytest.raises(Unreadable, match=r"run\.json: no such file"):
        _ = Store(tmp_path).run


def test_a_run_learns_the_facts_of_what_was_profiled(store):
    """An engine that the run does not know comes behind its predecessor in the other plan."""
    facts = {name: EngineFacts(idea=name, strict=True) for name in ("slots", "baseline", "hoisted", "tuple")}
    known = store.run.engines
    assert list(known) == ["baseline", "tuple"]
    store.learn(store.run.model_copy(update={"engines": facts}))
    assert list(store.run.engines) == ["slots", "baseline", "hoisted", "tuple"]
    assert store.run.engines["baseline"] == known["baseline"]
    store.write_profile(PROFILE)
    assert store.profiles() == [PROFILE]


def test_a_second_run_of_the_same_name_is_refused(store, tmp_path):
    store.write(RECORD)
    with pytest.raises(Unreadable, match="a run of this name exists already"):
        Store.create(store.run, under=tmp_path)
    assert len(store.records()) == 1


def test_a_run_that_could_not_start_leaves_nothing(store, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        Store.create(store.run.model_copy(update={"id": "2025-01-02"}), under=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["2025-01-01"]


# Runs from strangers


@pytest.mark.parametrize(
    ("write", "name", "read"),
    [
        (lambda store: store.write(RECORD), "tuple--cpython-3.13--xor--1.json", Store.records),
        (lambda store: store.write_vouching(VOUCHING), "mnist.json", Store.vouchings),
        (lambda store: store.write_profile(PROFILE), "a.json", Store.profiles),
    ],
)
def test_a_file_under_another_name_is_refused(store, write, name, read):
    """It might count twice."""
    path = write(store)
    path.rename(path.with_name(name))
    with pytest.raises(Unreadable, match=rf"{name}: has the content of {path.name}"):
        read(store)


USES = {
    "records": (lambda store: store.write(RECORD),),
    "pyperf": (lambda store: store.pyperf_file(CELLS[0]),),
    "vouching": (lambda store: store.write_vouching(VOUCHING), lambda store: store.forget_vouching("xor")),
    "evidence": (lambda store: store.evidence_folder(CELLS[0]),),
    "profiles": (lambda store: store.write_profile(PROFILE), lambda store: store.profile_folder(CELLS[0])),
}


@pytest.mark.parametrize("part", USES)
def test_a_part_that_leads_elsewhere_is_neither_read_nor_written(store, tmp_path, part):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if (store.folder / part).exists():
        (store.folder / part).rmdir()
    (store.folder / part).symlink_to(elsewhere)
    for use in USES[part]:
        with pytest.raises(Unreadable, match="leads out of"):
            use(store)
    assert not list(elsewhere.iterdir())


# Removing


def test_a_part_of_a_run_is_removed_and_no_link_is_followed(store, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    folder = store.folder / "evidence" / "tuple--cpython-3.13--xor"
    folder.mkdir(parents=True)
    (folder / "mine").symlink_to(tmp_path / "mine")
    store.remove(folder)
    assert not folder.exists()
    folder.parent.rmdir()
    folder.parent.symlink_to(tmp_path / "mine")
    for path in (folder.parent, store.folder / ".." / "mine"):
        with pytest.raises(Unreadable, match="leads out of"):
            store.remove(path)
    with pytest.raises(ValueError, match="not in the subpath"):
        store.remove(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_nothing_is_removed_from_a_folder_without_the_marker(store):
    (store.folder / files.MARKER).unlink()
    store.remove(store.folder / "records")
    assert (store.folder / "records").exists()


# Kept as one file


def test_a_kept_run_reads_the_same_as_the_run_itself(store, tmp_path):
    file = tmp_path / "kept" / "smoke.jsonl.xz"
    store.write_vouching(VOUCHING)
    store.write_profile(PROFILE)
    for block in (1, 0):
        store.write(measured("tuple", block))
        kept = store.keep_as(file)
        assert kept.snapshot() == store.snapshot() == unpack(file)
        assert (kept.run, kept.records(), kept.profiles()) == (store.run, store.records(), store.profiles())
        assert kept.vouchings() == store.vouchings() == [VOUCHING]
    assert [path.name for path in file.parent.iterdir()] == ["smoke.jsonl.xz"]
    store.write(RECORD).write_text("{")
    with pytest.raises(Unreadable):
        store.keep_as(file)
    assert len(RunFile(file).records()) == 2, "a damaged run was kept"
