"""The scalar program as ordered sums: what all stages before the loops speak.

node = input | parameter | constant | sum
sum  = term+                  added from the left, so that its bits are those of the additions it stands for
term = template slot…         an expression of the op table over other nodes; the identity is one too

Of two sums of one pass, an operand has the smaller number; coefficients of gradients come last of all. A gradient is a
sum like any other: nothing starts at zero, nothing is added to. What is left of `+=` is the gradients that parameters
keep between steps: a sink adds its terms to one of them, one by one.
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
"""Kinds of nodes: leaves; sums of the forward pass, of the backward pass, and what parameters' gradients get."""
COMPUTED = VALUE
"""Kinds from here on are sums."""

SLOTS = tuple(Leaf(str(slot)) for slot in range(3))
"""The operands of a template."""
IDENTITY = SLOTS[0]
NONE = -1
"""In a slot that a template does not have."""


@dataclass(frozen=True)
class Sums:
    """Nodes and their terms, a column each. Terms lie in the order of the nodes that they belong to."""

    templates: list[Expr]
    """Expressions over SLOTS; number 0 is the identity."""
    owner: Ints
    """Term -> node."""
    template: Ints
    """Term -> number of its template."""
    slots: Ints
    """Term -> nodes; shape (terms, slots)."""
    kind: Ints
    number: Doubles
    """Node -> index of an input or parameter, value of a constant."""
    mirrors: Ints
    """Gradient or sink -> the node whose gradient it is."""
    loss: int
    outputs: tuple[int, ...]
    inputs: int
    """How many the caller has."""
    parameters: int

    @property
    def nodes(self) -> int:
        return len(self.kind)

    def lines(self) -> Iterator[str]:
        """Text form: leaves as `x3`, `p7` or a number, sums as `%12`; a sink as `q7 +=`."""
        texts: dict[int, list[str]] = {}
        for term, owner in enumerate(self.owner.tolist()):
            leaves = {str(i): (self.name(node), ATOM_PRECEDENCE) for i, node in enumerate(self.slots[term].tolist())}
            text, binds = PYTHON.spell(self.templates[self.template[term]], leaves)
            texts.setdefault(owner, []).append(text if binds >= INFIX["add"].precedence else f"({text})")
        for node, terms in texts.items():
            target = f"q{int(self.number[self.mirrors[node]])} +=" if self.kind[node] == SINK else f"%{node} ="
            yield f"{target} {' + '.join(terms)}"
        yield f"loss {self.name(self.loss)}"
        if self.outputs:
            yield f"outputs {' '.join(map(self.name, self.outputs))}"

    def name(self, node: int) -> str:
        """How the text form calls a node."""
        kind, number = int(self.kind[node]), float(self.number[node])
        if kind == CONSTANT:
            return repr(number)
        return f"{'xp'[kind]}{int(number)}" if kind in (INPUT, PARAMETER) else f"%{node}"


def jump_pointers(to: Ints, moved: Ints) -> Ints:
    """Node -> the end of its chain, by pointer jumping: each round halves what is left of the chains.

    to: node -> the next one, or itself. moved: the nodes that have a next one.
    """
    ends = to.copy()
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
    """How many primitives it takes."""
    return 1 + sum(map(size, expr.operands)) if isinstance(expr, Apply) else 0


def is_cheap(expr: Expr) -> bool:
    """Whether it is arithmetic and choices alone: no division, no call."""
    if not isinstance(expr, Apply):
        return True
    return expr.primitive in _CHEAP and all(map(is_cheap, expr.operands))


_CHEAP = {*INFIX, "where"} - {"div"}
