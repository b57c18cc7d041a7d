"""Finds every CPython and PyPy of this machine, and makes a worker environment for each.

uv and tox see only what PATH resolves, and pyenv's shims hide the versions that are not activated: so the folders are
searched as well, every candidate is asked what it is, and from here on an interpreter is an absolute path.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock
from uv import find_uv_bin

from engines.api import UnknownName

ROOT = Path(__file__).parent.parent
ENVIRONMENTS = ROOT / ".zoomgrad" / "environments"
REQUIREMENTS = ROOT / "requirements"

CPYTHONS = tuple(range(9, 15))
"""Minor versions of CPython 3 that the project supports."""
PYPY = "pypy-3.11"
"""The PyPy that is named when there is none."""

PROBE_SECONDS = 20
INSTALL_SECONDS = 600

_PROBE = """
import json, os, platform, shlex, sys, sysconfig
config = sysconfig.get_config_var
print(json.dumps({
    "implementation": sys.implementation.name,
    "version": ".".join(str(part) for part in sys.version_info[:3]) + {"final": ""}.get(sys.version_info[3],
        sys.version_info[3][:1] + str(sys.version_info[4])),
    "full_version": " ".join(sys.version.split()),
    "free_threaded": bool(config("Py_GIL_DISABLED")),
    "virtual": sys.prefix != sys.base_prefix,
    "build": {
        "compiler": " ".join(platform.python_compiler().split()),
        # Where it was installed says nothing of how it runs, and is nobody else's affair.
        "configure": " ".join(flag for flag in shlex.split(config("CONFIG_ARGS") or "") if "/" not in flag),
        "cflags": " ".join((config("PY_CFLAGS") or config("CFLAGS") or "").split()),
        "debug": str(bool(config("Py_DEBUG"))),
    },
}))
"""


class NoEnvironment(Exception):
    """uv could not make a worker's environment: the end of what it said."""


@dataclass(frozen=True)
class Interpreter:
    """A Python that can host engines."""

    name: str
    path: Path
    implementation: str
    version: str
    full_version: str
    free_threaded: bool
    build: dict[str, str]

    @property
    def has_jit(self) -> bool:
        return self.implementation == "pypy"

    @property
    def canonical(self) -> bool:
        """Whether it stands for its minor version (`cpython-3.11`), rather than for one patch or build of it."""
        return re.fullmatch(r"(cpython|pypy)-\d+\.\d+", self.name) is not None

    @property
    def minor(self) -> tuple[int, ...]:
        return _numbers(self.version)[:2]


@dataclass(frozen=True)
class Missing:
    """An interpreter that the project supports and this machine lacks."""

    name: str
    reason: str
    remedy: str


def discover() -> list[Interpreter]:
    """Every supported interpreter, CPython by version and then PyPy.

    Of several of one minor version the highest patch has the short name; others carry the full version.
    """
    facts: dict[tuple[str, str, bool], dict[str, object]] = {}
    seen: set[Path] = set()
    for candidate in _candidates():
        real = Path(os.path.realpath(candidate))
        # A shim is one program for all versions: what it runs is found in its own folder.
        if real in seen or real.name == "pyenv" or "shims" in candidate.parts:
            continue
        found = _probe(candidate)
        if found and found["virtual"]:
            continue  # not seen: its program is its base's, which may come later
        seen.add(real)
        if found and _supported(str(found["implementation"]), str(found["version"])):
            key = (str(found["implementation"]), str(found["version"]), bool(found["free_threaded"]))
            facts.setdefault(key, {**found, "path": candidate})
    ordered = sorted(facts.values(), key=lambda f: (f["implementation"], _age(str(f["version"]))), reverse=True)
    taken: set[str] = set()
    interpreters = []
    for fact in ordered:
        name = _name(fact, taken)
        taken.add(name)
        interpreters.append(
            Interpreter(
                name=name,
                path=Path(str(fact["path"])),
                implementation=str(fact["implementation"]),
                version=str(fact["version"]),
                full_version=str(fact["full_version"]),
                free_threaded=bool(fact["free_threaded"]),
                build={key: value for key, value in dict(fact["build"]).items() if value},  # type: ignore[call-overload]
            )
        )
    return sorted(interpreters, key=lambda i: (i.implementation, _age(i.version), i.name))


def missing(found: Iterable[Interpreter]) -> list[Missing]:
    """What the project supports and `found` lacks, each with the command that would install it."""
    found = list(found)
    names = {interpreter.name for interpreter in found}
    lacking = [f"cpython-3.{minor}" for minor in CPYTHONS if f"cpython-3.{minor}" not in names]
    if not any(interpreter.has_jit for interpreter in found):
        lacking.append(PYPY)
    return [Missing(name, f"{name} is not on this machine", f"uv python install {name}") for name in lacking]


def choose(name: str, found: Iterable[Interpreter]) -> Interpreter:
    """The interpreter of that name. Raises UnknownName, with the nearest names."""
    by_name = {interpreter.name: interpreter for interpreter in found}
    if name not in by_name:
        raise UnknownName("interpreter", name, by_name)
    return by_name[name]


