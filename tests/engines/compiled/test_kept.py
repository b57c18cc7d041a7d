"""Builds that no graph changes: only what was kept is ever loaded, from folders that nobody else could have changed."""

import os
import stat

import pytest

from zoomgrad.engines.files import CACHE, write_atomically
from zoomgrad.engines.kernel import building, toolchains
from zoomgrad.engines.kernel import kept as module
from zoomgrad.engines.kernel.kept import keep, kept, read

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes exist only on POSIX")


@pytest.fixture
def built(tmp_path, monkeypatch):
    """A function that returns the object of a text, and whether an earlier call built it."""
    monkeypatch.setenv(CACHE, str(tmp_path))
    tool = toolchains.find("tcc")

    def build(text):
        with kept("some", ["a", text], building.build(tool, [text], toolchains.STRICT)) as (path, seconds):
            return path.read_bytes(), seconds > 0.0

    return build


def test_an_object_is_built_once(built, tmp_path):
    content, was_kept = built("int f(void) { return 1; }")
    assert not was_kept
    assert built("int f(void) { return 1; }") == (content, True)
    assert not built("int f(void) { return 2; }")[1], "another text got the object"
    folder = tmp_path / "some"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert len(list(folder.iterdir())) == 2, "a draft is left"


def test_the_loaded_object_is_the_hashed_one(built, tmp_path, monkeypatch):
    """It is a private copy: changing the file after it was read has no effect."""
    content, _ = built("int f(void) { return 1; }")
    copy = module.write

    def change_then_copy(path, text):
        (file,) = (tmp_path / "some").iterdir()
        file.write_bytes(b"changed meanwhile")
        copy(path, text)

    monkeypatch.setattr(module, "write", change_then_copy)
    assert built("int f(void) { return 1; }") == (content, True)


# --- files and folders that others could have changed ----------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    """A file that was kept in a private folder."""
    keep(tmp_path / "private" / "file", b"content")
    return tmp_path / "private" / "file"


@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_a_folder_that_others_may_write_is_refused(file, mode):
    file.parent.chmod(mode)
    keep(file.with_name("other"), b"")
    assert (read(file), file.with_name("other").exists()) == (None, False)
    file.parent.chmod(0o755)
    assert read(file) == b"content", "a folder that others may only read was refused"
    (file.parent.parent / "link").symlink_to(file.parent)
    assert read(file.parent.parent / "link" / "file") is None


def flip(file):
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def link(file):
    file.rename(file.with_name("elsewhere"))
    file.symlink_to(file.with_name("elsewhere"))


def fifo(file):
    file.unlink()
    os.mkfifo(file, 0o600)


SPOILT = {
    "empty": lambda file: os.truncate(file, 0),
    "cut short": lambda file: os.truncate(file, file.stat().st_size // 2),  # loading it would end the process by SIGBUS
    "flipped": flip,
    "longer": lambda file: file.write_bytes(file.read_bytes() + b"x"),
    "too long": lambda file: os.truncate(file, module.MOST_BYTES + 1),
    "a link": link,
    "a FIFO": fifo,
}


@pytest.mark.parametrize("how", SPOILT)
def test_a_file_that_cannot_be_trusted_is_replaced(file, how):
    SPOILT[how](file)
    assert read(file) is None
    keep(file, b"new")
    assert read(file) == b"new"


# --- atomic writing ---------------------------------------------------------------------------------------------------


def test_a_planted_draft_is_not_followed(tmp_path, monkeypatch):
    """The link is not followed even if its name was guessed correctly."""
    monkeypatch.setattr(os, "urandom", lambda _: b"\x07")
    (tmp_path / "secret").write_text("mine")
    (tmp_path / ".07.draft").symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match=r"File exists: .*name"):
        write_atomically(tmp_path / "name", "text")
    assert (tmp_path / "secret").read_text() == "mine"
