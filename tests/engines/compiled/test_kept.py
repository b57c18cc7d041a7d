"""Builds that no graph changes: only the object that was kept is ever loaded."""

import os
import stat

import pytest

from zoomgrad.engines.files import CACHE
from zoomgrad.engines.kernel import building, toolchains
from zoomgrad.engines.kernel import kept as module
from zoomgrad.engines.kernel.kept import kept

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes exist only on POSIX")


@pytest.fixture
def built(tmp_path, monkeypatch):
    """A function that returns the object of a text, and whether an earlier call built it."""
    monkeypatch.setenv(CACHE, str(tmp_path))
    tool = toolchains.find("tcc")

    def build(text):
        with kept("some", ["a", text], building.build(tool, [text], toolchains.STRICT)) as made:
            return made.path.read_bytes(), made.seconds > 0.0

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


def test_a_truncated_object_is_built_again(built, tmp_path):
    """Loading it would end the process by SIGBUS."""
    content, _ = built("int f(void) { return 1; }")
    (path,) = (tmp_path / "some").iterdir()
    os.truncate(path, path.stat().st_size // 2)
    with pytest.warns(UserWarning, match="building it again"):
        assert built("int f(void) { return 1; }") == (content, False)
    assert built("int f(void) { return 1; }") == (content, True)


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
