"""Folders that are replaced: only our own, and never lost, whenever the process is killed."""

import itertools
import os
import signal
import sys

import pytest

from results import owned
from results.files import Unreadable


def made(folder, text):
    """Replace `folder` by one that holds that text."""
    new = owned.begin(folder, text)
    (new / "records").mkdir()
    (new / "records" / "a.json").write_text(text)
    (new / "run.json").write_text(text)
    owned.replace(folder)


def held(folder):
    return {path.read_text() for path in (folder / "run.json", folder / "records" / "a.json")}


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    folder = tmp_path / "smoke"
    for text in ("old", "new"):
        made(folder, text)
        assert held(folder) == {text}
        assert [path.name for path in tmp_path.iterdir()] == ["smoke"]


def test_an_empty_folder_may_be_replaced(tmp_path):
    (tmp_path / "smoke").mkdir()
    made(tmp_path / "smoke", "new")
    assert held(tmp_path / "smoke") == {"new"}
    assert [path.name for path in tmp_path.iterdir()] == ["smoke"]


@pytest.mark.parametrize("disguise", ["none", "empty", "another's", "link"])
def test_a_folder_that_somebody_else_made_stays(tmp_path, disguise):
    folder, mine = tmp_path / "smoke", tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("years of work")
    if disguise == "link":
        owned.mark(mine, "run")
        folder.symlink_to(mine)
    else:
        mine.rename(folder)
        mine = folder
        if disguise != "none":
            (folder / owned.MARKER).write_text("" if disguise == "empty" else "another program\n")
    with pytest.raises(Unreadable, match="did not make this folder"):
        made(folder, "new")
    assert (mine / "thesis.tex").read_text() == "years of work"


def test_a_link_in_a_folder_that_is_replaced_is_not_followed(tmp_path):
    made(tmp_path / "smoke", "old")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    (tmp_path / "smoke" / "mine").symlink_to(tmp_path / "mine")
    (tmp_path / "smoke" / "records" / "mine").symlink_to(tmp_path / "mine")
    made(tmp_path / "smoke", "new")
    assert held(tmp_path / "smoke") == {"new"}
    assert (tmp_path / "mine" / "thesis.tex").exists()


CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "open", "shutil.rmtree"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process to kill")
def test_a_process_killed_at_any_step_loses_neither_the_old_nor_the_new(tmp_path):
    """Killed before the n-th change to the disk, for every n until the replacement is through."""
    for step in itertools.count():
        folder = tmp_path / str(step) / "smoke"
        made(folder, "old")
        child = os.fork()
        if not child:
            left = itertools.count(step, -1)
            sys.addaudithook(
                lambda event, _, left=left: (
                    os.kill(os.getpid(), signal.SIGKILL) if event in CHANGES and next(left) == 0 else None
                )
            )
            made(folder, "new")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        owned.recover(folder)
        assert held(folder) in ({"old"}, {"new"}), step
        made(folder, "newest")
        assert held(folder) == {"newest"}
        if os.WIFEXITED(status):
            break
    assert os.WEXITSTATUS(status) == 0
    assert step > 10, "the hook saw the changes"
