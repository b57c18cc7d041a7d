"""Interpreter -> a virtual environment with the packages of a lock file, which uv makes once and later runs reuse."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from uv import find_uv_bin

from zoomgrad.engines.asking import NoAnswer, ask
from zoomgrad.harness.machine.interpreters import Interpreter
from zoomgrad.results.places import STATE

ENVIRONMENTS = STATE / "environments"
REQUIREMENTS = Path(__file__).parent / "requirements"
"""Lock files, which an installed copy has too."""

READY = ".ready"
"""File that a folder gets when everything has been installed there."""

INSTALL_SECONDS = 3600
"""Time limit of uv, which may download gigabytes."""
TAIL_CHARACTERS = 600


WORKER = "worker"
"""The lock of ordinary workers, which has NumPy where it installs."""


class NoEnvironment(Exception):
    """uv could not make a worker's environment. The text has the end of uv's output."""

    remedy = "Check the network, then resume the run."


def environment(interpreter: Interpreter, *, lock: str = WORKER) -> Path:
    """Path of the Python in a virtual environment with the lock file's packages. Makes the environment if needed.

    Raises NoEnvironment with the end of uv's output.
    """
    folder = _folder(f"{interpreter.name}-{lock}", lock, str(interpreter.path), interpreter.full_version)
    python = folder / "bin" / "python"
    # A script that starts it with its JIT on, so that what starts workers need not know about JITs.
    with_jit = python.with_name("python-jit")

    def make() -> None:
        _uv("venv", "--quiet", "--no-project", "--python", str(interpreter.path), str(folder))
        if interpreter.jit:
            with_jit.write_text(f'#!/bin/sh\nPYTHON_JIT=1 exec {shlex.quote(str(python))} "$@"\n')
            with_jit.chmod(0o755)
        _install(lock, "--python", str(python))

    _once(folder, make)
    return with_jit if interpreter.jit else python


def packages(lock: str) -> Path:
    """Folder with the lock file's packages alone, for their programs. Makes it if needed. Raises NoEnvironment."""
    folder = packages_folder(lock)
    _once(folder, lambda: _install(lock, "--python", sys.executable, "--target", str(folder)))
    return folder


def packages_folder(lock: str) -> Path:
    """Where `packages` puts the lock file's packages."""
    return _folder(lock, lock, sys.platform, platform.machine())


def is_whole(folder: Path) -> bool:
    """Whether everything has been installed there."""
    return (folder / READY).exists()


def _once(folder: Path, make: Callable[[], None]) -> None:
    """Have a folder made, once, even if several processes need it at the same time."""
    from filelock import FileLock  # late: every command looks for our Clang, and most make nothing

    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not is_whole(folder):
            shutil.rmtree(folder, ignore_errors=True)
            make()
            (folder / READY).touch()


def _folder(name: str, lock: str, *facts: str) -> Path:
    """The folder for the packages of a lock file. Its name ends with a hash of the file and of these facts."""
    text = "\n".join((*facts, _lock_file(lock).read_text()))
    return ENVIRONMENTS / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _lock_file(lock: str) -> Path:
    return REQUIREMENTS / f"{lock}.lock"


def _install(lock: str, *where: str) -> None:
    _uv("pip", "install", "--quiet", *where, "--requirement", str(_lock_file(lock)))


def install_python(name: str) -> None:
    """Let uv install the interpreter of that name. Raises NoEnvironment, for example without a network."""
    _uv("python", "install", name)


def _uv(*arguments: str) -> None:
    try:
        ask([find_uv_bin(), *arguments], seconds=INSTALL_SECONDS, environment=os.environ)
    except NoAnswer as none:
        tail = none.output.strip()[-TAIL_CHARACTERS:]
        raise NoEnvironment(f"uv {arguments[0]} {none.reason}{tail and f': {tail}'}") from none