def reference(found: Iterable[Interpreter]) -> Interpreter:
    """The reference CPython: the newest release with a global interpreter lock. Raises UnknownName where none is."""
    candidates = [i for i in found if i.implementation == "cpython" and i.canonical]
    if not candidates:
        raise UnknownName("interpreter", "cpython", [f"cpython-3.{minor} (uv python install)" for minor in CPYTHONS])
    return max(candidates, key=lambda interpreter: (_is_release(interpreter.version), _age(interpreter.version)))


def fetch_pypy() -> bool:
    """Have uv install a PyPy; False where it can't, as without a network."""
    try:
        subprocess.run(  # noqa: S603  (uv's own path, constant arguments)
            [find_uv_bin(), "python", "install", PYPY], capture_output=True, check=True, timeout=INSTALL_SECONDS
        )
    except (subprocess.SubprocessError, OSError):
        return False
    return True


def environment(interpreter: Interpreter, *, lock: str = "worker") -> Path:
    """The Python of a virtual environment with what the lock file lists; made once, then found again.

    Raises NoEnvironment with the end of what uv said.
    """
    requirements = REQUIREMENTS / f"{lock}.lock"
    fingerprint = hashlib.sha256(
        "\n".join((str(interpreter.path), interpreter.full_version, requirements.read_text())).encode()
    ).hexdigest()[:12]
    folder = ENVIRONMENTS / f"{interpreter.name}-{lock}-{fingerprint}"
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ready = folder / ".ready"
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not ready.exists():
            shutil.rmtree(folder, ignore_errors=True)
            _uv("venv", "--quiet", "--no-project", "--python", str(interpreter.path), str(folder))
            _uv("pip", "install", "--quiet", "--python", str(python), "--requirement", str(requirements))
            ready.touch()
    return python


def _uv(*arguments: str) -> None:
    try:
        subprocess.run(  # noqa: S603  (a list of arguments, none of them read by a shell)
            [find_uv_bin(), *arguments], capture_output=True, text=True, check=True, timeout=INSTALL_SECONDS
        )
    except subprocess.CalledProcessError as error:
        raise NoEnvironment(f"uv {arguments[0]} failed: {_tail(error.stderr)}") from error
    except subprocess.TimeoutExpired as error:
        raise NoEnvironment(f"uv {arguments[0]} took longer than {INSTALL_SECONDS} s") from error


def _candidates() -> Iterator[Path]:
    """Programs that may be interpreters, best source first."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    yield from sorted(pyenv.glob("versions/*/bin/python"))
    for folder in os.get_exec_path():
        names = re.compile(r"python(3(\.\d+t?)?)?|pypy(3(\.\d+)?)?")
        # A folder of PATH may be missing or closed to us.
        try:
            programs = sorted(path for path in Path(folder).iterdir() if names.fullmatch(path.name))
        except OSError:
            continue
        yield from programs
    base = getattr(sys, "_base_executable", None)
    if base:
        yield Path(base)
    listing = subprocess.run(  # noqa: S603  (uv's own path, constant arguments)
        [find_uv_bin(), "python", "list", "--only-installed", "--output-format", "json"],
        # PATH was searched above; uv would start every program on it again, pyenv's shims among them, for a second.
        env={**os.environ, "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if listing.returncode == 0:
        yield from (Path(entry["path"]) for entry in json.loads(listing.stdout))


def _probe(path: Path) -> dict[str, object] | None:
    try:
        answer = subprocess.run(  # noqa: S603  (a file that a search of known folders found)
            [str(path), "-I", "-c", _PROBE], capture_output=True, text=True, check=True, timeout=PROBE_SECONDS
        )
        found: dict[str, object] = json.loads(answer.stdout)
    except (subprocess.SubprocessError, OSError, ValueError):
        return None
    return found


def _supported(implementation: str, version: str) -> bool:
    major, minor = _numbers(version)[:2]
    if implementation == "cpython":
        return major == 3 and minor in CPYTHONS
    return implementation == "pypy" and (major, minor) >= (3, 9)


def _name(fact: dict[str, object], taken: set[str]) -> str:
    implementation, version = str(fact["implementation"]), str(fact["version"])
    suffix = "t" if fact["free_threaded"] else ""
    short = f"{implementation}-{'.'.join(version.split('.')[:2])}{suffix}"
    return f"{implementation}-{version}{suffix}" if short in taken else short


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _age(version: str) -> tuple[tuple[int, ...], bool, str]:
    """Sorts versions: `3.14.0a7`, `3.14.0c1`, `3.14.0`."""
    return _numbers(version)[:3], _is_release(version), version


def _is_release(version: str) -> bool:
    return version.replace(".", "").isdecimal()


def _tail(text: str, characters: int = 600) -> str:
    text = text.strip()
    return text if len(text) <= characters else f"…{text[-characters:]}"
