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

from filelock import FileLock
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
    requirements = REQUIREMENTS / f"{lock}.lock"
    folder = _folder(interpreter, requirements)

    def make() -> None:
        _uv("venv", "--quiet", "--no-project", "--python", str(interpreter.path), str(folder))
        if interpreter.jit:
            _write_switch(_python(folder))
        _uv("pip", "install", "--quiet", "--python", str(_python(folder)), "--requirement", str(requirements))

    _once(folder, make)
    return _switch(_python(folder)) if interpreter.jit else _python(folder)


def packages(lock: str) -> Path:
    """Folder with the lock file's packages alone, for their programs. Makes it if needed. Raises NoEnvironment."""
    folder = packages_folder(lock)

    def make() -> None:
        install = ("pip", "install", "--quiet", "--python", sys.executable, "--target", str(folder))
        _uv(*install, "--requirement", str(REQUIREMENTS / f"{lock}.lock"))

    _once(folder, make)
    return folder


def packages_folder(lock: str) -> Path:
    """Where `packages` puts the lock file's packages."""
    text = f"{(REQUIREMENTS / f'{lock}.lock').read_text()}\n{sys.platform} {platform.machine()}"
    return ENVIRONMENTS / f"{lock}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def is_whole(folder: Path) -> bool:
    """Whether everything has been installed there."""
    return (folder / READY).exists()


def _once(folder: Path, make: Callable[[], None]) -> None:
    """Have a folder made, once, even if several processes need it at the same time."""
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not is_whole(folder):
            shutil.rmtree(folder, ignore_errors=True)
            make()
            (folder / READY).touch()


def _folder(interpreter: Interpreter, requirements: Path) -> Path:
    fingerprint = hashlib.sha256(
        "\n".join((str(interpreter.path), interpreter.full_version, requirements.read_text())).encode()
    ).hexdigest()[:12]
    return ENVIRONMENTS / f"{interpreter.name}-{requirements.stem}-{fingerprint}"


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _switch(python: Path) -> Path:
    """A script beside that Python, which starts it with its JIT on. What starts workers need not know about JITs."""
    return python.with_name("python-jit")


def _write_switch(python: Path) -> None:
    script = _switch(python)
    script.write_text(f'#!/bin/sh\nPYTHON_JIT=1 exec {shlex.quote(str(python))} "$@"\n')
    script.chmod(0o755)


def install_python(name: str) -> None:
    """Let uv install the interpreter of that name. Raises NoEnvironment, for example without a network."""
    _uv("python", "install", name)


def _uv(*arguments: str) -> None:
    try:
        ask([_uv_path(), *arguments], seconds=INSTALL_SECONDS, environment=os.environ)
    except NoAnswer as none:
        tail = none.output.strip()[-TAIL_CHARACTERS:]
        raise NoEnvironment(f"uv {arguments[0]} {none.reason}{tail and f': {tail}'}") from none


def _uv_path() -> str:
    """Path of the uv program in its package; plain `uv` if the package has none, which starts only if it is on PATH."""
    try:
        return find_uv_bin()
    except FileNotFoundError:
        return "uv"
