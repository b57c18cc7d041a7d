"""Find every CPython and PyPy on this machine, and name them.

uv and tox see only what PATH resolves, and pyenv's shims hide versions that are not activated. So this module also
searches the folders of version managers and asks every candidate what it is. All later code uses absolute paths.

`findpython` searches such folders too, but also relative folders of PATH, and pyenv's if PYENV_ROOT is relative, so it
would start programs from the current folder. It follows the file system's order, which differs between machines.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from zoomgrad.engines.api import UnknownName
from zoomgrad.engines.asking import NoAnswer, ask, on_path, one_line, unusable
from zoomgrad.engines.discovery import MOST_CHARACTERS
from zoomgrad.results.files import Unreadable

CPYTHONS = tuple(range(9, 15))
"""Minor versions of CPython 3 that the project supports."""
PYPY = "pypy-3.11"
"""The PyPy to install if there is none."""
FREE_THREADED = "cpython-3.14t"
"""The first free-threaded build that CPython's developers support."""
DISCOVERED = ("cpython-", "pypy-")
"""How the names of discovered interpreters begin."""
JIT = "-jit"
"""Ends the name of a CPython whose just-in-time compiler is on."""


@dataclass(frozen=True)
class Interpreter:
    """A Python that can host engines."""

    name: str
    path: Path
    implementation: str
    version: str
    full_version: str
    free_threaded: bool = False
    contains_jit: bool = False
    """Whether CPython's own just-in-time compiler is in the build, on or off."""
    jit: bool = False
    """Whether to switch it on."""

    @property
    def has_jit(self) -> bool:
        """Whether it is PyPy, whose JIT is always on and reports about itself."""
        return self.implementation == "pypy"

    @property
    def warms_up(self) -> bool:
        """Whether its first steps are slow, because a JIT has yet to compile them."""
        return self.has_jit or self.jit

    @property
    def canonical(self) -> bool:
        """Whether discovery named the interpreter. For a build with a path, the user chooses the name."""
        return self.name.startswith(DISCOVERED)

    @property
    def minor(self) -> tuple[int, ...]:
        return _numbers(self.version)[:2]

    @property
    def is_supported(self) -> bool:
        """Whether the project runs on that implementation and version."""
        major, minor = self.minor
        if self.implementation == "cpython":
            return major == 3 and minor in CPYTHONS
        return self.implementation == "pypy" and (major, minor) >= (3, 9)

    def build(self) -> dict[str, str]:
        """How it was compiled: compiler and flags, as it says itself."""
        with contextlib.suppress(NoAnswer, ValueError):
            answer = json.loads(ask([str(self.path), "-IS", "-c", _BUILD], seconds=PROBE_SECONDS, errors=False))
            return {name: one_line(str(answer[name]), 10_000) for name in answer if answer[name]}
        return {}


def discover() -> list[Interpreter]:
    """The newest patch of each supported minor version and build: `cpython-3.13`, `cpython-3.14t`, then `pypy-3.11`.

    A build with a JIT is two interpreters. Other builds can be named with a path, see `asked`.
    """
    newest: dict[str, Interpreter] = {}
    for one in _answers(_candidates()):
        # Of equal versions, the first candidate is from the best source.
        if one.name not in newest or _age(one.version) > _age(newest[one.name].version):
            newest[one.name] = one
    with_jit = [replace(one, name=f"{one.name}{JIT}", jit=True) for one in newest.values() if one.contains_jit]
    installed = [*newest.values(), *with_jit]
    return sorted(installed, key=lambda one: (one.implementation, _age(one.version), one.name))


def _answers(candidates: Iterable[Path]) -> list[Interpreter]:
    """The supported interpreters among programs, each of which is asked once even if it has several names."""
    programs: dict[str, Path] = {}
    for candidate in candidates:
        # A shim is one program for all versions. The interpreters behind it are found in their own folders.
        real = os.path.realpath(candidate)
        if Path(real).name != "pyenv" and "shims" not in candidate.parts and not _is_virtual(candidate):
            programs.setdefault(real, candidate)
    with ThreadPoolExecutor(len(programs) or 1) as pool:
        answers = pool.map(probe, programs.values())
        return [one for one in answers if isinstance(one, Interpreter) and one.is_supported]


