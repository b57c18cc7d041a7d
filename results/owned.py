"""Marker files for folders that zoomgrad made: `<runs>/<run>/.zoomgrad-run`.

zoomgrad may remove files from a marked folder. A folder without a marker belongs to somebody else.
"""

from __future__ import annotations

from pathlib import Path

from results.files import Unreadable, inside, read_text, write_atomically

MARKER = ".zoomgrad-run"
_FIRST_LINE = "zoomgrad run folder, version 1"


def mark(folder: Path, run_id: str) -> None:
    """Write the marker into a folder that was just made for that run."""
    write_atomically(folder / MARKER, f"{_FIRST_LINE}\n{run_id}\n")


def is_marked(folder: Path) -> bool:
    """Whether zoomgrad made the folder. False for a link."""
    try:
        return not folder.is_symlink() and read_text(inside(folder, MARKER)).startswith(f"{_FIRST_LINE}\n")
    except (Unreadable, OSError):
        return False
