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

from zoomgrad.engines.asking import NoAnswer, ask
from zoomgrad.engines.kernel import toolchains
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
UV = (sys.executable, "-P", "-m", "uv")
"""Runs uv, which belongs to our dependencies. -P: a module of the current folder may have its name."""

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
        uv("venv", "--quiet", "--no-project", "--python", str(interpreter.path), str(folder))
        if interpreter.jit:
            with_jit.write_text(f'#!/bin/sh\nPYTHON_JIT=1 exec {shlex.quote(str(python))} "$@"\n')
            with_jit.chmod(0o755)
        _install(lock, "--python", str(python))

    _once(folder, make)
    return with_jit if interpreter.jit else python


def _once(folder: Path, make: Callable[[], None]) -> None:
    """Have a folder made, once, even if several processes need it at the same time."""
    from filelock import FileLock  # late: every command looks for our Clang, and most make nothing

    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not (folder / READY).exists():
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
    uv("pip", "install", "--quiet", *where, "--requirement", str(_lock_file(lock)))


def uv(*arguments: str) -> None:
    """Run a command of uv. Raises NoEnvironment, for example without a network."""
    try:
        ask([*UV, *arguments], seconds=INSTALL_SECONDS, environment=os.environ)
    except NoAnswer as none:
        tail = none.output.strip()[-TAIL_CHARACTERS:]
        raise NoEnvironment(f"uv {arguments[0]} {none.reason}{tail and f': {tail}'}") from none


# --- a Clang of our own -----------------------------------------------------------------------------------------------

CLANG = "clang"
"""The lock of the package `ziglang`, for a machine that has no Clang. `engines.kernel.toolchains` has the command.

The package serves Linux with glibc; on macOS it has no linker, and Apple's Clang is one command away.
"""


def offers_clang() -> bool:
    """Whether the package supports this system."""
    return sys.platform == "linux" and platform.libc_ver()[0] == "glibc" and platform.machine() in ("x86_64", "aarch64")


def use_clang() -> None:
    """Use our Clang if it has been fetched, unless there is another one."""
    folder = _clang_folder()
    # Asking the machine's compilers takes longer, so that comes last.
    if not os.environ.get(toolchains.CLANG) and (folder / READY).exists() and not toolchains.has("clang"):
        os.environ[toolchains.CLANG] = str(folder / "ziglang" / "zig")  # for this process and its children


def fetch_clang() -> None:
    """Fetch our Clang and use it. Raises NoEnvironment."""
    folder = _clang_folder()
    _once(folder, lambda: _install(CLANG, "--python", sys.executable, "--target", str(folder)))
    os.environ[toolchains.CLANG] = str(folder / "ziglang" / "zig")


def _clang_folder() -> Path:
    return _folder(CLANG, CLANG, sys.platform, platform.machine())
