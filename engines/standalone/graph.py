"""The graph of a standalone build, and its check, because a script's process may send anything."""

from __future__ import annotations

import keyword
import math
import re
import sys
from typing import NamedTuple

from engines.graph.check import BrokenTape, check
from engines.graph.tape import INPUT, PARAMETER, Tape

MOST_NAME_CHARACTERS = 60

RESERVED = {"main", "model", "published"}
"""Names whose identifiers would meet those of a program, or of the C around the kernel."""


class Unfit(Exception):
    """This can't be built. Carries the problem and the remedy."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}\n  {remedy}")


class Graph(NamedTuple):
    """A tape and the numbers that a model starts with."""

    name: str
    """The module's name, and the prefix of the names in C."""
    origin: str
    """What it was made from, such as `workload xor`."""
    tape: Tape
    parameters: tuple[float, ...]

    @property
    def features(self) -> int:
        """Inputs that outputs depend on, if they are the first ones; else all inputs."""
        read = self.tape.read_by_outputs()
        return len(read) if read and max(read) == len(read) - 1 else self.tape.inputs


def checked(graph: Graph, *, frozen: bool) -> Graph:
    """Return the graph. Raises Unfit."""
    try:
        check(graph.tape)
    except BrokenTape as broken:
        raise Unfit(f"{graph.origin}: {broken}", "Report this if a workload causes it.") from None
    if not graph.tape.inputs:
        raise Unfit(f"{graph.origin}: the graph has no inputs", "Name at least one leaf in `inputs`.")
    if not graph.parameters and not frozen:
        raise Unfit(f"{graph.origin}: the graph has no parameters to train", "Name some, or build it with --frozen.")
    if len(graph.parameters) != graph.tape.parameters:
        raise Unfit(f"{graph.origin}: the tape and the list of parameters differ", "Run the script by itself first.")
    for index, number in enumerate(graph.parameters):
        if not math.isfinite(number):
            raise Unfit(
                f"{graph.origin}: parameter {index:,} is {number}, and a model must start with finite numbers",
                "Lower the rate of the training before the build, or train fewer steps.",
            )
    if INPUT not in graph.tape.ops:
        raise Unfit(f"{graph.origin}: no input is in the graph", "Name the leaves that the loss is computed from.")
    if PARAMETER not in graph.tape.ops and not frozen:
        raise Unfit(f"{graph.origin}: no parameter is in the graph", "Name leaves of the loss, or use --frozen.")
    return graph


def module_name(text: str) -> str:
    """A valid name of a module and of identifiers in C that no module of the standard library has."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)[:MOST_NAME_CHARACTERS]
    taken = keyword.iskeyword(name) or name in RESERVED or name in getattr(sys, "stdlib_module_names", ())
    taken = taken or name.isupper()  # such as INPUTS, a macro of ours
    return name if name[:1].isalpha() and not taken else f"model_{name}"
