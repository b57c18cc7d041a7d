"""Interpreter -> a virtual environment with the packages of a lock file, which uv makes once and later runs reuse."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock
from uv import find_uv_bin

from harness.machine.interpreters import PYPY, Interpreter
from results.places import STATE

ENVIRONMENTS = STATE / "environments"
REQUIREMENTS = Path(__file__).parent / "requirements"
"""Lock files, which an installed copy has too."""

INSTALL_SECONDS = 600
LARGE_INSTALL_SECONDS = 3600
"""For gigabytes, of which the user knows."""


class NoEnvironment(Exception):
    """uv could not make a worker's environment. The text has the end of uv's output."""


def environment(interpreter: Interpreter, *, lock: str = "worker", resolved: Path | None = None) -> Path:
    """Path of the Python in a virtual environment with the lock file's packages. Makes the environment if needed.

    resolved: the same packages as a `pylock.toml` for this interpreter, if they are known already.
    Raises NoEnvironment with the end of uv's output.
    """
    requirements = REQUIREMENTS / f"{lock}.lock"
    folder = _folder(interpreter, requirements)
    ready = folder / ".ready"
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not ready.exists():
            shutil.rmtree(folder, ignore_errors=True)
            _uv("venv", "--quiet", "--no-project", "--python", str(interpreter.path), str(folder))
            python = str(_python(folder))
            install = ("pip", "install", "--quiet", "--python", python, "--requirement")
            if resolved:
                _uv(*install, str(resolved), seconds=LARGE_INSTALL_SECONDS)
            else:
                _uv(*install, str(requirements))
            ready.touch()
    return _python(folder)


def is_made(interpreter: Interpreter, *, lock: str) -> bool:
    """Whether `environment` would return at once."""
    return (_folder(interpreter, REQUIREMENTS / f"{lock}.lock") / ".ready").exists()


def _folder(interpreter: Interpreter, requirements: Path) -> Path:
    fingerprint = hashlib.sha256(
        "\n".join((str(interpreter.path), interpreter.full_version, requirements.read_text())).encode()
    ).hexdigest()[:12]
    return ENVIRONMENTS / f"{interpreter.name}-{requirements.stem}-{fingerprint}"


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def resolve(interpreter: Interpreter, lock: str, output: Path) -> None:
    """Write a `pylock.toml` with the files, their sizes and hashes that the interpreter needs. Raises NoEnvironment."""
    options = ("--quiet", "--no-header", "--format=pylock.toml", f"--python={interpreter.path}")
    _uv("pip", "compile", *options, str(REQUIREMENTS / f"{lock}.lock"), f"--output-file={output}")


def fetch_pypy() -> bool:
    """Let uv install a PyPy. Return False if it can't, for example without a network."""
    try:
        _uv("python", "install", PYPY)
    except NoEnvironment:
        return False
    return True


def _uv(*arguments: str, seconds: float = INSTALL_SECONDS) -> None:
    try:
        subprocess.run(  # noqa: S603  (a list of arguments, none of them read by a shell)
            [_uv_path(), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            check=True,
            timeout=seconds,
        )
    except subprocess.CalledProcessError as error:
        raise NoEnvironment(f"uv {arguments[0]} failed: {_tail(error.stderr)}") from error
    except subprocess.TimeoutExpired as error:
        raise NoEnvironment(f"uv {arguments[0]} took longer than {seconds:g} s") from error
    except OSError as error:
        raise NoEnvironment(f"uv can't be started: {error}") from error


def _uv_path() -> str:
    """Path of the uv program in its package; plain `uv` if the package has none, which starts only if it is on PATH."""
    try:
        return find_uv_bin()
    except FileNotFoundError:
        return "uv"


def _tail(text: str, characters: int = 600) -> str:
    text = text.strip()
    return text if len(text) <= characters else f"…{text[-characters:]}"
