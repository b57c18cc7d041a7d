"""The scalar program as ordered sums: the form between the tape and the loops, which `chains` and `fuse` simplify.

node = input | parameter | constant | sum
sum  = term+                  added from left to right, which fixes its bits
term = template slot…         an expression of the op table over other nodes, or the identity, which is one node

Nodes are numbered. Within the forward pass and within the backward pass, an operand has a smaller number than the sum
that reads it. Coefficients of gradients have the largest numbers, though they are computed before all gradients.

A gradient is a sum like any other, of all that its consumers contribute: it neither starts at zero nor grows. Only the
gradients of parameters are kept between steps. A sink adds its terms to one of these, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engines.graph.expr import ATOM_PRECEDENCE, INFIX, PYTHON, Apply, Expr, Leaf

if TYPE_CHECKING:  # listing engines imports no third party
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[Any]
    Doubles = NDArray[np.float64]

INPUT, PARAMETER, CONSTANT, VALUE, GRADIENT, SINK = range(6)
"""Kinds of nodes: three of leaves; sums of the forward pass, of the backward pass, and sinks."""
COMPUTED = VALUE
"""The first kind that is a sum: VALUE, GRADIENT and SINK are."""

SLOTS = tuple(Leaf(str(slot)) for slot in range(3))
"""The operands of a template."""
IDENTITY = SLOTS[0]
NONE = -1
"""In place of a node: in a slot that a template does not read, in `mirrors` for what is not a gradient of a node."""


@dataclass(frozen=True)
class Sums:
    """Nodes and terms, an array for each of their properties. Terms are sorted by the node that they belong to."""

    templates: list[Expr]
    """Expressions over SLOTS; number 0 is the identity."""
    owner: Ints
    """Term -> the node it belongs to."""
    template: Ints
    """Term -> number of its template."""
    slots: Ints
    """Term -> nodes; shape (terms, slots)."""
    kind: Ints
    """Node -> INPUT, PARAMETER, CONSTANT, VALUE, GRADIENT or SINK."""
    number: Doubles
    """Node -> index of an input or parameter, value of a constant."""
    mirrors: Ints
    """Node -> the node whose gradient it is; NONE for leaves, values and coefficients."""
    loss: int
    outputs: tuple[int, ...]
    inputs: int
    """The number of the caller's inputs, read or not."""
    parameters: int
    """The number of the caller's parameters, read or not."""

    @property
    def nodes(self) -> int:
        return len(self.kind)

    def lines(self) -> Iterator[str]:
        """Text form, a sum a line: leaves are `x3`, `p7` or a number, sums are `%12`, sinks are `q7 +=`."""
        texts: dict[int, list[str]] = {}
        for term, owner in enumerate(self.owner.tolist()):
            names = {str(i): (self.name(node), ATOM_PRECEDENCE) for i, node in enumerate(self.slots[term].tolist())}
            text, binds = PYTHON.spell(self.templates[self.template[term]], names)
            texts.setdefault(owner, []).append(text if binds >= INFIX["add"].precedence else f"({text})")
        for node, terms in texts.items():
            target = f"q{int(self.number[self.mirrors[node]])} +=" if self.kind[node] == SINK else f"%{node} ="
            yield f"{target} {' + '.join(terms)}"
        yield f"loss {self.name(self.loss)}"
        if self.outputs:
            yield f"outputs {' '.join(map(self.name, self.outputs))}"

    def name(self, node: int) -> str:
        """The node in the text form."""
        kind, number = int(self.kind[node]), float(self.number[node])
        if kind == CONSTANT:
            return repr(number)
        return f"{'xp'[kind]}{int(number)}" if kind in (INPUT, PARAMETER) else f"%{node}"


def jump_pointers(to: Ints, moved: Ints) -> Ints:
    """Node -> the end of its chain, by pointer jumping: each round halves what is left of the chains.

    to: node -> the next one, or itself. moved: the nodes that have a next one.
    """
    ends: Ints = to.copy()
    end = ends[moved]
    while len(moved):
        further = ends[end]
        ends[moved] = further
        going = further != end
        moved, end = moved[going], further[going]
    return ends


def leaves(expr: Expr) -> Iterator[Leaf]:
    """The leaves of an expression from left to right, each as often as it occurs."""
    if isinstance(expr, Apply):
        for operand in expr.operands:
            yield from leaves(operand)
    elif isinstance(expr, Leaf):
        yield expr


def substitute(expr: Expr, leaf_to: Mapping[Leaf, Expr]) -> Expr:
    """The expression with other expressions in place of its leaves."""
    if isinstance(expr, Apply):
        return Apply(expr.primitive, tuple(substitute(operand, leaf_to) for operand in expr.operands))
    return leaf_to[expr] if isinstance(expr, Leaf) else expr


def size(expr: Expr) -> int:
    """The number of primitives in an expression."""
    return 1 + sum(map(size, expr.operands)) if isinstance(expr, Apply) else 0


def is_cheap(expr: Expr) -> bool:
    """Whether an expression has additions, multiplications, comparisons and choices only: no division, no call."""
    if not isinstance(expr, Apply):
        return True
    return expr.primitive in _CHEAP and all(map(is_cheap, expr.operands))


_CHEAP = {*INFIX, "where"} - {"div"}
