"""The folder that makes our packages importable in any interpreter, and nothing else."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from zoomgrad.engines import discovery
from zoomgrad.harness.worker.lifeline import HARNESS
from zoomgrad.results.places import PACKAGE, ROOT, STATE
from zoomgrad.results.store import RUNS


def importable() -> Path:
    """Return a folder for a worker's PYTHONPATH, with nothing but a link to our package.

    A checkout also holds folders with the names of other packages, such as `datasets`. `site-packages` has packages of
    one interpreter, which would hide the worker's packages.
    """
    folder = STATE / "packages" / hashlib.sha256(os.fsencode(ROOT)).hexdigest()[:12]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (folder / PACKAGE.name).symlink_to(PACKAGE)
    return folder


def with_project(variables: Mapping[str, str]) -> dict[str, str]:
    """Environment variables, with this project on the path of any interpreter, and the files from outside."""
    paths = [str(importable()), *filter(None, [variables.get("PYTHONPATH")])]
    added = {"PYTHONPATH": os.pathsep.join(paths), HARNESS: str(os.getpid())}
    return {**variables, **discovery.variables(), **added}


SUFFIXES = (".py", ".c", ".h", ".lock")
"""Of sources, and of the files that worker environments are made from."""


def code_digest() -> str:
    """Digest of our package's files, and of engines and workloads from discovery.

    Unlike a commit, it tells changed checkouts apart.
    """
    digest = hashlib.sha256()
    for top in (PACKAGE, *discovery.sources()):
        for path in [top] if top.is_file() else _files(top):
            if path.suffix in SUFFIXES and not path.resolve().is_relative_to(RUNS):
                content = path.read_bytes()
                digest.update(f"{path.relative_to(top.parent).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _files(top: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(top, followlinks=True):
        folders.sort()
        yield from (Path(folder, name) for name in sorted(names))


_START = """import sys
sys.path[: not sys.path[0]] = [sys.argv.pop(1)]
import runpy
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
"""`python -m` with our folder first on the path instead of the current folder, which may have a module of our name. If
PYTHONSAFEPATH is set, the current folder is not on the path."""


def worker_command(python: Path, module: str, *arguments: str) -> list[str]:
    """Return the command that runs one of our modules in the user's folder."""
    return [str(python), "-c", _START, str(importable()), module, *arguments]
