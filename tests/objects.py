"""Cache of compiled objects for all tests of a run: each C program is compiled once per compiler and flags.

The key is a hash of everything that goes into an object, so a change to a generator, a flag or a compiler makes a new
one. The folder is deleted after the run; `python -m tests` sets `ZOOMGRAD_TEST_OBJECTS` for every interpreter. Each use
gets its own copy, because loading the same file twice gives one library with one set of static variables.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from unittest import mock

from zoomgrad.engines.kernel import building

compile_anew = building.build


@contextlib.contextmanager
def shared(folder):
    """Inside the block, make `building.build` read objects from the folder and write new ones to it."""

    @contextlib.contextmanager
    def build(tool, units, flags):
        parts = [*tool.command, tool.version, *flags, *units]
        made = folder / f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()}.so"
        if not made.exists():
            with compile_anew(tool, units, flags) as path:
                leave(path, made)
                yield path
            return
        with tempfile.TemporaryDirectory(prefix=building.FOLDER_PREFIX) as private:
            path = Path(private) / "program.so"
            shutil.copyfile(made, path)
            yield path

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with mock.patch.object(building, "build", build):
        yield


def leave(path, made):
    """Copy the file there atomically, because another process may be looking for it."""
    descriptor, draft = tempfile.mkstemp(dir=made.parent)
    os.close(descriptor)
    shutil.copyfile(path, draft)
    Path(draft).replace(made)
