"""A run packed into one file: packing is deterministic, and a hostile file is refused quickly in bounded memory."""

import json
import lzma
import subprocess
import sys
import textwrap

import pytest

from tests.harness.runs import cell, measured, run
from zoomgrad.results import run_file
from zoomgrad.results.files import Unreadable
from zoomgrad.results.run_file import MOST_LINE_BYTES, MOST_UNPACKED_BYTES, Snapshot, pack, unpack
from zoomgrad.results.store import BASELINE_RUNS, RunFile

SNAPSHOT = Snapshot(run=run("a-run", cells=(cell("tuple"),)), records=(measured("tuple", 0),))
RUN, RECORD = (json.loads(line) for line in lzma.decompress(pack(SNAPSHOT)).splitlines())


def test_a_run_survives_a_round_trip_and_gives_the_same_bytes(tmp_path):
    (tmp_path / "a.jsonl.xz").write_bytes(pack(SNAPSHOT))
    assert unpack(tmp_path / "a.jsonl.xz") == SNAPSHOT
    assert pack(unpack(tmp_path / "a.jsonl.xz")) == pack(SNAPSHOT)


@pytest.mark.parametrize("name", ["full", "smoke"])
def test_a_committed_baseline_run_may_be_replaced(name, tmp_path):
    kept = RunFile(BASELINE_RUNS / f"{name}.jsonl.xz")
    copy = tmp_path / kept.path.name
    copy.write_bytes(kept.path.read_bytes())
    assert kept.keep_as(copy).snapshot() == kept.snapshot()


@pytest.mark.parametrize("limit", ["MOST_UNPACKED_BYTES", "MOST_LINE_BYTES"])
def test_a_run_that_could_not_be_read_back_is_not_packed(monkeypatch, limit):
    monkeypatch.setattr(run_file, limit, 100)
    with pytest.raises(Unreadable, match="too large for a file"):
        pack(SNAPSHOT)


def packed(*lines):
    return lzma.compress("\n".join(map(json.dumps, lines)).encode())


def altered(**fields):
    return {"record": {**RECORD["record"], **fields}}


def of(engine):
    return altered(cell={**RECORD["record"]["cell"], "engine": engine})


MALFORMED = {
    "empty": (b"", "is cut short"),
    "text": (b"years of work", "not an xz file"),
    "cut short": (packed(RUN, RECORD)[:-9], "is cut short"),
    "two streams": (packed(RUN) + packed(RECORD), "has data after the end of its stream"),
    "a dictionary of a gigabyte": (
        # Called by the test, because it takes seconds.
        lambda: lzma.compress(b"{}", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 2**30}]),
        "not an xz file",
    ),
    "not text": (lzma.compress(b"\xff\xfe"), "line 1: the file as a whole"),
    "nothing": (lzma.compress(b""), "run: "),
    "without a run": (packed(RECORD), "run: "),
    "two plans": (packed(RUN, RUN, RECORD), "line 2: holds another plan"),
    "text for a time": (packed(RUN, RECORD, altered(step_seconds=["fast"])), "line 3: record.step_seconds.0: "),
    "a path for a name": (packed(RUN, of("../x")), "line 2: record.cell"),
    "a record twice": (packed(RUN, RECORD, RECORD), "holds twice: "),
    "a record of another run": (packed(RUN, of("slots")), "slots/cpython-3.13/xor is not a cell of this run"),
    "an unknown line": (packed(RUN, {"more": 1}), "line 2: more: "),
    "two kinds in one line": (packed({**RUN, **RECORD}), "a line must hold exactly one of run, record"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_file_is_refused_with_its_name_and_the_cause(tmp_path, what):
    content, said = MALFORMED[what]
    file = tmp_path / "strange.jsonl.xz"
    file.write_bytes(content() if callable(content) else content)
    with pytest.raises(Unreadable) as caught:
        _ = RunFile(file).run
    first, remedy = str(caught.value).splitlines()
    assert first.startswith(f"{file}: ")
    assert said in first
    assert remedy.startswith("  ")
    assert [path.name for path in tmp_path.iterdir()] == [file.name], "something was unpacked to the disk"


BOMBS = {
    "zeros": lambda: b"\0" * (MOST_UNPACKED_BYTES + 1),
    "a line of keys": lambda: b'{"record":{' + b'"":1,' * (MOST_LINE_BYTES // 6) + b'"":1}}',
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_decompression_bomb_takes_bounded_memory(tmp_path, bomb):
    file = tmp_path / "bomb.jsonl.xz"
    file.write_bytes(lzma.compress(BOMBS[bomb](), preset=1))
    code = f"""
        from pathlib import Path
        from zoomgrad.results.files import Unreadable
        from zoomgrad.results.run_file import unpack
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))  # 140 MB before
        try:
            unpack(Path({str(file)!r}))
        except Unreadable:
            print("refused")
    """
    asked = [sys.executable, "-c", textwrap.dedent(code)]
    assert subprocess.run(asked, capture_output=True, text=True, check=False).stdout == "refused\n"


def test_nothing_is_written_into_a_folder_that_zoomgrad_did_not_make(tmp_path):
    """A downloaded `thesis.jsonl.xz` must not touch the folder `thesis` beside it."""
    kept = RunFile(tmp_path / "thesis.jsonl.xz")
    kept.path.write_bytes(pack(SNAPSHOT))
    theirs = tmp_path / "thesis"
    theirs.mkdir()
    for ask in (kept.pages_folder, lambda: kept.file("check.md"), lambda: kept.file("export", "run.csv")):
        with pytest.raises(Unreadable, match="zoomgrad did not make this folder"):
            ask()
    theirs.rename(tmp_path / "elsewhere")
    assert kept.file("check.md").parent == kept.pages_folder() == theirs