def _is_virtual(path: Path) -> bool:
    """Whether the path is the Python of a virtual environment, which links to its base interpreter."""
    return any((folder / "pyvenv.cfg").is_file() for folder in path.parents[:2])


def missing(installed: Iterable[Interpreter]) -> list[str]:
    """Names of supported interpreters that are not installed."""
    names = {interpreter.name for interpreter in installed}
    lacking = [f"cpython-3.{minor}" for minor in CPYTHONS if f"cpython-3.{minor}" not in names]
    return lacking + [name for name in (FREE_THREADED, PYPY) if name not in names]


def remedy(name: str) -> str:
    """How to get an interpreter that is missing."""
    if name.startswith(DISCOVERED):
        return f"Install it: `uv python install {name}`."
    return f"Name its path again: `-i {name}=PATH`."


def choose(name: str, installed: Iterable[Interpreter]) -> Interpreter:
    """Return the interpreter of that name. Raises UnknownName with the nearest names."""
    by_name = {interpreter.name: interpreter for interpreter in installed}
    if name not in by_name:
        raise UnknownName("interpreter", name, by_name)
    return by_name[name]


def reference(installed: Iterable[Interpreter]) -> Interpreter:
    """The reference CPython: the newest release with a lock and without a JIT. Raises UnknownName if there is none."""
    cpythons = [i for i in installed if i.implementation == "cpython" and i.canonical]
    candidates = [i for i in cpythons if not (i.free_threaded or i.jit)]
    if not candidates:
        raise UnknownName("interpreter", "cpython", [f"cpython-3.{minor} (uv python install)" for minor in CPYTHONS])
    return max(candidates, key=lambda one: (_is_release(one.version), _age(one.version)))


def _candidates() -> Iterator[Path]:
    """Yield programs that may be interpreters, best source first."""
    yield from _installed("PYENV_ROOT", "~/.pyenv", "versions/*/bin/python")
    yield from map(Path, on_path(r"python(3(\.\d{1,2}t?)?)?|pypy(3(\.\d{1,2})?)?"))
    base = getattr(sys, "_base_executable", None)
    if base:
        yield Path(base)
    data = os.environ.get("XDG_DATA_HOME", "")
    folder = f"{data if Path(data).is_absolute() else '~/.local/share'}/uv/python"  # as `uv python dir` prints
    yield from _installed("UV_PYTHON_INSTALL_DIR", folder, "*/bin/python")


def _installed(variable: str, default: str, pattern: str) -> list[Path]:
    """Programs that a version manager installed below the folder in that environment variable."""
    with contextlib.suppress(RuntimeError, OSError):  # the home folder may be missing or unreadable
        folder = Path(os.environ.get(variable) or default).expanduser()
        if folder.is_absolute():
            # Links last: uv makes one for each minor version, and an upgrade changes its target.
            return sorted(folder.glob(pattern), key=lambda path: (path.parents[1].is_symlink(), path))
    return []


def _age(version: str) -> tuple[tuple[int, ...], bool, str]:
    """Sort key of versions: numbers, whether it is a release, and the text. `3.14.0a7`, `3.14.0c1`, `3.14.0`."""
    return _numbers(version)[:3], _is_release(version), version


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _is_release(version: str) -> bool:
    return version.replace(".", "").isdecimal()


# --- what a program says ----------------------------------------------------------------------------------------------

PROBE_SECONDS = 10.0

_PROBE = r"""
import sys
version = sys.version_info
release = "" if version[3] == "final" else version[3][:1] + str(version[4])
print(sys.implementation.name, ".".join(map(str, version[:3])) + release, " ".join(sys.version.split()),
    "t" in getattr(sys, "abiflags", ""),
    # A build may contain the JIT and leave it off until PYTHON_JIT=1, as uv's builds do. Only 3.14 and newer tell.
    hasattr(sys, "_jit") and sys._jit.is_available(), sep="\n")
"""
"""Imports nothing, because every command that lists interpreters waits for all answers."""

