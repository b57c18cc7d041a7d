"""Find every CPython and PyPy on this machine, and name them.

uv and tox see only what PATH resolves, and pyenv's shims hide versions that are not activated. So this module also
searches the folders of version managers and asks every candidate what it is. All later code uses absolute paths.

`findpython` searches such folders too, but has three drawbacks. It leaves out programs that can't be started, so
`doctor` could not say why. It searches relative folders of PATH, and pyenv's if PYENV_ROOT is relative, so it would
start programs from the current folder. It follows the file system's order, so paths would differ between machines.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path

from zoomgrad.engines.api import UnknownName
from zoomgrad.engines.asking import NoAnswer, Skipped, on_path, side_by_side
from zoomgrad.harness.machine.probe import Facts, probe

CPYTHONS = tuple(range(9, 15))
"""Minor versions of CPython 3 that the project supports."""
PYPY = "pypy-3.11"
"""The PyPy to install if there is none."""
FREE_THREADED = "cpython-3.14t"
"""The first free-threaded build that CPython's developers support."""
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
    free_threaded: bool
    build: dict[str, str]
    aliases: tuple[str, ...] = ()
    """Other names that the command line accepts: the full version."""
    jit: bool = False
    """Whether to switch on CPython's own just-in-time compiler, which this build contains."""

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
        """Whether it has the name of its minor version (`cpython-3.11`), not of a single patch or build.

        A free-threaded build (`cpython-3.14t`) and a JIT switched on (`cpython-3.14-jit`) have names of their own.
        """
        return re.fullmatch(rf"(cpython|pypy)-\d+\.\d+t?({JIT})?", self.name) is not None

    @property
    def minor(self) -> tuple[int, ...]:
        return _numbers(self.version)[:2]


@dataclass(frozen=True)
class Missing:
    """A supported interpreter that this machine lacks."""

    name: str
    reason: str
    remedy: str


def discover() -> list[Interpreter]:
    """All supported interpreters: CPython by version, then PyPy.

    The highest patch of a minor version has the short name; others carry the full version. Further builds of one
    version are numbered, in the order of the sources: `cpython-3.13.0-2`.
    """
    return survey()[0]


def survey() -> tuple[list[Interpreter], list[Skipped]]:
    """As `discover`, and the programs that are named like an interpreter but are unusable, each with the reason."""
    candidates = list(dict.fromkeys(_candidates()))
    answers = _answers(candidates)
    facts: list[tuple[Path, Facts]] = []
    skipped = []
    for candidate in candidates:
        answer = answers.get(candidate)
        if isinstance(answer, NoAnswer):
            skipped.append(Skipped(str(candidate), str(answer)))
        elif answer and not answer.virtual and is_supported(answer):
            # Two names of one program, by links of either kind, are one build.
            facts += [] if any(same_file(candidate, path) for path, _ in facts) else [(candidate, answer)]
    ordered = sorted(facts, key=lambda found: (found[1].implementation, _age(found[1].version)), reverse=True)
    taken: set[str] = set()
    interpreters = []
    for path, fact in ordered:
        name, full = _name(fact, taken), _full_name(fact)
        aliases = () if full in taken or full == name else (full,)
        taken.update((name, full))
        interpreter = replace(interpreter_of(name, path, fact), aliases=aliases)
        interpreters.append(interpreter)
        if fact.implementation == "cpython" and fact.jit:
            interpreters.append(replace(interpreter, name=f"{name}{JIT}", aliases=(), jit=True))
    return sorted(interpreters, key=lambda i: (i.implementation, _age(i.version), i.name)), skipped


def interpreter_of(name: str, path: Path, fact: Facts) -> Interpreter:
    """An interpreter with its facts."""
    return Interpreter(
        name=name,
        path=path,
        implementation=fact.implementation,
        version=fact.version,
        full_version=fact.full_version,
        free_threaded=fact.free_threaded,
        build={key: value for key, value in fact.build.items() if value},
    )


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one program: by links of either kind."""
    try:
        return one == other or one.samefile(other)
    except OSError:
        return False


def _answers(candidates: Sequence[Path]) -> dict[Path, Facts | NoAnswer]:
    """Ask each program what it is, once even if it has several names.

    The Python of a virtual environment is a link to its base interpreter. A program that answers under such a name that
    it is virtual is asked again under its next name.
    """
    names: dict[Path, list[Path]] = {}
    for candidate in candidates:
        # A shim is one program for all versions. The interpreters behind it are found in their own folders.
        real = Path(os.path.realpath(candidate))
        if real.name != "pyenv" and "shims" not in candidate.parts:
            names.setdefault(real, []).append(candidate)
    answers: dict[Path, Facts | NoAnswer] = {}
    while names:
        programs = [paths[0] for paths in names.values()]
        answers.update(zip(programs, side_by_side(probe, programs), strict=True))
        names = {real: paths[1:] for real, paths in names.items() if paths[1:] and _is_virtual(answers[paths[0]])}
    return answers


def _is_virtual(answer: Facts | NoAnswer) -> bool:
    return isinstance(answer, Facts) and answer.virtual


def missing(found: Iterable[Interpreter]) -> list[Missing]:
    """Supported interpreters that `found` lacks, each with the command that installs it."""
    found = list(found)
    names = {interpreter.name for interpreter in found}
    lacking = [f"cpython-3.{minor}" for minor in CPYTHONS if f"cpython-3.{minor}" not in names]
    lacking += [name for name in (FREE_THREADED, PYPY) if name not in names]
    return [Missing(name, f"{name} is not on this machine", f"uv python install {name}") for name in lacking]


def choose(name: str, found: Iterable[Interpreter]) -> Interpreter:
    """Return the interpreter of that name. Raises UnknownName with the nearest names."""
    by_name = {interpreter.name: interpreter for interpreter in found}
    if name not in by_name:
        raise UnknownName("interpreter", name, by_name)
    return by_name[name]


def reference(found: Iterable[Interpreter]) -> Interpreter:
    """The reference CPython: the newest release with a lock and without a JIT. Raises UnknownName if there is none."""
    candidates = [i for i in found if i.implementation == "cpython" and i.canonical and not (i.free_threaded or i.jit)]
    if not candidates:
        raise UnknownName("interpreter", "cpython", [f"cpython-3.{minor} (uv python install)" for minor in CPYTHONS])
    return max(candidates, key=lambda interpreter: (_is_release(interpreter.version), _age(interpreter.version)))


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


def is_supported(found: Facts) -> bool:
    """Whether the project runs on that implementation and version."""
    major, minor = _numbers(found.version)[:2]
    if found.implementation == "cpython":
        return major == 3 and minor in CPYTHONS
    return found.implementation == "pypy" and (major, minor) >= (3, 9)


def _name(fact: Facts, taken: set[str]) -> str:
    """The first name that is free: of the minor version, of the full version, then numbered."""
    full = _full_name(fact)
    short = full.replace(fact.version, ".".join(fact.version.split(".")[:2]))
    numbered = (f"{full}-{number}" for number in count(2))
    return next(name for name in chain((short, full), numbered) if name not in taken)


def _full_name(fact: Facts) -> str:
    return f"{fact.implementation}-{fact.version}{'t' if fact.free_threaded else ''}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _age(version: str) -> tuple[tuple[int, ...], bool, str]:
    """Sort key of versions: `3.14.0a7`, `3.14.0c1`, `3.14.0`."""
    return _numbers(version)[:3], _is_release(version), version


def _is_release(version: str) -> bool:
    return version.replace(".", "").isdecimal()
