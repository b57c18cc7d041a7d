"""Private folders: only content that was kept is ever returned, in folders that nobody else could have changed."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.files import Unsound, get, put, write_atomically

if os.name != "posix":
    pytest.skip("owners and modes exist only on POSIX", allow_module_level=True)

A, B, C, D = (letter * 32 for letter in "abcd")
MOST = 10_000


@pytest.fixture
def folder(tmp_path):
    """A folder with one file, which holds `content` under the name A."""
    put(tmp_path / "private" / "files", A, b"con", b"tent")
    return tmp_path / "private" / "files"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_content_is_kept_and_found(folder):
    assert get(folder, A, MOST) == b"content"
    assert get(folder, B, MOST) is None
    assert get(folder.with_name("none"), A, MOST) is None
    (file,) = folder.iterdir()  # no draft is left
    assert file.read_bytes() == hashlib.sha256(b"content").hexdigest().encode() + b"\ncontent"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, file)] == [0o700, 0o600]


def test_a_write_that_fails_leaves_nothing(folder, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        put(folder, B, b"more")
    assert names(folder) == [f"{A}.object"]


# --- folders that others could have changed --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_a_folder_that_others_may_write_is_refused(folder, mode):
    folder.chmod(mode)
    for use in (lambda: get(folder, A, MOST), lambda: put(folder, B, b"")):
        with pytest.raises(Unavailable, match="others may write to it"):
            use()
    assert names(folder) == [f"{A}.object"]
    folder.chmod(0o755)
    assert get(folder, A, MOST), "a folder that others may only read was refused"


def test_a_folder_that_is_a_link_is_refused(tmp_path, folder):
    (tmp_path / "link").symlink_to(folder)
    for use in (lambda: get(tmp_path / "link", A, MOST), lambda: put(tmp_path / "link", B, b"")):
        with pytest.raises(Unavailable, match="is a link"):
            use()


# --- files that are not the kept one ---------------------------------------------------------------------------------


def flip(at):
    def flipped(file):
        content = bytearray(file.read_bytes())
        content[at] ^= 1
        file.write_bytes(content)

    return flipped


def link(file):
    file.rename(file.parent.parent / "elsewhere")
    file.symlink_to(file.parent.parent / "elsewhere")


def fifo(file):
    file.unlink()
    os.mkfifo(file, 0o600)


SPOILT = {
    **{f"cut at {at}": (lambda file, at=at: os.truncate(file, at), "do not match") for at in (0, 64)},
    **{f"flipped at {at}": (flip(at), "do not match") for at in (0, 71)},
    "longer": (lambda file: file.write_bytes(file.read_bytes() + b"x"), "do not match"),
    "too long": (lambda file: file.write_bytes(bytes(MOST + 1)), "10,001 bytes"),
    "a link": (link, "not a regular file"),
    "a FIFO": (fifo, "not a regular file"),
}


@pytest.mark.parametrize("how", SPOILT)
def test_a_file_that_cannot_be_trusted_is_removed(folder, how):
    spoil, why = SPOILT[how]
    spoil(folder / f"{A}.object")
    with pytest.raises(Unsound, match=why):
        get(folder, A, MOST)
    assert names(folder) == []
    assert get(folder, A, MOST) is None


def test_a_planted_draft_is_not_followed(folder, tmp_path, monkeypatch):
    """The link is not followed even if its name was guessed correctly."""
    monkeypatch.setattr(os, "urandom", lambda _: b"\x07")
    (tmp_path / "secret").write_text("mine")
    (folder / ".07.draft").symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="File exists"):
        put(folder, B, b"content")
    with pytest.raises(OSError, match=r"File exists: .*name"):
        write_atomically(folder / "name", "text")
    assert (tmp_path / "secret").read_text() == "mine"


# --- its size --------------------------------------------------------------------------------------------------------


def aged(file, seconds):
    then = file.parent.stat().st_mtime - seconds
    os.utime(file, (then, then))


def test_what_was_not_used_for_the_longest_time_is_removed_first(tmp_path):
    for age, name in ((40, A), (30, B), (20, C)):
        put(tmp_path, name, bytes(1000), most_bytes=3500)
        aged(tmp_path / f"{name}.object", age)
    assert get(tmp_path, A, MOST)  # makes it the one that was used last
    put(tmp_path, D, bytes(1000), most_bytes=3500)
    assert names(tmp_path) == [f"{name}.object" for name in (A, C, D)]


CHURN = """
import sys
from pathlib import Path
from zoomgrad.engines.files import get, put
folder, content = Path(sys.argv[1]), bytes(range(250)) * 16
for turn in range(60):
    name = str(turn % 4) * 32
    assert get(folder, name, 10_000) in (None, content)
    put(folder, name, content, most_bytes=9000)
"""


def test_processes_share_a_folder(tmp_path):
    """Each writes and removes files of the others, and reads only whole ones."""
    command = [sys.executable, "-W", "error", "-c", CHURN, str(tmp_path / "shared")]
    root = Path(__file__).parents[2]
    running = [subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in running:
        assert (process.communicate(timeout=60)[1], process.returncode) == ("", 0)
    assert sum(file.stat().st_size for file in (tmp_path / "shared").iterdir()) <= 9000
