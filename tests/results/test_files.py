"""Untrusted files: no link is followed out of the folder, no read hangs, and no write is torn."""

import contextlib
import errno
import os
import socket

import pytest

from zoomgrad.results import files
from zoomgrad.results.files import MOST_BYTES, Unreadable, folder_inside, inside, read, read_text, write_atomically
from zoomgrad.results.record import Run


@pytest.fixture
def root(tmp_path):
    """A folder, with a secret file next to it that must not be read."""
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "root" / "records").mkdir(parents=True)
    return tmp_path / "root"


@pytest.mark.parametrize(
    ("link", "to", "parts"),
    [
        ("records/a.json", "../../secret", ("records", "a.json")),
        ("records/a.json", "/etc/passwd", ("records", "a.json")),
        ("export", "..", ("export", "secret")),
        ("export", "/", ("export", "etc")),
        ("all", ".", ("all",)),
        ("records/away", "/absent", ("records", "away")),
    ],
)
def test_a_link_that_leads_out_is_refused(root, link, to, parts):
    (root / link).symlink_to(to)
    with pytest.raises(Unreadable, match="leads out of"):
        inside(root, *parts)


@pytest.mark.parametrize("part", ["..", "../secret", "/etc/passwd", ".", ""])
def test_a_part_that_leads_out_is_refused(root, part):
    with pytest.raises(Unreadable, match="leads out of"):
        inside(root, part)


def test_links_within_the_folder_and_to_the_folder_are_followed(root, tmp_path):
    (root / "records" / "a.json").write_text("text")
    (root / "b.json").symlink_to("records/a.json")
    (tmp_path / "elsewhere").symlink_to(root)
    assert read_text(inside(tmp_path / "elsewhere", "b.json")) == "text"


def test_a_folder_with_a_link_that_leads_out_is_refused(root):
    folder_inside(root, "evidence", "absent")
    (root / "evidence").mkdir()
    (root / "evidence" / "32.doubles").symlink_to("../../secret")
    with pytest.raises(Unreadable, match="leads out of"):
        folder_inside(root, "evidence")


def special(path, kind):
    if kind == "folder":
        path.mkdir()
    elif kind == "FIFO":
        os.mkfifo(path)
    elif kind in ("device", "circular link"):
        path.symlink_to("/dev/zero" if kind == "device" else path.name)
    else:
        # A socket's path has at most 108 bytes.
        with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)


@pytest.mark.parametrize("kind", ["folder", "FIFO", "device", "circular link", "socket"])
def test_a_special_file_is_neither_waited_for_nor_read(root, kind):
    path = root / "run.json"
    special(path, kind)
    with pytest.raises((Unreadable, OSError)) as caught:
        read(path, Run)
    assert "run.json" in str(caught.value)
    if kind != "folder":
        with pytest.raises(Unreadable):
            inside(root, "run.json")


def test_an_oversized_file_is_refused(root):
    with (root / "run.json").open("wb") as file:
        file.truncate(MOST_BYTES * 1000)  # sparse: it takes no space
    with pytest.raises(Unreadable, match="longer than 16,777,216 bytes"):
        read(root / "run.json", Run)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"seed": ' + "9" * 1_000_000 + "}",
        '{"id": "\\ud800"}',
        '{"status": "' + "secret" * 100_000 + '"}',
        '{"' + "secret" * 100_000 + '": 1}',
        "\0" * 100,
    ],
    ids=["lists", "objects", "digits", "surrogate", "long text", "long key", "zeros"],
)
def test_malformed_json_is_one_short_error(root, text):
    (root / "run.json").write_text(text)
    with pytest.raises(Unreadable) as caught:
        read(root / "run.json", Run)
    assert len(str(caught.value)) < 2_000


def full(_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_keeps_the_old_file_and_no_draft(root, monkeypatch):
    write_atomically(root / "run.json", "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"run\.json") as caught:
        write_atomically(root / "run.json", "new")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(root / "run.json"))
    assert (root / "run.json").read_text() == "old"
    assert sorted(path.name for path in root.iterdir()) == ["records", "run.json"]


# Folders that zoomgrad made


@pytest.mark.parametrize("disguise", ["none", "empty", "another's", "link", "marker elsewhere"])
def test_a_folder_that_someone_else_made_is_not_ours(tmp_path, disguise):
    folder, mine = tmp_path / "folder", tmp_path / "mine"
    mine.mkdir()
    files.mark(mine, "run")
    assert files.is_marked(mine)
    if disguise == "link":
        folder.symlink_to(mine)
    else:
        folder.mkdir()
        if disguise == "marker elsewhere":
            (folder / files.MARKER).symlink_to(mine / files.MARKER)
        elif disguise != "none":
            (folder / files.MARKER).write_text("" if disguise == "empty" else "another program\n")
    assert not files.is_marked(folder)
