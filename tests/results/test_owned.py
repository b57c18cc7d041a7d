"""Only folders with zoomgrad's own marker count as folders that zoomgrad made."""

import pytest

from results import files


def test_a_marked_folder_is_ours(tmp_path):
    files.mark(tmp_path, "a run")
    assert files.is_marked(tmp_path)


@pytest.mark.parametrize("disguise", ["none", "empty", "another's", "link", "marker elsewhere"])
def test_a_folder_that_someone_else_made_is_not_ours(tmp_path, disguise):
    folder, mine = tmp_path / "folder", tmp_path / "mine"
    mine.mkdir()
    files.mark(mine, "run")
    if disguise == "link":
        folder.symlink_to(mine)
    else:
        folder.mkdir()
        if disguise == "marker elsewhere":
            (folder / files.MARKER).symlink_to(mine / files.MARKER)
        elif disguise != "none":
            (folder / files.MARKER).write_text("" if disguise == "empty" else "another program\n")
    assert not files.is_marked(folder)
