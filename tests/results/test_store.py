"""Records on disk are whole or absent and in the plan's order; an error names the unreadable file and field."""

import errno
import os
from datetime import UTC, datetime

import pytest

import zoomgrad.results.store as stores
from tests.harness.runs import run, timed
from zoomgrad.results import files
from zoomgrad.results.files import Unreadable
from zoomgrad.results.profile import JitProfile
from zoomgrad.results.record import Cell, EngineFacts, Record, Voucher, Vouching
from zoomgrad.results.run_file import unpack
from zoomgrad.results.store import BASELINE_RUNS, RunFile, Store, latest

NOW = datetime(2025, 1, 1, tzinfo=UTC)
CELLS = tuple(Cell(engine=engine, interpreter="cpython-3.13", workload="xor") for engine in ("tuple", "baseline"))


@pytest.fixture
def store(tmp_path):
    return Store.create(run("2025-01-01", cells=CELLS, blocks=2), under=tmp_path)


def record(cell, block):
    return Record(cell=cell, block=block, started_at=NOW, **timed(0.1, 0.2))


def test_records_come_back_in_the_order_of_the_plan(store):
    written = [record(cell, block) for cell in CELLS for block in (0, 1)]
    for one in reversed(written):
        store.write(one)
    assert store.records() == written


def test_a_draft_left_by_a_crash_is_not_a_record(store):
    (store.folder / "records" / ".tuple--cpython-3.13--xor--0.json.123").write_text("{")
    assert store.records() == []


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (b"\xff\xfe", "not UTF-8"),
        ('{"cell": ', "the file as a whole"),
        (record(CELLS[0], 0).model_dump_json().replace('"measured"', '"fine"'), "status"),
        (record(CELLS[0], 0).model_dump_json().replace("0.2", '"fast"'), "step_seconds.1"),
    ],
    ids=["no text", "cut short", "unknown status", "text for a time"],
)
def test_an_unreadable_record_names_its_file_and_field(store, text, field):
    path = store.write(record(CELLS[0], 0))
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(Unreadable) as caught:
        store.records()
    assert f"{path}: {field}" in str(caught.value)


def test_a_folder_without_a_run_is_unreadable(tmp_path):
    with pytest.raises(Unreadable, match=r"run\.json: no such file"):
        _ = Store(tmp_path).run


def test_the_latest_run_is_the_last_by_name(store, tmp_path):
    newer = store.run.model_copy(update={"id": "2025-01-02"})
    Store.create(newer, under=tmp_path)
    assert latest(tmp_path).run.id == "2025-01-02"


def test_without_runs_the_error_says_how_to_make_one(tmp_path):
    with pytest.raises(Unreadable, match="zoomgrad run"):
        latest(tmp_path)


def test_profiles_come_back_with_the_facts_of_all_profiled_engines(store):
    cell = Cell(engine="slots", interpreter="cpython-3.13", workload="xor")
    profile = JitProfile(cell=cell, status="measured", started_at=NOW, tracing=0.5, steps=3)
    assert store.looker is None
    for engine in ("slots", "hoisted"):
        facts = {engine: EngineFacts(idea="", strict=True)}
        store.write_looker(store.run.model_copy(update={"engines": facts}))
    store.write_profile(profile)
    assert store.profiles() == [profile]
    assert list(store.looker.engines) == ["slots", "hoisted"]
    assert "slots" not in store.run.engines, "the run's own plan changed"


def test_objects_are_kept_outside_the_run_folder(store, tmp_path, monkeypatch):
    """A run folder and the id in it may be a stranger's, so code must not be loaded from there."""
    monkeypatch.setattr(stores, "OBJECTS", tmp_path / "ours")
    folders = [store.objects_folder(cell) for cell in CELLS]
    assert len(set(folders)) == len(CELLS)
    assert all((tmp_path / "ours") in folder.parents and store.folder not in folder.parents for folder in folders)
    (tmp_path / "elsewhere").mkdir()
    same_id = Store.create(store.run, under=tmp_path / "elsewhere")
    assert same_id.objects_folder(CELLS[0]) not in folders
    link = tmp_path / "link"
    link.symlink_to(store.folder)
    assert Store(link).objects_folder(CELLS[0]) == folders[0], "the same run got another folder under another path"
    for folder in (*folders, same_id.objects_folder(CELLS[0])):
        folder.mkdir(parents=True)
    store.remove_objects()
    assert [path.exists() for path in folders] == [False, False]
    assert same_id.objects_folder(CELLS[0]).exists()


# Runs from strangers


def vouching():
    engines = ("tuple", "tcc", "bytecode")
    cells = (CELLS[0].model_copy(update={"engine": engine}) for engine in engines)
    return Vouching(workload="xor", vouchers=tuple(Voucher(cell=cell, steps=1) for cell in cells))


def looked():
    return JitProfile(cell=CELLS[0], status="measured", started_at=NOW)


