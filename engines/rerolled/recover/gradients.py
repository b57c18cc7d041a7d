"""Tape -> Sums: write each gradient as the ordered sum of its consumers' contributions.

Only this module of the folder uses the op table. The reference runs reverse mode by *pushing*: it walks the rows from
last to first, and each row adds its contributions to its operands' gradients. Here each gradient *pulls* instead: it is
one sum over its consumers, in the reference's order of additions, last consumer first. The module builds the columns of
a whole op at a time.

Three rules keep the sums small:

- An *alias* is a gradient that equals one consumer's gradient. `+` passes its gradient to both operands unchanged, so
  an operand without other consumers needs no sum. Aliases of aliases are resolved.
- *Value numbering*: two rows with the same op and operands compute the same value, so only the first is kept. This
  covers rows with at most one operand that is not a constant; among other rows, duplicates are rare.
- A *coefficient* is the factor of a contribution, if computing it takes a call or a division. It becomes a separate
  sum, so that equal coefficients are computed once.

Example (the tape is in the docstring of the package). Forward sums keep their row numbers, and %19 is the constant 1.0.
The gradient of row r is %(38 - r): %20 for the loss, %21 and %29 for the ReLUs %17 and %9.

    >>> show(pull(tape))
    %3 = p1 * x0
    %4 = p0 + %3
    %7 = p2 * x1
    %8 = %4 + %7
    %9 = (0.0 if %8 < 0.0 else %8)
    %12 = p4 * x0
    %13 = p3 + %12
    %15 = p5 * x1
    %16 = %13 + %15
    %17 = (0.0 if %16 < 0.0 else %16)
    %18 = %9 * %17
    %21 = %9 * 1.0
    %22 = (%17 > 0.0) * %21
    q5 += x1 * %22
    q4 += x0 * %22
    q3 += %22
    %29 = %17 * 1.0
    %30 = (%9 > 0.0) * %29
    q2 += x1 * %30
    q1 += x0 * %30
    q0 += %30
    loss %18

The loss's gradient %20 is an alias of 1.0. The gradients of rows 15, 13 and 12 (%23, %25 and %26) are aliases of %22,
the gradient of row 16, because all of these rows are operands of additions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Optional

import numpy as np

from zoomgrad.engines.graph import tape as tapes
from zoomgrad.engines.graph.expr import OUT, A, Apply, B, Expr, G, K, Leaf, Literal, leaves
from zoomgrad.engines.graph.ops import OPS
from zoomgrad.engines.graph.tape import Tape
from zoomgrad.engines.rerolled.recover import sums
from zoomgrad.engines.rerolled.recover.sums import NONE, Ints, Sums, distinct, jump_pointers
from zoomgrad.engines.rerolled.recover.templates import IDENTITY, SLOTS, is_cheap, substitute


def pull(tape: Tape) -> Sums:
    """Write the sums of all rows, and of all gradients up to the loss, even those that no parameter needs.

    The loss is computed: `reroll_regular` leaves a leaf to straight lines.
    """
    return _Builder(tape).build()


class _Kind(NamedTuple):
    """All rows with the same op and constant."""

    terms: tuple[Expr, ...]
    """The terms of a row's value: an addition has two, any other op has one."""
    contributions: tuple[Expr, ...]
    constant: Optional[float]
    rows: Ints


