"""Names on the command line -> interpreters: discovered names, and paths with a name of their own.

`mine=/path/to/python` is a build that its user wants to measure, such as one from a checkout of CPython.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from zoomgrad.engines.asking import NoAnswer, one_line
from zoomgrad.harness.machine.interpreters import (
    CPYTHONS,
    DISCOVERED,
    Interpreter,
    choose,
    interpreter_of,
    is_supported,
)
from zoomgrad.harness.machine.probe import probe
from zoomgrad.results.fields import LONGEST_NAME
from zoomgrad.results.files import Unreadable

_OWN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*([-.][A-Za-z0-9_]+)*", re.ASCII)


def asked(names: Sequence[str], found: Iterable[Interpreter]) -> tuple[list[Interpreter], list[str]]:
    """Return all interpreters, those given by path included, and the chosen ones' names.

    Names that are not found are returned unchanged, for the plan to refuse or to skip. Raises Unreadable.
    """
    everything, chosen = list(found), []
    for name in names:
        own, equals, path = name.partition("=")
        if equals or "/" in name:
            everything.append(_by_path(own if equals else "", path if equals else name))
            if own in chosen:
                raise Unreadable(f"{own}: two interpreters would have this name\n  Give each a name of its own.")
        chosen.append(own)
    return everything, list(dict.fromkeys(chosen))


def chosen_one(name: str, found: Iterable[Interpreter]) -> Interpreter:
    """Return the interpreter of one such name. Raises Unreadable and UnknownName."""
    everything, (chosen,) = asked([name], found)
    return choose(chosen, everything)


def _by_path(name: str, path: str) -> Interpreter:
    shown = one_line(path, 120)
    if not name or not path:
        raise Unreadable(f"{one_line(name, 40)}{shown}: a path needs a name\n  Write NAME=PATH, such as mine={shown}.")
    if not _OWN_NAME.fullmatch(name) or len(name) > LONGEST_NAME or name.startswith(DISCOVERED):
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
    return interpreter_of(name, file, answer)