_WORD, _VERSION, _FLAG = r"([a-z][a-z0-9_]{0,30})", r"(\d{1,4}(?:\.\d{1,4}){2}(?:[a-z]\d{1,4})?)", "(True|False)"
_ANSWER = re.compile(rf"{_WORD}\n{_VERSION}\n([ -~]{{1,1000}})\n{_FLAG}\n{_FLAG}\n", re.ASCII)

_BUILD = """
import json, platform, shlex, sysconfig
config = sysconfig.get_config_var
print(json.dumps({
    "compiler": platform.python_compiler(),
    # Without flags that hold paths: they do not affect how it runs, and are private.
    "configure": " ".join(flag for flag in shlex.split(config("CONFIG_ARGS") or "") if "/" not in flag),
    "cflags": config("PY_CFLAGS") or config("CFLAGS") or "",
    "debug": str(bool(config("Py_DEBUG"))),
}))
"""


def probe(path: Path) -> Interpreter | NoAnswer:
    """The interpreter, or the reason why the program is none. Any program may answer anything."""
    if reason := unusable(str(path)):
        return NoAnswer(reason)
    try:
        answer = ask([str(path), "-IS", "-c", _PROBE], seconds=PROBE_SECONDS, errors=False)
    except NoAnswer as none:
        return none
    if not (facts := _ANSWER.fullmatch(answer)):
        return NoAnswer(f"does not answer like a Python ({one_line(answer, 80)})")
    implementation, version, full_version, *flags = facts.groups()
    free_threaded, contains_jit = (flag == "True" for flag in flags)
    name = f"{implementation}-{'.'.join(version.split('.')[:2])}{'t' * free_threaded}"
    contains_jit = contains_jit and implementation == "cpython"
    return Interpreter(name, path, implementation, version, full_version, free_threaded, contains_jit)


# --- names on the command line ----------------------------------------------------------------------------------------

_OWN_NAME = re.compile(r"(?!cpython-|pypy-)[A-Za-z][A-Za-z0-9_]*([-.][A-Za-z0-9_]+)*", re.ASCII)


def asked(names: Sequence[str], installed: Iterable[Interpreter]) -> tuple[list[Interpreter], list[str]]:
    """Return all interpreters, those given by path included, and the chosen ones' names.

    `mine=/path/to/python` is a build that its user wants to measure, such as one from a checkout of CPython. Names that
    are not installed are returned unchanged, for the plan to refuse or to skip. Raises Unreadable.
    """
    everything, chosen = list(installed), []
    for name in names:
        own, equals, path = name.partition("=")
        if equals or "/" in name:
            everything.append(_by_path(own, path))
            if own in chosen:
                raise Unreadable(f"{own}: two interpreters would have this name\n  Give each a name of its own.")
        chosen.append(own)
    return everything, list(dict.fromkeys(chosen))


def _by_path(name: str, path: str) -> Interpreter:
    shown = one_line(path, 120)
    if not path or not _OWN_NAME.fullmatch(name) or len(name) > MOST_CHARACTERS:
        not_so = f"begin with cpython- or pypy-, or be longer than {MOST_CHARACTERS} characters"
        remedy = f"Write NAME=PATH, such as mine=/path/to/python; the name can't {not_so}."
        own = one_line(name, 80) or "(no name)"
        raise Unreadable(f"{own}={shown}: not NAME=PATH of an interpreter\n  {remedy}")
    file = Path(os.path.expanduser(path)).absolute()  # noqa: PTH111  (a Path raises if there is no such user)
    one = NoAnswer("is the Python of a virtual environment") if _is_virtual(file) else probe(file)
    if isinstance(one, Interpreter) and not one.is_supported:
        one = NoAnswer(f"is {one.implementation} {one.version}, which zoomgrad does not support")
    if isinstance(one, NoAnswer):
        versions = f"CPython 3.{CPYTHONS[0]} to 3.{CPYTHONS[-1]}, or PyPy 3.9 or newer, not in a virtual environment"
        raise Unreadable(f"{name}: {shown} {one}\n  Name the program of a {versions}.")
    return replace(one, name=name)
