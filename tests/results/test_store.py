"""Records on disk: whole or absent, back in the plan's order, and an unreadable one names its file and field."""

import os
from datetime import UTC, datetime

import pytest

import results.store as stores
from results.profile import CollectorProfile
from results.record import Cell, EngineFacts, InterpreterFacts, Record, Run
from results.store import Store, Unreadable, latest, write_atomically

NOW = datetime(2025, 1, 1, tzinfo=UTC)
CELLS = tuple(Cell(engine=engine, interpreter="cpython-3.13", workload="xor") for engine in ("tuple", "baseline"))


@pytest.fixture
def store(tmp_path):
    run = Run(
        id="2025-01-01",
        created_at=NOW,
        command=("zoomgrad", "run"),
        preset="smoke",
        seed=1,
        blocks=2,
        cells=CELLS,
        reference_interpreter="cpython-3.13",
        engines={},
        workloads={},
        interpreters={"cpython-3.13": InterpreterFacts(version="3.13.0")},
        machine={},
    )
    return Store.create(run, under=tmp_path)


def record(cell, block):
    return Record(cell=cell, block=block, status="measured", step_seconds=(0.1, 0.2), started_at=NOW)


def test_records_come_back_in_the_order_of_the_plan(store):
    written = [record(cell, block) for cell in CELLS for block in (0, 1)]
    for one in reversed(written):
        store.write(one)
    assert store.records() == written


def test_a_record_written_twice_is_one_record(store):
    store.write(record(CELLS[0], 0))
    store.write(record(CELLS[0], 0))
    assert len(store.records()) == 1


def test_a_draft_left_by_a_crash_is_no_record(store):
    (store.folder / "records" / ".tuple--cpython-3.13--xor--0.json.123").write_text("{")
    assert store.records() == []


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file.json"
    write_atomically(path, "old")

    def full(_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_atomically(path, "new")
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('{"cell": ', "the file as a whole"),
        (record(CELLS[0], 0).model_dump_json().replace('"measured"', '"fine"'), "status"),
        (record(CELLS[0], 0).model_dump_json().replace("0.2", '"fast"'), "step_seconds.1"),
    ],
    ids=["cut short", "unknown status", "text for a time"],
)
def test_an_unreadable_record_names_its_file_and_field(store, text, field):
    path = store.write(record(CELLS[0], 0))
    path.write_text(text)
    with pytest.raises(Unreadable) as caught:
        store.records()
    assert f"{path}: {field}: " in str(caught.value)


def test_bytes_that_are_no_text_are_unreadable(store):
    path = store.write(record(CELLS[0], 0))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(Unreadable, match="not UTF-8"):
        store.records()


def test_a_folder_without_a_run_is_unreadable(tmp_path):
    with pytest.raises(Unreadable, match=r"run\.json: no such file"):
        _ = Store(tmp_path).run


def test_the_latest_run_is_the_last_by_name(store, tmp_path):
    newer = store.run.model_copy(update={"id": "2025-01-02"})
    Store.create(newer, under=tmp_path)
    assert latest(tmp_path).run.id == "2025-01-02"


def test_no_run_yet_says_how_to_make_one(tmp_path):
    with pytest.raises(Unreadable, match="zoomgrad run"):
        latest(tmp_path)


def test_profiles_come_back_with_the_facts_of_all_who_looked(store):
    cell = Cell(engine="slots", interpreter="cpython-3.13", workload="xor")
    profile = CollectorProfile(cell=cell, status="measured", started_at=NOW, share=0.5, steps=3)
    assert store.looker is None
    for engine in ("slots", "hoisted"):
        facts = {engine: EngineFacts(idea="", strict=True)}
        store.write_looker(store.run.model_copy(update={"engines": facts}))
    store.write_profile(profile)
    assert store.profiles() == [profile]
    assert list(store.looker.engines) == ["slots", "hoisted"]
    assert store.run.engines == {}, "the race's own plan stays as it was"


def test_objects_lie_apart_from_the_run_folder(store, tmp_path, monkeypatch):
    """A run folder may be a stranger's, and so may the id in it; code from it would be anybody's."""
    monkeypatch.setattr(stores, "OBJECTS", tmp_path / "ours")
    folders = [store.objects_folder(cell) for cell in CELLS]
    assert len(set(folders)) == len(CELLS)
    assert all((tmp_path / "ours") in folder.parents and store.folder not in folder.parents for folder in folders)
    (tmp_path / "elsewhere").mkdir()
    same_id = Store.create(store.run, under=tmp_path / "elsewhere")
    assert same_id.objects_folder(CELLS[0]) not in folders
    link = tmp_path / "link"
    link.symlink_to(store.folder)
    assert Store(link).objects_folder(CELLS[0]) == folders[0], "the same run by another name"
    for folder in (*folders, same_id.objects_folder(CELLS[0])):
        folder.mkdir(parents=True)
    store.remove_objects()
    assert [path.exists() for path in folders] == [False, False]
    assert same_id.objects_folder(CELLS[0]).exists()
