"""The scalar program as ordered sums: the form between tape and loops, which `chains` and `fuse` simplify.

node = input | parameter | constant | sum
sum  = term+                  added from left to right, which fixes its bits
term = template slot…         an expression of the op table over other nodes, or the identity, which is one node

Within each pass, an operand has a smaller number than the sums that read it. Coefficients of gradients have the largest
numbers, although they are computed before all gradients.

A gradient is an ordinary sum of its consumers' contributions. It does not start at zero and grow. Only the gradients of
parameters persist between steps. A *sink* is a sum that adds its terms, one by one, to the gradient of a parameter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from zoomgrad.engines.graph.expr import INFIX, PYTHON, Expr, leaves
from zoomgrad.engines.rerolled.recover.templates import SLOTS

Ints = np.ndarray[Any, Any]
Doubles = np.ndarray[Any, Any]

INPUT, PARAMETER, CONSTANT, VALUE, GRADIENT, SINK = range(6)
"""Kinds of nodes: three of leaves; sums of the forward pass, of the backward pass, and sinks."""
COMPUTED = VALUE
"""The first kind of sum. VALUE, GRADIENT and SINK are sums."""

NONE = -1
"""Marks the absence of a node: in a slot that a template does not read, and in `mirrors` if a node is not a
gradient."""

APART = 1 << 32
"""More than the number of nodes. It separates ranks of two groups, and rows of two blocks."""


@dataclass(frozen=True)
class Sums:
    """Nodes and terms, with an array for each property. Terms are sorted by owner."""

    templates: list[Expr]
    """Expressions over SLOTS; number 0 is the identity."""
    owner: Ints
    """Term -> the node it belongs to."""
    template: Ints
    """Term -> number of its template."""
    slots: Ints
    """Slot, term -> the node that the slot reads."""
    kind: Ints
    """Node -> INPUT, PARAMETER, CONSTANT, VALUE, GRADIENT or SINK."""
    number: Doubles
    """Leaf -> index of an input or parameter, value of a constant. Leaves are the first nodes."""
    mirrors: Ints
    """Node -> the node whose gradient it is, or NONE for leaves, values and coefficients."""
    loss: int
    outputs: tuple[int, ...]
    inputs: int
    """The number of the caller's inputs, read or not."""
    parameters: int
    """The number of the caller's parameters, read or not."""

    @property
    def nodes(self) -> int:
        return len(self.kind)

    @cached_property
    def first(self) -> Ints:
        """Sum -> its first term. Sums are numbered in the order of their nodes."""
        return starts_of(self.owner)

    @cached_property
    def count(self) -> Ints:
        """Sum -> the number of its terms."""
        return np.diff(self.first, append=len(self.owner))

    @cached_property
    def node(self) -> Ints:
        """Sum -> its node."""
        return self.owner.take(self.first)

    @cached_property
    def reads(self) -> list[list[int]]:
        """Template -> the slots that it reads."""
        return [sorted({SLOTS.index(leaf) for leaf in leaves(expr)}) for expr in self.templates]

    def operands(self, terms: Ints) -> Ints:
        """The nodes that terms read; shape (slots, terms, lanes), without the last slots if no template reads them.

        terms: shape (terms, lanes). Lanes have the same templates.
        """
        slots = {slot for number in set(self.template.take(terms[:, 0]).tolist()) for slot in self.reads[number]}
        return self.slots[: 1 + max(slots, default=0)].take(terms, axis=1)

    def with_terms(self, terms: Any) -> Sums:
        """Only these terms, in this order."""
        return replace(
            self, owner=self.owner.take(terms), template=self.template.take(terms), slots=self.slots.take(terms, axis=1)
        )

    def lines(self) -> Iterator[str]:
        """Text form, one sum per line. Leaves are `x3`, `p7` or a number, sums are `%12`, sinks are `q7 +=`."""
        texts: dict[int, list[str]] = {}
        for term, owner in enumerate(self.owner.tolist()):
            names = {str(i): self.name(node) for i, node in enumerate(self.slots[:, term].tolist())}
            text, binds = PYTHON.spell(self.templates[self.template[term]], names)
            texts.setdefault(owner, []).append(text if binds >= INFIX["add"].precedence else f"({text})")
        for node, terms in texts.items():
            target = f"q{int(self.number[self.mirrors[node]])} +=" if self.kind[node] == SINK else f"%{node} ="
            yield f"{target} {' + '.join(terms)}"
        yield f"loss {self.name(self.loss)}"
        if self.outputs:
            yield f"outputs {' '.join(map(self.name, self.outputs))}"

    def name(self, node: int) -> str:
        kind = int(self.kind[node])
        if kind == CONSTANT:
            return repr(float(self.number[node]))
        return f"{'xp'[kind]}{int(self.number[node])}" if kind in (INPUT, PARAMETER) else f"%{node}"


def jump_pointers(to: Ints, moved: Ints) -> Ints:
    """Node -> the end of its chain. The result replaces `to`.

    to: node -> the next node, or itself. moved: the nodes that have a next node. Where the next node is the neighbour
    in `moved`, its end is known at once. For the rest, each round halves the chains.
    """
    if len(moved):
        end = to.take(moved)
        last = np.flatnonzero(np.append(end[:-1] != moved[1:], True))
        to[moved] = np.repeat(end.take(last), np.diff(last, prepend=-1))
    while len(moved):
        end = to.take(moved)
        further = to.take(end)
        to[moved] = further
        moved = moved.compress(further != end)
    return to


def read_once(sums: Sums) -> Any:
    """Node -> whether one term reads it, and no other term, loss or output does. The last entry is for NONE."""
    reads = np.bincount(sums.slots[sums.slots != NONE], minlength=sums.nodes + 1)
    reads[[sums.loss, *sums.outputs, NONE]] += 2
    return reads == 1


def distinct(*columns: Ints) -> tuple[Ints, Ints]:
    """The first position of each distinct tuple of numbers, tuples in ascending order; and position -> its tuple.

    It replaces `np.unique`, whose first call imports a module for 8 ms.
    """
    order = np.lexsort(columns[::-1])
    is_new = np.ones(len(order), bool)
    is_new[1:] = False
    for column in columns:
        ordered = column[order]
        is_new[1:] |= ordered[1:] != ordered[:-1]
    tuples = np.empty(len(order), np.int64)
    tuples[order] = np.cumsum(is_new) - 1
    return order[is_new], tuples


def starts_of(owner: Ints) -> Ints:
    """The first term of each sum. Terms are sorted by owner."""
    is_start = np.ones(len(owner), bool)
    np.not_equal(owner[1:], owner[:-1], out=is_start[1:])
    starts: Ints = is_start.nonzero()[0]
    return starts


def ranges(stop: Ints, length: Ints) -> Ints:
    """For each range, the numbers from `stop - length` to `stop - 1`: one range after the other."""
    numbers: Ints = (stop - length.cumsum()).repeat(length)
    numbers += np.arange(len(numbers))
    return numbers
