"""Code -> pieces: which values get a name, where the name lives, and which function computes it.

Shared by the back ends that write source text. A value that is read once is written where it is read, as far as
expressions stay short. A value that only its own function reads is a local there; one that another function reads has a
place in the workspace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from engines.compiled.lower import ACCUMULATE, KEPT, NUMBER, Code
from engines.graph.expr import ATOM_PRECEDENCE, INFIX, Spelling, number
from engines.graph.tape import INPUT, PARAMETER

INPUTS, PARAMETERS, WORKSPACE, OUTPUTS, GRADIENTS = "x", "p", "w", "y", "q"
"""The buffers that a piece may touch; in this order they are its arguments."""


@dataclass(frozen=True)
class Shape:
    """How big things get. Sizes count primitives."""

    piece: int = 400
    """A function ends after this many; 0: one function for each pass."""
    expression: int = 16
    """A value that takes more gets a name."""
    keep_locals: bool = True
    """Whether a value that only its own function reads stays out of the workspace."""


class Piece(NamedTuple):
    """One function."""

    name: str
    lines: list[str]
    arguments: tuple[str, ...] = ()
    """The buffers that it touches."""


class Pieces(NamedTuple):
    """The two passes as functions, to be called in order."""

    forward: list[Piece]
    backward: list[Piece]
    loss: str
    """The loss, as an expression over the workspace, the inputs and the parameters."""
    workspace: int
    """How many doubles the workspace holds."""


class Language(NamedTuple):
    """What statements look like; templates take (name or index, value)."""

    spelling: Spelling
    local: str
    """Gives a local its value."""
    store: str
    """Stores into a buffer."""
    accumulate: str
    """Adds to a gradient."""
    workspace: str = "w[%d]"
    """A value that outlives its function."""


def cut(code: Code, language: Language, shape: Shape) -> Pieces:
    """The functions of both passes, their statements spelled."""
    writer = _Writer(code, language, shape)
    forward = writer.write("forward", 0, code.backward)
    loss = writer.fetch(code.loss)
    backward = writer.write("backward", code.backward, len(code.instructions))
    return Pieces([_finish(p) for p in forward], [_finish(p) for p in backward], loss[0], len(writer.place))


_Text = tuple[str, int, int]
"""An expression as it stands in the function that is being written, the precedence of its outermost primitive, and how
many primitives it takes: 0 for a name or a leaf."""


class _Writer:
    """Writes statements in the order of instructions, and learns on the way which values cross functions."""

    def __init__(self, code: Code, language: Language, shape: Shape) -> None:
        self.code = code
        self.language = language
        self.shape = shape
        self.texts: dict[int, _Text] = {}
        """What can be read in this function as it is: its locals, its expressions, and leaves."""
        self.defined: dict[int, list[str]] = {}
        """Named value -> the lines of the function that computes it."""
        self.place: dict[int, int] = {}
        """Named value -> its index in the workspace, where it has one."""
        self.outputs: dict[int, list[int]] = {}
        for index, value in enumerate(code.outputs):
            self.outputs.setdefault(value, []).append(index)

    def write(self, name: str, start: int, stop: int) -> list[Piece]:
        """The functions of one pass."""
        instructions, reads, shape, language = self.code.instructions, self.code.reads, self.shape, self.language
        limit, longest = shape.piece or stop, shape.expression
        apply, accumulate, infixes = language.spelling.apply, language.accumulate, INFIX
        pieces: list[Piece] = []
        lines: list[str] = []
        texts = self.texts = {}
        fetch = self.fetch
        filled = 0
        for i in range(start, stop):
            instruction = instructions[i]
            kind = instruction[0]
            if kind in _LEAVES:
                continue
            if filled >= limit:
                pieces.append(Piece(f"{name}_{len(pieces)}", lines))
                lines, filled = [], 0
                texts = self.texts = {}
            if kind == ACCUMULATE:
                text, _, size = texts.get(instruction[2]) or fetch(instruction[2])
                lines.append(accumulate % (instruction[1], text))
                filled += size + 1
                continue
            infix = infixes.get(kind)
            if infix is not None:  # what `apply` would write, at a third of the time: most of a graph is this
                symbol, binds = infix
                left, left_binds, left_size = texts.get(instruction[1]) or fetch(instruction[1])
                right, right_binds, right_size = texts.get(instruction[2]) or fetch(instruction[2])
                if left_binds < binds:
                    left = f"({left})"
                if right_binds <= binds:
                    right = f"({right})"
                size = left_size + right_size + 1
                text = f"{left} {symbol} {right}"
            else:
                operands = [texts.get(operand) or fetch(operand) for operand in instruction[1:]]
                text, binds = apply(kind, operands)
                size = sum([operand[2] for operand in operands]) + 1
            if reads[i] == 1 and size < longest:
                texts[i] = (text, binds, size)
                continue
            filled += size
            texts[i] = self._define(i, text, lines)
        if name == "forward":
            for value, indices in self.outputs.items():
                if instructions[value][0] in _LEAVES:
                    lines += [language.store % (f"{OUTPUTS}[{index}]", fetch(value)[0]) for index in indices]
        return [*pieces, Piece(f"{name}_{len(pieces)}", lines)] if lines else pieces

    def fetch(self, i: int) -> _Text:
        """A value that this function has not read yet: a leaf, or something of an earlier function's."""
        instruction = self.code.instructions[i]
        kind = instruction[0]
        found: _Text
        if kind == PARAMETER:
            found = (f"{PARAMETERS}[{instruction[1]}]", ATOM_PRECEDENCE, 0)
        elif kind == INPUT:
            found = (f"{INPUTS}[{instruction[1]}]", ATOM_PRECEDENCE, 0)
        elif kind == NUMBER:
            found = (*number(instruction[1]), 0)
        elif i in self.defined:
            if i not in self.place:
                self.defined[i].append(self.language.store % (self._reserve(i), f"v{i}"))
            found = (self.language.workspace % self.place[i], ATOM_PRECEDENCE, 0)
        else:  # an expression that was to be part of a statement, and the function ended before
            operands = [self.texts.get(operand) or self.fetch(operand) for operand in instruction[1:]]
            spelled = self.language.spelling.apply(kind, operands)
            found = (*spelled, sum(size for _, _, size in operands) + 1)
        self.texts[i] = found
        return found

    def _define(self, i: int, text: str, lines: list[str]) -> _Text:
        """A statement that names a value: a local, or a place in the workspace where it is known to need one."""
        language = self.language
        self.defined[i] = lines
        if self.code.reads[i] >= KEPT or not self.shape.keep_locals:
            name = self._reserve(i)
            lines.append(language.store % (name, text))
        else:
            name = f"v{i}"
            lines.append(language.local % (name, text))
        lines += [language.store % (f"{OUTPUTS}[{index}]", name) for index in self.outputs.get(i, ())]
        return name, ATOM_PRECEDENCE, 0

    def _reserve(self, i: int) -> str:
        self.place[i] = len(self.place)
        return self.language.workspace % self.place[i]


def _finish(piece: Piece) -> Piece:
    body = "\n".join(piece.lines)
    buffers = (INPUTS, PARAMETERS, WORKSPACE, OUTPUTS, GRADIENTS)
    return piece._replace(arguments=tuple(buffer for buffer in buffers if f"{buffer}[" in body))


_LEAVES = (INPUT, PARAMETER, NUMBER)
