"""Tape -> Sums: write each gradient as the ordered sum of its consumers' contributions.

Only this module of the folder uses the op table. The reference runs reverse mode by *pushing*: it walks the rows from
last to first, and each row adds its contributions to its operands' gradients. Here each gradient *pulls* instead: it is
one sum over its consumers, in the reference's order of additions, last consumer first. The module builds the arrays for
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

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from zoomgrad.engines.graph import tape as tapes
from zoomgrad.engines.graph.expr import A, Apply, B, Expr, G, K, Leaf, Literal
from zoomgrad.engines.graph.ops import OPS, Op
from zoomgrad.engines.graph.tape import Tape
from zoomgrad.engines.rerolled.recover import sums
from zoomgrad.engines.rerolled.recover.sums import (
    CHUNK,
    IDENTITY,
    NONE,
    SLOTS,
    Sums,
    count_of,
    distinct,
    is_cheap,
    jump_pointers,
    leaves,
    stable_order,
    substitute,
)

if TYPE_CHECKING:
    from zoomgrad.engines.rerolled.recover.sums import Ints


def pull(tape: Tape) -> Sums:
    """Write the sums of all rows, and of all gradients up to the loss, even those that no parameter needs."""
    return _Builder(tape).build()


class _Kind(NamedTuple):
    """All rows with the same op and constant."""

    op: Op
    constant: Optional[float]
    rows: Ints


class _Contributions(NamedTuple):
    """Contributions of rows with the same op and constant to their operands at one position."""

    kind: _Kind
    position: int
    """0 for left operands, 1 for right ones."""
    consumers: Ints
    """Contribution -> the row that makes it."""
    targets: Ints
    """Contribution -> the row whose gradient receives it. Constants and inputs have no gradient."""

    @property
    def expr(self) -> Expr:
        return self.kind.op.contributions[self.position]


class _TermArrays(NamedTuple):
    """Terms as in Sums."""

    owner: Ints
    template: Ints
    slots: Ints


class _Builder:
    """Builds the arrays of Sums.

    Nodes are numbered in this order: the tape's rows, the constant 1.0, the gradients from the last row to the first,
    then coefficients.
    """

    def __init__(self, tape: Tape) -> None:
        import numpy as np

        self.np = np
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
        """Row -> the first row that computes the same value."""
        self.templates: dict[Expr, int] = {IDENTITY: 0}
        """Template -> its number."""
        self.coefficients: list[tuple[int, Ints]] = []
        """Template and slots of each batch of coefficients, in the order of their nodes."""

    def _kinds(self) -> Iterator[_Kind]:
        np, codes = self.np, tapes.codes()
        for name, op in OPS.items():
            rows = np.flatnonzero(self.code == codes[name]).astype(np.int32)
            if not op.takes_constant:
                yield _Kind(op, None, rows)
                continue
            for k in sorted(set(self.number[rows].tolist())):
                yield _Kind(op, k, rows[self.number[rows] == k])

    def _value_numbers(self) -> Ints:
        """Row -> the first row with the same value, for example of a division's reciprocal or a negation."""
        np = self.np
        value = np.arange(self.rows + 1, dtype=np.int32)
        constants = np.flatnonzero(self.code == sums.CONSTANT)
        if len(constants):
            value[constants] = _first_with_key(constants, self.number[constants].view(np.int64))
        is_constant = np.append(self.code == sums.CONSTANT, True)  # the last entry is for NONE
        left, right = self.operands
        # Skip rows with two operands that vary: duplicates are rare there, and the search is slow.
        shared = [rows[is_constant[right[rows]] | is_constant[left[rows]]] for _, _, rows in self.kinds]
        changed = True
        while changed:
            changed = False
            for rows in filter(len, shared):
                key = value[left[rows]].astype(np.int64) * (self.rows + 1) + value[right[rows]]
                first = _first_with_key(rows, key)
                changed = changed or bool((value[rows] != first).any())
                value[rows] = first
        values: Ints = value[:-1]
        return values

    def build(self) -> Sums:
        np, rows = self.np, self.rows
        count = self._forward_count()
        contributions, gradient_count, node = self._without_aliases()
        forward = int(count.sum())
        size = forward + int(gradient_count.sum())
        # Each array is made once and filled in place, with room for all coefficients, because new memory is slow.
        room = size + sum(len(one.consumers) for one in contributions if _costly_coefficient(one.expr) is not None)
        terms = _TermArrays(np.empty(room, np.int32), np.zeros(room, np.int16), np.empty((room, len(SLOTS)), np.int32))
        _fill_owners(terms.owner[:forward], 0, count)
        _fill_owners(terms.owner[forward:size], rows + 1, gradient_count[::-1])
        terms.slots[:size] = NONE
        self._forward(terms, count)
        self._backward(terms, forward, contributions, gradient_count, node)
        for number, slots in self.coefficients:
            first, size = size, size + len(slots)
            terms.template[first:size] = number
            terms.slots[first:size] = slots
        terms.owner[size - (self.nodes - 2 * rows - 1) : size] = np.arange(2 * rows + 1, self.nodes)
        terms = _TermArrays(*(column[:size] for column in terms))
        kind = np.full(self.nodes, sums.GRADIENT, np.int8)
        np.minimum(self.code, sums.VALUE, out=kind[:rows], casting="unsafe")
        kind[self.one] = sums.CONSTANT
        gradients = slice(rows + 1, 2 * rows + 1)
        kind[gradients][self.code[::-1] == sums.PARAMETER] = sums.SINK
        mirrors = np.full(self.nodes, NONE, np.int32)
        mirrors[gradients] = np.arange(rows - 1, -1, -1, dtype=np.int32)
        return Sums(
            templates=list(self.templates),
            owner=terms.owner,
            template=terms.template,
            slots=terms.slots,
            kind=kind,
            number=self.number,
            mirrors=mirrors,
            loss=int(self.value[self.tape.loss]),
            outputs=tuple(int(self.value[output]) for output in self.tape.outputs),
            inputs=self.tape.inputs,
            parameters=self.tape.parameters,
        )

    def _gradient(self, row: Any) -> Any:
        """The node of the row's gradient. row: a number or an array."""
        return 2 * self.rows - row

    def _forward_count(self) -> Ints:
        """Row -> the number of its terms. An addition has two terms, any other op has one."""
        np = self.np
        by_code = np.array([0] * len(tapes.LEAVES) + [2 if op.forward == _ADDITION else 1 for op in OPS.values()])
        count: Ints = by_code.astype(np.int8)[self.code]
        count[self.value != np.arange(self.rows, dtype=np.int32)] = 0
        return count

    def _forward(self, terms: _TermArrays, count: Ints) -> None:
        """Fill in the values' terms. count: row -> the number of its terms."""
        np, value = self.np, self.value
        start = np.cumsum(count, dtype=np.int32)
        start -= count
        left, right = self.operands
        for op, k, rows in self.kinds:
            rows = rows[count[rows] > 0]
            at = start[rows]
            if op.forward == _ADDITION:
                terms.slots[at, 0] = value[left[rows]]
                terms.slots[at + 1, 0] = value[right[rows]]
            else:
                terms.template[at], operands = self._template(op.forward, k)
                self._fill(terms.slots, at, operands, rows, self._gradient(rows))

    def _backward(
        self, terms: _TermArrays, first: int, contributions: Sequence[_Contributions], count: Ints, node: Ints
    ) -> None:
        """Fill in the gradients' terms, in the reference's order.

        first: the first of these terms. The rest is as in `_without_aliases`.
        """
        rows, loss = self.rows, self.tape.loss
        # Gradients are numbered from the last row to the first, and so are their terms.
        start = self.np.cumsum(count[::-1], dtype=self.np.int32)
        start -= count[::-1]
        start += first
        places = self._places(contributions, count, start)
        if self.code[loss] == sums.PARAMETER:
            terms.slots[start[rows - 1 - loss], 0] = self.one
        for one, at in zip(contributions, places):
            kind, expr, consumers = one.kind, one.expr, one.consumers
            gradients = node[self._gradient(consumers)]
            coefficient = _costly_coefficient(expr)
            if coefficient is None or not len(consumers):
                terms.template[at], operands = self._template(expr, kind.constant)
                self._fill(terms.slots, at, operands, consumers, gradients)
            else:
                terms.template[at], _ = self._template(_PRODUCT, None)
                terms.slots[at, 0] = self._coefficients(coefficient, kind.constant, consumers)
                terms.slots[at, 1] = gradients

    def _without_aliases(self) -> tuple[list[_Contributions], Ints, Ints]:
        """Resolve aliases.

        Returns the contributions that are terms; row -> the number of its gradient's terms; and node -> the node that
        it is an alias of, or itself.
        """
        np, rows, loss = self.np, self.rows, self.tape.loss
        contributions = list(self._contributions())
        count = count_of((one.targets for one in contributions), rows)
        node = np.arange(2 * rows + 1, dtype=np.int32)
        node[self._gradient(loss)] = self.one
        aliases = [np.array([self._gradient(loss)], np.int32)]
        for number, one in enumerate(contributions):
            if one.expr != G:
                continue
            consumers, targets = one.consumers, one.targets
            # The only contribution is one consumer's gradient, unchanged.
            is_alias = (count[targets] == 1) & (self.code[targets] != sums.PARAMETER)
            alias = self._gradient(targets[is_alias])
            node[alias] = self._gradient(consumers[is_alias])
            aliases.append(alias)
            count[targets[is_alias]] = 0
            contributions[number] = one._replace(consumers=consumers[~is_alias], targets=targets[~is_alias])
        if self.code[loss] == sums.PARAMETER:
            count[loss] = 1  # no row up to the loss reads it, so this is its only term
        return contributions, count, jump_pointers(node, np.concatenate(aliases))

    def _places(self, contributions: Sequence[_Contributions], count: Ints, start: Ints) -> list[Ints]:
        """For each batch of contributions, their places among all terms.

        count: row -> the number of its gradient's terms. start: row, counted from the last one -> its first term.

        The order within a gradient is: last consumer first; for one consumer, left operand first. So sort by target,
        then by 2 * (rows - consumer) + position. Example: of 6 rows, row 3 is `%1 * %1` and row 5 is `%4 + %1`. The
        gradient of row 1 has three terms with the keys 6 and 7 (row 3, left and right) and 3 (row 5, right). Row 5's
        contribution comes first, then the left one of row 3, then the right one. With its first term at place 20, the
        places are 21 and 22 for the batches of `*` and 20 for the batch of `+`.
        """
        np, rows = self.np, self.rows
        places = [start[rows - 1 - one.targets].astype(np.int64) for one in contributions]
        # A single term needs no order.
        several = [np.flatnonzero(count[one.targets] > 1) for one in contributions]
        targets = np.concatenate([one.targets[at] for one, at in zip(contributions, several)])
        keys = [2 * (rows - one.consumers[at]) + one.position for one, at in zip(contributions, several)]
        order = stable_order(np.concatenate(keys), 2 * rows + 2)
        order = order[stable_order(rows - 1 - targets[order], rows)]
        # These terms are all terms of gradients with several, so their places in ascending order are known.
        place = np.empty(len(order), np.int64)
        place[order] = start[0] + np.flatnonzero(np.repeat(count[::-1] > 1, count[::-1]))
        for batch, at in zip(places, several):
            batch[at], place = place[: len(at)], place[len(at) :]
        return places

    def _contributions(self) -> Iterator[_Contributions]:
        wanted = (self.code >= sums.COMPUTED) | (self.code == sums.PARAMETER)
        for kind in self.kinds:
            rows = kind.rows[kind.rows <= self.tape.loss]
            for position in range(kind.op.arity):
                targets = self.operands[position][rows]
                kept = wanted[targets]
                yield _Contributions(kind, position, rows[kept], targets[kept])

    def _coefficients(self, expr: Expr, k: Optional[float], consumers: Ints) -> Ints:
        """Add the nodes of a coefficient for these rows, one for each set of operands, and return them."""
        np = self.np
        number, operands = self._template(expr, k)
        slots = _no_slots(np, len(consumers))
        self._fill(slots, slice(None), operands, consumers, self._gradient(consumers))
        at, tuples = distinct(*slots.T)
        self.coefficients.append((number, slots[at]))
        first, self.nodes = self.nodes, self.nodes + len(at)
        nodes: Ints = first + tuples
        return nodes

    def _template(self, expr: Expr, k: Optional[float]) -> tuple[int, Sequence[Leaf]]:
        """The number of the expression's template, which has slots for leaves, and the leaf that fills each slot."""
        operands = [leaf for leaf in dict.fromkeys(leaves(expr)) if leaf != K]
        leaf_to: dict[Leaf, Expr] = dict(zip(operands, SLOTS))
        if k is not None:
            leaf_to[K] = Literal(k)
        template = _folded(substitute(expr, leaf_to))
        return self.templates.setdefault(template, len(self.templates)), operands

    def _fill(self, slots: Ints, at: Any, operands: Sequence[Leaf], rows: Ints, gradients: Ints) -> None:
        """Fill slots of the terms `at` with the nodes that these rows' operands are. gradients: those of the rows."""
        for slot, leaf in enumerate(operands):
            if leaf == G:
                slots[at, slot] = gradients
            else:
                of = {"a": self.operands[0], "b": self.operands[1]}.get(leaf.name)
                slots[at, slot] = self.value[rows if of is None else of[rows]]


_ADDITION = A + B
_PRODUCT = A * G


def _no_slots(np: Any, count: int) -> Ints:
    slots: Ints = np.full((count, len(SLOTS)), NONE, np.int32)
    return slots


def _fill_owners(owners: Ints, node: int, count: Ints) -> None:
    """Fill in the owner of each term, for nodes from `node` on with these numbers of terms. In chunks, as in `sums`."""
    import numpy as np

    at = 0
    for start in range(0, len(count), CHUNK):
        part = count[start : start + CHUNK]
        repeated = np.repeat(np.arange(node + start, node + start + len(part), dtype=np.int32), part)
        owners[at : at + len(repeated)] = repeated
        at += len(repeated)


def _first_with_key(rows: Ints, key: Ints) -> Ints:
    """For each row, the first row with the same key. Rows ascend."""
    first, tuples = distinct(key)
    first_rows: Ints = rows[first[tuples]]
    return first_rows


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
