"""Code -> instructions over whole lists of numbers, interpreted by one loop in Python.

An instruction is a run: one primitive over many values at once. Every value has a place in one list of numbers. The
values of a run are independent of each other and are stored side by side. So the loop executes a run as a single
comprehension, which CPython runs without further dispatch and PyPy compiles to a separate loop.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Callable, NamedTuple, Optional

from zoomgrad.engines.graph.expr import ATOM_PRECEDENCE, PYTHON
from zoomgrad.engines.kernel.program import Doubles
from zoomgrad.engines.kernel.python_kernel import PythonKernel
from zoomgrad.engines.straight.lower import ACCUMULATE, NUMBER, SEED, Code


class Run(NamedTuple):
    """One primitive whose results fill the places from `start` to `stop`. operands: the places of each operand."""

    primitive: str
    start: int
    stop: int
    operands: tuple[Sequence[int], ...]


class Bytecode(NamedTuple):
    """Instructions of both passes.

    The list of values starts with the inputs, the parameters and the numbers, in this order.
    """

    forward: list[Run]
    backward: list[Run]
    numbers: list[float]
    size: int
    """Total number of values."""
    loss: int
    outputs: list[int]
    contributions: list[tuple[int, int]]
    """The parameter and the place of each contribution, in order."""
    seeded: Optional[int] = None
    """The parameter that is the loss, whose gradient becomes 1."""

    def lines(self) -> Iterator[str]:
        """Text form: a run shows its places, its primitive, and the places of each operand."""
        yield f"numbers {' '.join(map(repr, self.numbers))}".rstrip()
        for name, runs in (("forward", self.forward), ("backward", self.backward)):
            yield f"{name}:"
            for run in runs:
                operands = "  ".join(" ".join(map(str, places)) for places in run.operands)
                yield f"{run.start}:{run.stop} = {run.primitive}  {operands}"
        for target, place in self.contributions:
            yield f"gradient {target} += {place}"
        if self.seeded is not None:
            yield f"gradient {self.seeded} = 1.0"
        yield f"loss {self.loss}"
        if self.outputs:
            yield f"outputs {' '.join(map(str, self.outputs))}"


def assemble(code: Code) -> Bytecode:
    """Group instructions into runs: the same primitive at the same distance from the leaves."""
    first = code.inputs + code.parameters
    place = array("i", range(first)) + array("i", [0]) * len(code.instructions)
    level = array("i", [0]) * len(place)
    numbers: list[float] = []
    contributions: list[tuple[int, int]] = []
    seeded = None
    groups: tuple[dict[tuple[int, str], list[int]], ...] = ({}, {})
    for index, instruction in enumerate(code.instructions):
        kind, value = instruction[0], first + index
        if kind == NUMBER:
            place[value] = first + len(numbers)
            numbers.append(instruction[1])
        elif kind == ACCUMULATE:
            contributions.append(instruction[1:])
        elif kind == SEED:
            seeded = instruction[1]
        else:
            at = 0
            for operand in instruction[1:]:
                if level[operand] > at:
                    at = level[operand]
            level[value] = at + 1
            groups[index >= code.backward].setdefault((at, kind), []).append(value)
    size = first + len(numbers)
    passes: tuple[list[Run], list[Run]] = ([], [])
    for runs, grouped in zip(passes, groups):
        for (_, primitive), members in sorted(grouped.items()):
            start = size
            for value in members:
                place[value] = size
                size += 1
            columns = zip(*(code.instructions[value - first][1:] for value in members))
            operands = tuple([place[operand] for operand in column] for column in columns)
            runs.append(Run(primitive, start, size, operands))
    return Bytecode(
        *passes,
        numbers,
        size,
        place[code.loss],
        [place[output] for output in code.outputs],
        [(target, place[value]) for target, value in contributions],
        seeded,
    )


@cache
def _computation(primitive: str, arity: int) -> Callable[..., list[float]]:
    """Compile a function of all values and each operand's places, which applies the primitive to each set of operands.

    Each primitive has a separate comprehension. It takes half the time of `map` over `itemgetter`s on CPython and PyPy.
    """
    names = [f"i{n}" for n in range(arity)]
    text, _ = PYTHON.apply(primitive, [(f"w[{name}]", ATOM_PRECEDENCE) for name in names])
    made: Callable[..., list[float]] = eval(  # noqa: S307  (text from the op table)
        f"lambda w, *columns: [{text} for {', '.join(names)}, in zip(*columns)]", dict(vars(math))
    )
    return made


def _interpreter(runs: Iterable[Run]) -> Callable[[Doubles], None]:
    steps = [(_computation(run.primitive, len(run.operands)), slice(run.start, run.stop), run.operands) for run in runs]

    def execute(w: Doubles) -> None:
        for compute, places, operands in steps:
            w[places] = compute(w, *operands)

    return execute


class Interpreter(PythonKernel):
    """Kernel over instructions. Its workspace is the list of values, with copies of inputs, parameters and numbers."""

    def __init__(self, bytecode: Bytecode) -> None:
        super().__init__(bytecode.size)
        self._code = bytecode
        self._forward, self._backward = _interpreter(bytecode.forward), _interpreter(bytecode.backward)

    def values(self, x: Doubles, p: Doubles, w: Doubles, y: Doubles) -> float:
        code = self._code
        first = len(x) + len(p)
        w[: len(x)] = x
        w[len(x) : first] = p
        w[first : first + len(code.numbers)] = code.numbers
        try:
            self._forward(w)
        finally:  # the outputs are known before a loss overflows, which may raise
            y[:] = [w[place] for place in code.outputs]
        return w[code.loss]

    def gradients(self, x: Doubles, p: Doubles, w: Doubles, q: Doubles) -> None:
        self._backward(w)
        for target, place in self._code.contributions:
            q[target] += w[place]
        if self._code.seeded is not None:
            q[self._code.seeded] = 1.0
