"""Finds every CPython and PyPy of this machine, and makes a worker environment for each.

uv and tox see only what PATH resolves, and pyenv's shims hide the versions that are not activated: so the folders are
searched as well, every candidate is asked what it is, and from here on an interpreter is an absolute path.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from filelock import FileLock
from pydantic import AfterValidator, BaseModel, StringConstraints, TypeAdapter, ValidationError
from uv import find_uv_bin

from engines.api import UnknownName
from engines.asking import NoAnswer, Skipped, ask, on_path, one_line, side_by_side, unusable

ROOT = Path(__file__).parent.parent
ENVIRONMENTS = ROOT / ".zoomgrad" / "environments"
REQUIREMENTS = ROOT / "requirements"

CPYTHONS = tuple(range(9, 15))
"""Minor versions of CPython 3 that the project supports."""
PYPY = "pypy-3.11"
"""The PyPy that is named when there is none."""

PROBE_SECONDS = 10.0
UV_SECONDS = 30.0
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


Word = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,30}$")]
Version = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,4}(\.[0-9]{1,4}){2}([a-z][0-9]{1,4})?$")]
Line = Annotated[str, StringConstraints(max_length=10_000), AfterValidator(lambda text: one_line(text, 10_000))]


class Facts(BaseModel, strict=True):
    """What a program answers to `_PROBE`: it may be any program, and answer anything."""

    implementation: Word
    version: Version
    full_version: Line
    free_threaded: bool
    virtual: bool
    build: dict[Literal["compiler", "configure", "cflags", "debug"], Line]


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
    return survey()[0]


def survey() -> tuple[list[Interpreter], list[Skipped]]:
    """The same, and the programs that are named like an interpreter and are none, each with the reason."""
    candidates = list(dict.fromkeys(_candidates()))
    answers = _answers(candidates)
    facts: dict[tuple[str, str, bool], tuple[Path, Facts]] = {}
    skipped = []
    for candidate in candidates:
        answer = answers.get(candidate)
        if isinstance(answer, NoAnswer):
            skipped.append(Skipped(str(candidate), str(answer)))
        elif answer and not answer.virtual and _supported(answer):
            facts.setdefault((answer.implementation, answer.version, answer.free_threaded), (candidate, answer))
    ordered = sorted(facts.values(), key=lambda found: (found[1].implementation, _age(found[1].version)), reverse=True)
    taken: set[str] = set()
    interpreters = []
    for path, fact in ordered:
        name = _name(fact, taken)
        taken.add(name)
        interpreters.append(
            Interpreter(
                name=name,
                path=path,
                implementation=fact.implementation,
                version=fact.version,
                full_version=fact.full_version,
                free_threaded=fact.free_threaded,
                build={key: value for key, value in fact.build.items() if value},
            )
        )
    return sorted(interpreters, key=lambda i: (i.implementation, _age(i.version), i.name)), skipped


def _answers(candidates: Sequence[Path]) -> dict[Path, Facts | NoAnswer]:
    """What each program says of itself, all asked side by side; a program that has several names is asked once.

    An environment's Python is a link to its base's, and says that it is virtual: then the next name is asked, too.
    """
    names: dict[Path, list[Path]] = {}
    for candidate in candidates:
        # A shim is one program for all versions: what it runs is found in its own folder.
        real = Path(os.path.realpath(candidate))
        if real.name != "pyenv" and "shims" not in candidate.parts:
            names.setdefault(real, []).append(candidate)
    answers: dict[Path, Facts | NoAnswer] = {}
    while names:
        asked = {real: paths[0] for real, paths in names.items()}
        answers.update(zip(asked.values(), side_by_side(_probe, asked.values()), strict=True))
        names = {real: paths[1:] for real, paths in names.items() if paths[1:] and _is_virtual(answers[paths[0]])}
    return answers


def _is_virtual(answer: Facts | NoAnswer) -> bool:
    return isinstance(answer, Facts) and answer.virtual


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
        _uv("python", "install", PYPY)
    except NoEnvironment:
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
            [_uv_path(), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            check=True,
            timeout=INSTALL_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        raise NoEnvironment(f"uv {arguments[0]} failed: {_tail(error.stderr)}") from error
    except subprocess.TimeoutExpired as error:
        raise NoEnvironment(f"uv {arguments[0]} took longer than {INSTALL_SECONDS} s") from error
    except OSError as error:
        raise NoEnvironment(f"uv can't be started: {error}") from error


def _uv_path() -> str:
    """uv as its package has it; its name where the package has none, which then can't be started."""
    try:
        return find_uv_bin()
    except FileNotFoundError:
        return "uv"


def _candidates() -> Iterator[Path]:
    """Programs that may be interpreters, best source first."""
    with contextlib.suppress(RuntimeError, OSError):  # there may be no home, and it may be closed to us
        pyenv = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser()
        if pyenv.is_absolute():
            yield from sorted(pyenv.glob("versions/*/bin/python"))
    yield from map(Path, on_path(r"python(3(\.\d{1,2}t?)?)?|pypy(3(\.\d{1,2})?)?"))
    base = getattr(sys, "_base_executable", None)
    if base:
        yield Path(base)
    yield from _uvs()


def _uvs() -> list[Path]:
    """What uv installed; nothing where uv can't tell."""
    # PATH was searched above; uv would start every program on it again, pyenv's shims among them, for a second.
    environment = {**os.environ, "PATH": ""}
    command = [_uv_path(), "--no-cache", "python", "list", "--only-installed", "--output-format", "json"]
    try:
        answer = ask(command, seconds=UV_SECONDS, errors=False, environment=environment)
        paths = [Path(found.path or "") for found in _LISTING.validate_json(answer)]
        return [path for path in paths if path.is_absolute()]
    except (NoAnswer, ValidationError):
        return []


class _Listed(BaseModel):
    path: str | None = None


_LISTING = TypeAdapter(list[_Listed])


def _probe(path: Path) -> Facts | NoAnswer:
    reason = unusable(str(path))
    if reason:
        return NoAnswer(reason)
    try:
        return Facts.model_validate_json(ask([str(path), "-I", "-c", _PROBE], seconds=PROBE_SECONDS, errors=False))
    except NoAnswer as none:
        return none
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "its answer"
        return NoAnswer(f"does not answer as a Python does ({one_line(field, 80)}: {one_line(first['msg'])})")


def _supported(found: Facts) -> bool:
    major, minor = _numbers(found.version)[:2]
    if found.implementation == "cpython":
        return major == 3 and minor in CPYTHONS
    return found.implementation == "pypy" and (major, minor) >= (3, 9)


def _name(fact: Facts, taken: set[str]) -> str:
    suffix = "t" if fact.free_threaded else ""
    short = f"{fact.implementation}-{'.'.join(fact.version.split('.')[:2])}{suffix}"
    return f"{fact.implementation}-{fact.version}{suffix}" if short in taken else short


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
