"""Code -> pieces: which values get a name, where the name lives, and which function computes it.

Shared by the back ends that write source text. A value that is read once is written where it is read, as far as
expressions stay short. A value that only its own function reads is a local there; one that another function reads has a
place in the workspace.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from engines.graph.expr import ATOM_PRECEDENCE, INFIX, Spelling, number
from engines.straight.lower import ACCUMULATE, KEPT, NUMBER, Code

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
    writer.texts.clear()
    loss = writer.read(code.loss)
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
        inputs = [(f"{INPUTS}[{index}]", ATOM_PRECEDENCE, 0) for index in range(code.inputs)]
        self.leaves: list[_Text] = inputs + [
            (f"{PARAMETERS}[{index}]", ATOM_PRECEDENCE, 0) for index in range(code.parameters)
        ]
        self.texts: dict[int, _Text] = {}
        """What can be read in this function as it is: its locals and its expressions."""
        self.defined: dict[int, list[str]] = {}
        """Named value -> the lines of the function that computes it."""
        self.place: dict[int, int] = {}
        """Named value -> its index in the workspace, where it has one."""
        self.outputs: dict[int, list[int]] = {}
        for index, value in enumerate(code.outputs):
            self.outputs.setdefault(value, []).append(index)

    def write(self, name: str, start: int, stop: int) -> list[Piece]:
        """The functions of one pass: instructions from `start` to `stop`."""
        instructions, reads, shape, language = self.code.instructions, self.code.reads, self.shape, self.language
        limit, longest = shape.piece or len(instructions), shape.expression
        leaves, first, texts, fetch = self.leaves, len(self.leaves), self.texts, self.fetch
        apply, accumulate, infixes = language.spelling.apply, language.accumulate, INFIX
        pieces: list[Piece] = []
        lines: list[str] = []
        filled = 0
        texts.clear()
        # The hot loop: a leaf is looked up in a list, and what this function has read before in a dictionary.
        for value, instruction in enumerate(islice(instructions, start, stop), first + start):
            if filled >= limit:
                pieces.append(Piece(f"{name}_{len(pieces)}", lines))
                lines, filled = [], 0
                texts.clear()
            kind = instruction[0]
            if kind == ACCUMULATE:
                a = instruction[2]
                text, _, size = leaves[a] if a < first else texts.get(a) or fetch(a)
                lines.append(accumulate % (instruction[1], text))
                filled += size + 1
                continue
            infix = infixes.get(kind)
            if infix is not None:  # what `apply` would write, at a third of the time: most of a graph is this
                symbol, binds = infix
                _, a, b = instruction
                left, left_binds, left_size = leaves[a] if a < first else texts.get(a) or fetch(a)
                right, right_binds, right_size = leaves[b] if b < first else texts.get(b) or fetch(b)
                if left_binds < binds:
                    left = f"({left})"
                if right_binds <= binds:
                    right = f"({right})"
                size = left_size + right_size + 1
                text = f"{left} {symbol} {right}"
            elif kind == NUMBER:
                texts[value] = (*number(instruction[1]), 0)
                continue
            else:
                operands = [self.read(operand) for operand in instruction[1:]]
                text, binds = apply(kind, operands)
                size = sum([operand[2] for operand in operands]) + 1
            if reads[value] == 1 and size < longest:
                texts[value] = (text, binds, size)
                continue
            filled += size
            texts[value] = self._define(value, text, lines)
        if name == "forward":
            lines += [
                language.store % (f"{OUTPUTS}[{index}]", self.read(value)[0])
                for value, indices in self.outputs.items()
                if value not in self.defined
                for index in indices
            ]
        return [*pieces, Piece(f"{name}_{len(pieces)}", lines)] if lines else pieces

    def read(self, value: int) -> _Text:
        """How the function that is being written reads a value."""
        return self.leaves[value] if value < len(self.leaves) else self.texts.get(value) or self.fetch(value)

    def fetch(self, value: int) -> _Text:
        """How it reads what it has not read yet: something of an earlier function's."""
        kind, *operands = self.code.instructions[value - len(self.leaves)]
        found: _Text
        if kind == NUMBER:
            found = (*number(operands[0]), 0)
        elif value in self.defined:
            if value not in self.place:
                self.defined[value].append(self.language.store % (self._reserve(value), f"v{value}"))
            found = (self.language.workspace % self.place[value], ATOM_PRECEDENCE, 0)
        else:  # an expression that was to be part of a statement, and the function ended before
            texts = [self.read(operand) for operand in operands]
            found = (*self.language.spelling.apply(kind, texts), sum(size for _, _, size in texts) + 1)
        self.texts[value] = found
        return found

    def _define(self, value: int, text: str, lines: list[str]) -> _Text:
        """A statement that names a value: a local, or a place in the workspace where it is known to need one."""
        language = self.language
        self.defined[value] = lines
        if self.code.reads[value] >= KEPT or not self.shape.keep_locals:
            name = self._reserve(value)
            lines.append(language.store % (name, text))
        else:
            name = f"v{value}"
            lines.append(language.local % (name, text))
        lines += [language.store % (f"{OUTPUTS}[{index}]", name) for index in self.outputs.get(value, ())]
        return name, ATOM_PRECEDENCE, 0

    def _reserve(self, value: int) -> str:
        self.place[value] = len(self.place)
        return self.language.workspace % self.place[value]


def _finish(piece: Piece) -> Piece:
    body = "\n".join(piece.lines)
    buffers = (INPUTS, PARAMETERS, WORKSPACE, OUTPUTS, GRADIENTS)
    return piece._replace(arguments=tuple(buffer for buffer in buffers if f"{buffer}[" in body))
