"""Folders that zoomgrad made, and so may remove. Each has a marker; a folder without one belongs to somebody else.

    <runs>/<run>/.zoomgrad-run       a run's
    <reference>/<preset>/.zoomgrad-run

A folder is replaced in three steps, each of which leaves the old or the new one whole:

    .<name>.new    the new one is written
    .<name>.old    the old one is put aside, and the new one takes its place
                   the old one is removed

The next command calls `recover`, which undoes or completes an interrupted replacement.
"""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

from results.files import Unreadable, inside, read_text, sync_folder, write_atomically

MARKER = ".zoomgrad-run"
_FIRST_LINE = "zoomgrad run folder, version 1"


def mark(folder: Path, run_id: str) -> None:
    """Put the marker into a folder that was just made for that run."""
    write_atomically(folder / MARKER, f"{_FIRST_LINE}\n{run_id}\n")


def is_marked(folder: Path) -> bool:
    """Whether zoomgrad made the folder. False for a link."""
    try:
        return not folder.is_symlink() and read_text(inside(folder, MARKER)).startswith(f"{_FIRST_LINE}\n")
    except (Unreadable, OSError):
        return False


def remove(folder: Path) -> None:
    """Remove a marked folder with all that is in it; links in it are removed, and not followed.

    The marker goes last, so that an interrupted removal can be continued.
    """
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != MARKER:
            path.unlink()
    (folder / MARKER).unlink()
    folder.rmdir()


def begin(folder: Path, run_id: str) -> Path:
    """A new, marked folder beside `folder`, which `replace` puts in its place.

    Raises Unreadable where what is there now is not ours to replace.
    """
    recover(folder)
    _refuse_others(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Marked before it gets its name: a folder of that name without a marker would be in the way for ever.
    made = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    made.mkdir()
    mark(made, run_id)
    return made.rename(_new(folder))


def replace(folder: Path) -> None:
    """Put what `begin` began in the place of `folder`, which is removed."""
    if is_marked(folder):
        folder.rename(_old(folder))
    elif folder.exists():
        folder.rmdir()
    _new(folder).rename(folder)
    sync_folder(folder.parent)
    recover(folder)


def recover(folder: Path) -> None:
    """Undo an interrupted replacement of `folder`, or complete it if the new folder is already in place."""
    old, new = _old(folder), _new(folder)
    if is_marked(old):
        if folder.exists():
            remove(old)
        else:
            old.rename(folder)
    if is_marked(new):
        remove(new)


def _refuse_others(folder: Path) -> None:
    if (folder.exists() or folder.is_symlink()) and not is_marked(folder) and not _is_empty(folder):
        raise Unreadable(
            f"{folder}: zoomgrad did not make this folder (it has no {MARKER}), so it does not replace it\n"
            "  Move it away, then try again."
        )


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir())


def _new(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.new")


def _old(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")