class _Builder:
    """Builds the columns of Sums.

    Nodes are numbered in this order: the tape's rows, the constant 1.0, the gradients from the last row to the first,
    then coefficients. A row has two *positions*: for the terms of its value, and for its contributions to the gradients
    of its left and its right operand.
    """

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.rows = rows = len(tape)
        self.one = rows
        """The node of the constant 1.0."""
        self.nodes = 2 * rows + 1
        """The number of nodes. Coefficients are added later."""
        self.code = np.frombuffer(tape.ops, np.uint8)
        left, right, index = (np.frombuffer(column, np.int32) for column in (tape.left, tape.right, tape.index))
        self.operands = (left, right)
        self.number = np.zeros(rows + 1)
        is_leaf = self.code <= sums.PARAMETER
        self.number[:-1][is_leaf] = index[is_leaf]
        numbered = np.flatnonzero((index != NONE) & ~is_leaf)
        self.number[numbered] = np.array(tape.constants, np.float64)[index[numbered]]
        self.number[self.one] = 1.0
        self.kinds = list(self._kinds())
        self.value = self._value_numbers()
        self.columns = {A: self.value.take(left), B: self.value.take(right), OUT: self.value}
        """Leaf of the op table -> row -> the node that the leaf stands for."""
        self.templates: dict[Expr, int] = {IDENTITY: 0}
        self.coefficients: list[tuple[int, Ints]] = []
        """Template and slots of each batch of coefficients, in the order of their nodes."""

    def _kinds(self) -> Iterator[_Kind]:
        codes = tapes.codes()
        for name, op in OPS.items():
            rows = np.flatnonzero(self.code == codes[name])
            terms = (A, B) if op.forward == A + B else (op.forward,)
            for k in sorted(set(self.number[rows].tolist())) if op.takes_constant else [None]:
                yield _Kind(terms, op.contributions, k, rows if k is None else rows[self.number[rows] == k])

    def _value_numbers(self) -> Ints:
        """Row -> the first row with the same value, for example of a division's reciprocal or a negation."""
        value: Ints = np.arange(self.rows, dtype=np.int32)
        constants = np.flatnonzero(self.code == sums.CONSTANT)
        first, equal = distinct(self.number[constants].view(np.int64))
        value[constants] = constants[first[equal]]
        is_constant = np.append(self.code == sums.CONSTANT, True)  # the last entry is for NONE
        left, right = self.operands
        # Skip rows with two operands that vary: duplicates are rare there, and the search is slow.
        shared = [kind.rows[is_constant[right[kind.rows]] | is_constant[left[kind.rows]]] for kind in self.kinds]
        while True:
            before = value.copy()
            for rows in filter(len, shared):
                first, equal = distinct(value[left[rows]].astype(np.int64) * self.rows + value[right[rows]])
                value[rows] = rows[first[equal]]
            if (value == before).all():
                return value

    def build(self) -> Sums:
        """Number the terms of all values and gradients, then fill them in, one kind of row at a time."""
        rows, loss = self.rows, self.tape.loss
        values, (contributions, targets, self.columns[G]) = self._values(), self._gradients()
        owner = np.concatenate([(values >> 1).astype(np.int32), 2 * rows - targets])
        terms = np.full((2, 2 * rows), NONE, np.int32)
        """Pass, 2 * row + position -> the number of its term, or NONE."""
        terms[0, values] = np.arange(len(values))
        terms[1, contributions] = np.arange(len(values), len(owner))
        template, slots = np.zeros(len(owner), np.int16), np.full((len(SLOTS), len(owner)), NONE, np.int32)
        parts = [(terms[0], kind, each) for kind in self.kinds for each in enumerate(kind.terms)]
        parts += [(terms[1], kind, each) for kind in self.kinds for each in enumerate(kind.contributions)]
        for of_pass, kind, (position, expr) in parts:
            at = of_pass.take(2 * kind.rows + position)
            has_term = at != NONE
            at = at.compress(has_term)
            template[at], operands = self._term(expr, kind.constant, kind.rows[has_term])
            for slot, nodes in enumerate(operands):
                slots[slot, at] = nodes
        coefficients = np.arange(2 * rows + 1, self.nodes, dtype=np.int32)
        kinds = np.full(self.nodes, sums.GRADIENT, np.int8)
        np.minimum(self.code, sums.VALUE, out=kinds[:rows], casting="unsafe")
        kinds[self.one] = sums.CONSTANT
        of_rows = slice(rows + 1, 2 * rows + 1)
        kinds[of_rows][self.code[::-1] == sums.PARAMETER] = sums.SINK
        mirrors = np.full(self.nodes, NONE, np.int32)
        mirrors[of_rows] = np.arange(rows - 1, -1, -1)
        return Sums(
            templates=list(self.templates),
            owner=np.concatenate([owner, coefficients]),
            template=np.concatenate([template, *(np.full(s.shape[1], n, np.int16) for n, s in self.coefficients)]),
            slots=np.concatenate([slots, *(of_batch for _, of_batch in self.coefficients)], axis=1),
            kind=kinds,
            number=self.number,
            mirrors=mirrors,
            loss=int(self.value[loss]),
            outputs=tuple(int(self.value[output]) for output in self.tape.outputs),
            inputs=self.tape.inputs,
            parameters=self.tape.parameters,
        )

    def _values(self) -> Ints:
        """2 * row + position of each term of a value."""
        has_term = np.zeros((self.rows, 2), bool)
        for kind in self.kinds:
            has_term[kind.rows, : len(kind.terms)] = True
        has_term[self.value != np.arange(self.rows)] = False
        return np.flatnonzero(has_term)

    def _gradients(self) -> tuple[Ints, Ints, Ints]:
        """2 * row + position of each term of a gradient, and its operand; and row -> the node of its gradient.

        List all contributions, first row first, and for one row, right operand first. Sorted by operand, this is the
        reverse of the reference's order. Example: if row 3 is `%1 * %1` and row 5 is `%4 + %1`, the list has row 3's
        two contributions to %1, then row 5's to %1 and %4. So the gradient of %1 has three terms: one from row 5, then
        those of the left and the right operand of row 3.
        """
        rows, loss, code = self.rows, self.tape.loss, self.code
        targets = np.stack(self.operands[::-1], axis=1)[: loss + 1].ravel()
        is_needed = np.append((code >= sums.COMPUTED) | (code == sums.PARAMETER), False)  # the last entry is for NONE
        listed = np.flatnonzero(is_needed.take(targets))
        targets, consumers, is_left = targets.take(listed), listed >> 1, (listed & 1).astype(bool)
        passes_on = np.zeros(rows, bool)
        for kind in self.kinds:
            passes_on[kind.rows] = all(expr == G for expr in kind.contributions)
        is_alias = passes_on.take(consumers) & (code.take(targets) != sums.PARAMETER)
        is_alias &= (np.bincount(targets, minlength=rows) == 1).take(targets)
        # Chains are neighbours among the left operands.
        aliases = np.concatenate([np.flatnonzero(is_alias & ~is_left), np.flatnonzero(is_alias & is_left)])
        source = np.arange(rows, dtype=np.int32)
        aliased = targets.take(aliases)
        source[aliased] = consumers.take(aliases)
        source = jump_pointers(source, aliased)
        gradient = np.where(source == loss, self.one, 2 * rows - source)
        terms = np.flatnonzero(~is_alias)
        terms = terms[np.argsort(targets.take(terms), kind="stable")[::-1]]
        return listed.take(terms) ^ 1, targets.take(terms), gradient

    def _term(self, expr: Expr, k: Optional[float], rows: Ints) -> tuple[int, list[Ints]]:
        """The number of a term's template, and for each slot, the nodes of these rows. Adds costly coefficients."""
        coefficient = _costly_coefficient(expr)
        if coefficient is None or not len(rows):
            return self._filled(expr, k, rows)
        product, (_, gradients) = self._filled(A * G, None, rows)
        number, operands = self._filled(coefficient, k, rows)
        at, tuples = distinct(*operands)
        slots = np.full((len(SLOTS), len(at)), NONE, np.int32)
        slots[: len(operands)] = [nodes[at] for nodes in operands]
        self.coefficients.append((number, slots))
        first, self.nodes = self.nodes, self.nodes + len(at)
        return product, [first + tuples, gradients]

    def _filled(self, expr: Expr, k: Optional[float], rows: Ints) -> tuple[int, list[Ints]]:
        """The number of an expression's template; and for each leaf, which becomes a slot, the nodes of these rows."""
        operands = [leaf for leaf in dict.fromkeys(leaves(expr)) if leaf != K]
        leaf_to: dict[Leaf, Expr] = dict(zip(operands, SLOTS))
        if k is not None:
            leaf_to[K] = Literal(k)
        number = self.templates.setdefault(_folded(substitute(expr, leaf_to)), len(self.templates))
        return number, [self.columns[leaf].take(rows) for leaf in operands]


def _costly_coefficient(expr: Expr) -> Optional[Expr]:
    """The factor of a contribution, if it takes a call or a division; else None."""
    if isinstance(expr, Apply) and expr.primitive == "mul" and expr.operands[1] == G:
        return None if is_cheap(expr.operands[0]) else expr.operands[0]
    return None


def _folded(expr: Expr) -> Expr:
    """Compute differences of two numbers in an expression, such as the exponent of a power's derivative."""
    if not isinstance(expr, Apply):
        return expr
    operands = tuple(map(_folded, expr.operands))
    numbers = [operand.number for operand in operands if isinstance(operand, Literal)]
    if expr.primitive == "sub" and len(numbers) == 2:
        return Literal(numbers[0] - numbers[1])
    return Apply(expr.primitive, operands)
