"""Code -> pieces: decide which values get a name, where they are stored, and which function computes them.

The back ends that emit source text share this. It cuts each pass into functions of bounded size, because compilers
take more than linear time for huge functions. There are three kinds of values:

- A value with one reader is inlined into it, unless the expression grows too long.
- A value that only its own function reads is a local.
- A value that another function reads gets a place in the workspace.

Example: with two primitives for each function and no inlining, the loss tanh(u * s), where s = x0 + x1 and u = s * s,
becomes

    forward_0:  v2 = x[0] + x[1];  v3 = v2 * v2;  w[0] = v3;  w[1] = v2
    forward_1:  v4 = w[0] * w[1];  w[2] = tanh(v4)

The second function reads u (v3) and s (v2), so the first one stores them. v4 stays a local; the caller reads w[2].
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from zoomgrad.engines.graph.expr import ATOM_PRECEDENCE, INFIX, Spelling, number
from zoomgrad.engines.straight.lower import ACCUMULATE, KEPT, NUMBER, SEED, Code


class Pieces(NamedTuple):
    """The functions of both passes, in calling order: name -> lines."""

    forward: dict[str, list[str]]
    backward: dict[str, list[str]]
    loss: str
    """The loss, as an expression over the workspace, the inputs and the parameters."""
    workspace: int
    """The number of doubles in the workspace."""


class Form(NamedTuple):
    """The form of the text. It changes no bit of the result."""

    piece: int = 400
    """A function ends after this many primitives; 0: one function for each pass."""
    expression: int = 16
    """A value that takes more primitives than this gets a name."""
    units: int = 1
    """Maximum number of translation units. Only C has several."""


class Language(NamedTuple):
    """Templates for statements: define a local or store in a buffer, given (name, value); add to the gradient `index`,
    given (index, value)."""

    spelling: Spelling
    local: str
    store: str
    accumulate: str


def cut(code: Code, language: Language, form: Form) -> Pieces:
    """Cut both passes into functions and spell their statements."""
    writer = _Writer(code, language, form)
    forward = writer.write("forward", 0, code.backward)
    writer.texts.clear()
    loss = writer.read(code.loss)
    backward = writer.write("backward", code.backward, len(code.instructions))
    return Pieces(forward, backward, loss[0], len(writer.place))


_Text = tuple[str, int, int]
"""An expression in the current function, the precedence of its outermost primitive, and its number of primitives (0 for
a name or a leaf)."""


class _Writer:
    """Writes statements in the order of instructions, and determines which values cross functions."""

    def __init__(self, code: Code, language: Language, form: Form) -> None:
        self.code = code
        self.language = language
        self.form = form
        names = [*(f"x[{index}]" for index in range(code.inputs)), *(f"p[{index}]" for index in range(code.parameters))]
        self.leaves: list[_Text] = [(name, ATOM_PRECEDENCE, 0) for name in names]
        self.texts: dict[int, _Text] = {}
        """Value -> how the current function reads it: a local, a place or an expression."""
        self.defined: dict[int, list[str]] = {}
        """Named value -> the lines of the function that computes it."""
        self.place: dict[int, int] = {}
        """Named value -> its index in the workspace, if it has one."""
        self.outputs: dict[int, list[int]] = {}
        for index, value in enumerate(code.outputs):
            self.outputs.setdefault(value, []).append(index)

    def write(self, name: str, start: int, stop: int) -> dict[str, list[str]]:
        """The functions of one pass: instructions from `start` to `stop`."""
        instructions, reads, language = self.code.instructions, self.code.reads, self.language
        limit, longest = self.form.piece or len(instructions), self.form.expression
        leaves, first, texts, fetch = self.leaves, len(self.leaves), self.texts, self.fetch
        known = texts.get
        apply, accumulate, infixes = language.spelling.apply, language.accumulate, INFIX
        pieces: dict[str, list[str]] = {}
        lines: list[str] = []
        filled = 0
        texts.clear()
        # The hot loop. Leaves are in a list; values that this function has already read are in a dictionary.
        for value, instruction in enumerate(islice(instructions, start, stop), first + start):
            if filled >= limit:
                pieces[f"{name}_{len(pieces)}"] = lines
                lines, filled = [], 0
                texts.clear()
            kind = instruction[0]
            if kind == ACCUMULATE:
                _, index, a = instruction
                text, _, size = leaves[a] if a < first else known(a) or fetch(a)
                lines.append(accumulate % (index, text))
                filled += size + 1
                continue
            infix = infixes.get(kind)
            if infix is not None:  # most of a graph; the same text as `apply`, in a third of the time
                symbol, binds = infix
                _, a, b = instruction
                left, left_binds, left_size = leaves[a] if a < first else known(a) or fetch(a)
                right, right_binds, right_size = leaves[b] if b < first else known(b) or fetch(b)
                if left_binds < binds:
                    left = f"({left})"
                if right_binds <= binds:
                    right = f"({right})"
                text, size = f"{left} {symbol} {right}", left_size + right_size + 1
            elif kind == NUMBER:
                texts[value] = (*number(instruction[1]), 0)
                continue
            elif kind == SEED:
                lines.append(language.store % (f"q[{instruction[1]}]", "1.0"))
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
                language.store % (f"y[{index}]", self.read(value)[0])
                for index, value in enumerate(self.code.outputs)
                if value not in self.defined
            ]
        if lines:
            pieces[f"{name}_{len(pieces)}"] = lines
        return pieces

    def read(self, value: int) -> _Text:
        return self.leaves[value] if value < len(self.leaves) else self.texts.get(value) or self.fetch(value)

    def fetch(self, value: int) -> _Text:
        """How the current function reads a value of an earlier function for the first time."""
        kind, *operands = self.code.instructions[value - len(self.leaves)]
        if kind == NUMBER:
            self.texts[value] = (*number(operands[0]), 0)
        elif value in self.defined:
            if value not in self.place:
                self.defined[value].append(self.language.store % (self._reserve(value), f"v{value}"))
            self.texts[value] = (f"w[{self.place[value]}]", ATOM_PRECEDENCE, 0)
        else:  # an expression to inline, but its function ended before the reader
            texts = [self.read(operand) for operand in operands]
            self.texts[value] = (*self.language.spelling.apply(kind, texts), sum(size for _, _, size in texts) + 1)
        return self.texts[value]

    def _define(self, value: int, text: str, lines: list[str]) -> _Text:
        """Write a statement that names a value: as a local, or in the workspace if it is known to need a place."""
        language, is_kept = self.language, self.code.reads[value] >= KEPT
        self.defined[value] = lines
        name = self._reserve(value) if is_kept else f"v{value}"
        lines.append((language.store if is_kept else language.local) % (name, text))
        lines += [language.store % (f"y[{index}]", name) for index in self.outputs.get(value, ())]
        return name, ATOM_PRECEDENCE, 0

    def _reserve(self, value: int) -> str:
        self.place[value] = len(self.place)
        return f"w[{self.place[value]}]"
