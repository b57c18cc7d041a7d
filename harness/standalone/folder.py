"""The folder of a build: only files that a build wrote, and that nobody changed since, are replaced or removed.

A marker lists the files of the last build with their hashes, so a forged marker endangers only files whose content its
author knows.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from engines.standalone.graph import Unfit
from results.files import NotAsWritten, read_bytes, write_atomically
from results.printable import on_one_line

MARKER = ".zoomgrad-build"
_FIRST_LINE = "zoomgrad build folder, version 1"
_LINE = re.compile(r"([0-9a-f]{64}) ([A-Za-z0-9_][A-Za-z0-9_.]{0,99})")
_DRAFT = re.compile(r"\.[0-9a-f]{16}\.draft")
MOST_FILE_BYTES = 1 << 30


def check_folder(folder: Path) -> set[str]:
    """Return the files of an earlier build there. Raises Unfit if the folder holds anything else."""
    if not os.path.lexists(folder):
        return set()
    if not folder.is_dir():
        raise Unfit(f"{folder}: not a folder", "Choose another name for --into.")
    written = _written(folder)
    for path in sorted(folder.iterdir()):
        ours = bool(written) and (path.name == MARKER or is_draft(path))
        if not ours and _hash_of(path) not in written.get(path.name, ()):
            why = "was changed since a build wrote it" if path.name in written else "no build wrote"
            raise Unfit(
                f"{folder}: it holds {on_one_line(path.name)}, which {why}",
                "Choose another folder, or move the file away.",
            )
    return set(written)


def fill(folder: Path, files: Mapping[str, bytes]) -> None:
    """Put the files there, each atomically, and remove those of earlier builds. Raises Unfit as `check_folder` does."""
    folder.mkdir(parents=True, exist_ok=True)
    earlier = check_folder(folder)
    lines = [f"{hashlib.sha256(content).hexdigest()} {name}" for name, content in files.items()]
    # Both builds' files until all are there: if this one is interrupted, the next one knows them all.
    old = [f"{digest} {name}" for name, digests in _written(folder).items() for digest in sorted(digests)]
    _mark(folder, [*old, *lines])
    for name, content in files.items():
        write_atomically(folder / name, content)
    for draft in filter(is_draft, folder.iterdir()):
        draft.unlink(missing_ok=True)  # a build was killed before it renamed this one
    for name in earlier - files.keys():
        (folder / name).unlink(missing_ok=True)
    _mark(folder, lines)


def is_draft(path: Path) -> bool:
    """Whether the file has the name that `write_atomically` gives to a file until it is whole."""
    return bool(_DRAFT.fullmatch(path.name)) and path.is_file() and not path.is_symlink()


def _mark(folder: Path, lines: list[str]) -> None:
    write_atomically(folder / MARKER, "\n".join([_FIRST_LINE, *dict.fromkeys(lines), ""]))


def _written(folder: Path) -> dict[str, set[str]]:
    """File -> its hashes, as the marker has them; empty without a marker of ours."""
    try:
        first, *lines = read_bytes(folder / MARKER, 1 << 20, follow_links=False).decode("ascii").splitlines()
    except (OSError, NotAsWritten, ValueError):
        return {}
    found: dict[str, set[str]] = {}
    for line in lines if first == _FIRST_LINE else ():
        match = _LINE.fullmatch(line)
        if match:
            found.setdefault(match[2], set()).add(match[1])
    return found


def _hash_of(path: Path) -> str:
    """The hash of a regular file; empty for anything else."""
    try:
        return hashlib.sha256(read_bytes(path, MOST_FILE_BYTES, follow_links=False)).hexdigest()
    except (OSError, NotAsWritten):
        return ""
