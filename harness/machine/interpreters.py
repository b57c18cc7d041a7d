"""Finds every CPython and PyPy of this machine.

uv and tox see only what PATH resolves, and pyenv's shims hide the versions that are not activated: so the folders are
searched as well, every candidate is asked what it is, and from here on an interpreter is an absolute path.

`findpython` has a list of such folders, too. It leaves out what can't be started, and `doctor` could not say why. It
searches PATH's relative folders, and pyenv's where PYENV_ROOT is relative: whatever lies in the current folder would be
started. Its order is the file system's, so the same interpreter would have one path here and another one there.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engines.api import UnknownName
from engines.asking import NoAnswer, Skipped, on_path
from harness.machine.probe import Facts
from harness.machine.remembered import Answer, Answers

ROOT = Path(__file__).parents[2]

CPYTHONS = tuple(range(9, 15))
"""Minor versions of CPython 3 that the project supports."""
PYPY = "pypy-3.11"
"""The PyPy that is named when there is none."""


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


def discover(*, remembered: bool = False) -> list[Interpreter]:
    """Every supported interpreter, CPython by version and then PyPy.

    Of several of one minor version the highest patch has the short name; others carry the full version.
    remembered: whether what a program answered before will do, as long as its file is the same.
    """
    return survey(remembered=remembered)[0]


def survey(*, remembered: bool = False) -> tuple[list[Interpreter], list[Skipped]]:
    """The same, and the programs that are named like an interpreter and are none, each with the reason."""
    candidates = list(dict.fromkeys(_candidates()))
    answers = _answers(candidates, remembered=remembered)
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


def _answers(candidates: Sequence[Path], *, remembered: bool) -> dict[Path, Answer]:
    """What each program says of itself; a program that has several names is asked once.

    An environment's Python is a link to its base's, and says that it is virtual: then the next name is asked, too.
    """
    names: dict[Path, list[Path]] = {}
    for candidate in candidates:
        # A shim is one program for all versions: what it runs is found in its own folder.
        real = Path(os.path.realpath(candidate))
        if real.name != "pyenv" and "shims" not in candidate.parts:
            names.setdefault(real, []).append(candidate)
    ask = Answers(remembered=remembered)
    answers: dict[Path, Answer] = {}
    while names:
        answers.update(ask.of([paths[0] for paths in names.values()]))
        names = {real: paths[1:] for real, paths in names.items() if paths[1:] and _is_virtual(answers[paths[0]])}
    ask.keep()
    return answers


def _is_virtual(answer: Answer) -> bool:
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


def _candidates() -> Iterator[Path]:
    """Programs that may be interpreters, best source first."""
    yield from _installed("PYENV_ROOT", "~/.pyenv", "versions/*/bin/python")
    yield from map(Path, on_path(r"python(3(\.\d{1,2}t?)?)?|pypy(3(\.\d{1,2})?)?"))
    base = getattr(sys, "_base_executable", None)
    if base:
        yield Path(base)
    data = os.environ.get("XDG_DATA_HOME", "")
    folder = f"{data if Path(data).is_absolute() else '~/.local/share'}/uv/python"  # as `uv python dir` says
    yield from _installed("UV_PYTHON_INSTALL_DIR", folder, "*/bin/python")


def _installed(variable: str, default: str, pattern: str) -> list[Path]:
    """What a version manager installed below the folder that the variable names."""
    with contextlib.suppress(RuntimeError, OSError):  # there may be no home, and it may be closed to us
        folder = Path(os.environ.get(variable) or default).expanduser()
        if folder.is_absolute():
            # Links last: uv has one for each minor version, which leads elsewhere after an upgrade.
            return sorted(folder.glob(pattern), key=lambda path: (path.parents[1].is_symlink(), path))
    return []


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
