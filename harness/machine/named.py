"""Names on the command line -> interpreters: discovered names, full versions, and paths with a name of their own.

`mine=/path/to/python` is a build that its user wants to measure, such as one from a checkout of CPython.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from zoomgrad.engines.asking import NoAnswer, one_line
from zoomgrad.harness.machine.interpreters import CPYTHONS, Interpreter, choose, interpreter_of, is_supported, same_file
from zoomgrad.harness.machine.probe import probe
from zoomgrad.results.fields import LONGEST_NAME
from zoomgrad.results.files import Unreadable

_OWN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*([-.][A-Za-z0-9_]+)*", re.ASCII)
_RESERVED = ("cpython-", "pypy-")


def asked(names: Sequence[str], found: Iterable[Interpreter]) -> tuple[list[Interpreter], list[str]]:
    """Return all interpreters, those given by path included, and the chosen ones' names without aliases.

    Names that are not found are returned unchanged, for the plan to refuse or to skip. Raises Unreadable.
    """
    everything, chosen = list(found), []
    for name in names:
        own, equals, path = name.partition("=")
        if equals or "/" in name:
            added = _by_path(own if equals else "", path if equals else name)
            if added.name in {one.name for one in everything}:
                raise Unreadable(f"{added.name}: two interpreters would have this name\n  Give each a name of its own.")
            everything.append(added)
            chosen.append(added.name)
        else:
            chosen.append(next((one.name for one in everything if name in one.aliases), name))
    for one in everything:
        for other in everything:
            if (
                one.name in chosen
                and other.name in chosen
                and one.name < other.name
                and one.jit == other.jit
                and same_file(one.path, other.path)
            ):
                raise Unreadable(
                    f"{one.name} and {other.name} are the same program, {one_line(str(one.path), 120)}\n"
                    "  Leave one of them out: it would be measured twice."
                )
    return everything, list(dict.fromkeys(chosen))


def chosen_one(name: str, found: Iterable[Interpreter]) -> Interpreter:
    """Return the interpreter of one such name. Raises Unreadable and UnknownName."""
    everything, (chosen,) = asked([name], found)
    return choose(chosen, everything)


def _by_path(name: str, path: str) -> Interpreter:
    shown = one_line(path, 120)
    if not name:
        raise Unreadable(f"{shown}: a path needs a name\n  Write it as NAME=PATH, for example mine={shown}.")
    if not path:
        raise Unreadable(f"{one_line(name, 40)}=: a name needs a path\n  Write it as NAME=PATH.")
    if not _OWN_NAME.fullmatch(name) or len(name) > LONGEST_NAME or name.startswith(_RESERVED):
        raise Unreadable(
            f"{one_line(name, 40)}: not a name for an interpreter\n"
            "  Use letters, digits and single hyphens, such as mine or cpython3.13-jit, and neither `cpython-` nor "
            "`pypy-` at the start: discovery gives those."
        )
    file = Path(os.path.expanduser(path)).absolute()  # noqa: PTH111  (a Path raises if there is no such user)
    answer = probe(file)
    if isinstance(answer, NoAnswer):
        raise Unreadable(
            f"{name}: {shown} {answer}\n  Name the program of a Python, such as bin/python3 of its folder."
        )
    if answer.virtual:
        raise Unreadable(
            f"{name}: {shown} is the Python of a virtual environment\n"
            "  Name the Python that it was made from. zoomgrad makes environments of its own."
        )
    if not is_supported(answer):
        raise Unreadable(
            f"{name}: {shown} is {answer.implementation} {answer.version}, which zoomgrad does not support\n"
            f"  It needs CPython 3.{CPYTHONS[0]} to 3.{CPYTHONS[-1]}, or PyPy 3.9 or newer."
        )
    return replace(interpreter_of(name, file, answer), aliases=())