def test_a_second_run_of_the_same_name_is_refused(store, tmp_path):
    store.write(record(CELLS[0], 0))
    with pytest.raises(Unreadable, match="a run of this name exists already"):
        Store.create(store.run, under=tmp_path)
    assert len(store.records()) == 1


def test_a_run_that_could_not_start_leaves_nothing(store, tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    other = store.run.model_copy(update={"id": "2025-01-02"})
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        Store.create(other, under=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["2025-01-01"]


@pytest.mark.parametrize(
    "name", ["copy.json", "tuple--cpython-3.13--xor--1.json", "baseline--cpython-3.13--xor--0.json"]
)
def test_a_record_under_another_name_is_refused(store, name):
    path = store.write(record(CELLS[0], 0))
    path.with_name(name).write_bytes(path.read_bytes())
    with pytest.raises(Unreadable, match=r"has the content of tuple--cpython-3\.13--xor--0\.json"):
        store.records()


def test_a_vouching_or_a_profile_under_another_name_is_refused(store):
    path = store.write_vouching(vouching())
    path.rename(path.with_name("mnist.json"))
    for read in (store.vouchings, lambda: store.vouching("mnist")):
        with pytest.raises(Unreadable, match=r"has the content of xor\.json"):
            read()
    path = store.write_profile(looked())
    path.rename(path.with_name("a.json"))
    with pytest.raises(Unreadable, match="has the content of"):
        store.profiles()


USES = {
    "records": (lambda store: store.write(record(CELLS[0], 0)),),
    "pyperf": (lambda store: store.pyperf_file(CELLS[0]),),
    "vouching": (
        lambda store: store.write_vouching(vouching()),
        lambda store: store.forget_vouching("xor"),
        lambda store: store.vouching("xor"),
    ),
    "evidence": (lambda store: store.evidence_folder(CELLS[0]),),
    "profiles": (
        lambda store: store.write_profile(looked()),
        lambda store: store.write_looker(store.run),
        lambda store: store.profile_folder(CELLS[0]),
    ),
    "export": (lambda store: store.export_file("a.csv"),),
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


def test_a_page_that_leads_elsewhere_is_not_written(store, tmp_path):
    (store.folder / "check.md").symlink_to(tmp_path / "mine")
    with pytest.raises(Unreadable, match="leads out of"):
        store.file("check.md")


# Removing


def test_a_part_of_a_run_is_removed_and_no_link_is_followed(store, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    folder = store.folder / "evidence" / "tuple--cpython-3.13--xor"
    folder.mkdir(parents=True)
    (folder / "mine").symlink_to(tmp_path / "mine")
    store.remove(folder)
    assert not folder.exists()
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_nothing_is_removed_from_a_folder_without_the_marker(store):
    folder = store.folder / "evidence"
    folder.mkdir()
    (store.folder / files.MARKER).unlink()
    store.remove(folder)
    assert folder.exists()


def test_nothing_outside_the_run_is_removed(store, tmp_path):
    (tmp_path / "mine").mkdir()
    (store.folder / "evidence").symlink_to(tmp_path / "mine")
    for path in (store.folder / "evidence", store.folder / ".." / "mine"):
        with pytest.raises(Unreadable, match="leads out of"):
            store.remove(path)
    with pytest.raises(ValueError, match="not in the subpath"):
        store.remove(tmp_path / "mine")
    assert (tmp_path / "mine").exists()


# Kept as one file


def test_a_kept_run_reads_the_same_as_the_run_itself(store, tmp_path):
    file = tmp_path / "kept" / "smoke.jsonl.xz"
    store.write_vouching(vouching())
    store.write_profile(looked())
    store.write_looker(store.run)
    for block in (1, 0):
        store.write(record(CELLS[0], block))
        kept = store.keep_as(file)
        assert kept.snapshot() == store.snapshot() == unpack(file)
        assert kept.run == store.run
        assert kept.records() == store.records()
        assert kept.vouchings() == store.vouchings() == [kept.vouching("xor")]
        assert kept.profiles() == store.profiles()
        assert kept.looker == store.looker
    assert [path.name for path in file.parent.iterdir()] == ["smoke.jsonl.xz"]


def test_a_damaged_run_is_not_kept(store, tmp_path):
    kept = store.keep_as(tmp_path / "smoke.jsonl.xz")
    store.write(record(CELLS[0], 0)).write_text("{")
    with pytest.raises(Unreadable):
        store.keep_as(kept.path)
    assert RunFile(kept.path).records() == []


def test_the_projects_own_baseline_runs_may_be_replaced(tmp_path):
    found = sorted(BASELINE_RUNS.iterdir())
    assert [path.name for path in found] == ["full.jsonl.xz", "smoke.jsonl.xz"]
    for path in found:
        copy = tmp_path / path.name
        copy.write_bytes(path.read_bytes())
        assert RunFile(path).keep_as(copy).snapshot() == RunFile(path).snapshot()
