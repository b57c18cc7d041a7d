"""Tape -> Sums: every gradient as what it pulls from its consumers.

The only module here that knows ops, and the second that differentiates: `compiled.lower` pushes contributions row by
row; this one writes, for each value, the ordered sum of what its consumers give it, a whole op at a time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from engines.graph import tape as tapes
from engines.graph.expr import A, Apply, B, Expr, G, K, Leaf, Literal
from engines.graph.ops import OPS, Op
from engines.graph.tape import Tape
from engines.rerolled.recover import sums
from engines.rerolled.recover.sums import IDENTITY, NONE, SLOTS, Sums, is_cheap, jump_pointers, leaves, substitute

if TYPE_CHECKING:
    from engines.rerolled.recover.sums import Ints


def pull(tape: Tape) -> Sums:
    """Forward over all rows; a gradient for each row above the loss, whether or not a parameter needs it."""
    return _Pull(tape).pull()


class _Kind(NamedTuple):
    """Rows of the same op and constant."""

    op: Op
    constant: Optional[float]
    rows: Ints


class _Pulls(NamedTuple):
    """What operands get from rows of one kind: those at one position whose gradient is wanted."""

    kind: _Kind
    position: int
    consumers: Ints
    targets: Ints


class _Pull:
    """Numbers nodes: the tape's rows, the constant 1.0, gradients (the last row's first), then coefficients."""

    def __init__(self, tape: Tape) -> None:
        import numpy as np

        self.np = np
        self.tape = tape
        self.rows = rows = len(tape)
        self.one = rows
        self.gradient = np.arange(2 * rows, rows, -1, dtype=np.int32)
        """Row -> node of its gradient."""
        self.nodes = 2 * rows + 1
        codes = {name: code for code, name in enumerate((*tapes.LEAVES, *OPS))}
        self.code = np.frombuffer(bytes(map(codes.__getitem__, tape.ops)), np.uint8)
        left, right = (np.frombuffer(array("i", column), np.int32) for column in (tape.left, tape.right))
        self.operands = (left, right)
        self.number = np.zeros(rows + 1)
        self.number[np.frombuffer(array("i", tape.numbers), np.int32)] = array("d", tape.numbers.values())
        self.number[self.one] = 1.0
        self.kinds = list(self._kinds(codes))
        self.value = self._values()
        """Row -> the first row that computes the same."""
        self.templates: dict[Expr, int] = {IDENTITY: 0}
        self.coefficients: list[tuple[int, Ints]] = []
        """Template and slots."""

    def _kinds(self, codes: dict[str, int]) -> Iterator[_Kind]:
        np = self.np
        for name, op in OPS.items():
            rows = np.flatnonzero(self.code == codes[name]).astype(np.int32)
            if not op.takes_constant:
                yield _Kind(op, None, rows)
                continue
            for k in np.unique(self.number[rows]).tolist():
                yield _Kind(op, k, rows[self.number[rows] == k])

    def _values(self) -> Ints:
        """Values that are computed twice alike are computed once: a division's reciprocal, a subtraction's negation."""
        np = self.np
        value = np.arange(self.rows + 1, dtype=np.int32)
        constants = np.flatnonzero(self.code == sums.CONSTANT)
        if len(constants):
            value[constants] = _first_alike(np, constants, self.number[constants].view(np.int64))
        is_constant = np.append(self.code == sums.CONSTANT, True)  # the last one is NONE's
        left, right = self.operands
        # Only rows of one operand and a constant: among the others duplicates are rare, and the search is dear.
        shared = [rows[is_constant[right[rows]] | is_constant[left[rows]]] for _, _, rows in self.kinds]
        changed = True
        while changed:
            changed = False
            for rows in filter(len, shared):
                key = value[left[rows]].astype(np.int64) * (self.rows + 1) + value[right[rows]]
                first = _first_alike(np, rows, key)
                changed = changed or bool((value[rows] != first).any())
                value[rows] = first
        values: Ints = value[:-1]
        return values

    def pull(self) -> Sums:
        np = self.np
        owners, templates, slots = zip(self._forward(), self._backward(), self._of_coefficients())
        number = np.zeros(self.nodes)
        number[: self.rows + 1] = self.number
        kind = np.full(self.nodes, sums.GRADIENT, np.int8)
        kind[: self.rows] = np.minimum(self.code, sums.VALUE)
        kind[self.one] = sums.CONSTANT
        kind[self.gradient[self.code == sums.PARAMETER]] = sums.SINK
        mirrors = np.full(self.nodes, NONE, np.int32)
        mirrors[self.gradient] = np.arange(self.rows)
        return Sums(
            templates=list(self.templates),
            owner=np.concatenate(owners),
            template=np.concatenate(templates),
            slots=np.concatenate(slots),
            kind=kind,
            number=number,
            mirrors=mirrors,
            loss=int(self.value[self.tape.loss]),
            outputs=tuple(int(self.value[output]) for output in self.tape.outputs),
            inputs=self.tape.inputs,
            parameters=self.tape.parameters,
        )

    def _forward(self) -> tuple[Ints, Ints, Ints]:
        """Owner, template and slots of the forward pass's terms; an addition has two."""
        np, value = self.np, self.value
        count = np.zeros(self.rows + 1, np.int32)
        for op, _, rows in self.kinds:
            count[rows + 1] = 2 if op.forward == _ADDITION else 1
        count[1:][value != np.arange(self.rows)] = 0
        start = np.cumsum(count, dtype=np.int32)
        owner = np.repeat(np.arange(self.rows, dtype=np.int32), count[1:])
        template = np.zeros(len(owner), np.int16)
        slots = _no_slots(np, len(owner))
        left, right = self.operands
        for op, k, rows in self.kinds:
            rows = rows[value[rows] == rows]
            at = start[rows]
            if op.forward == _ADDITION:
                slots[at, 0] = value[left[rows]]
                slots[at + 1, 0] = value[right[rows]]
            else:
                number, operands = self._template(op.forward, k)
                template[at] = number
                slots[at] = self._slots(operands, rows)
        return owner, template, slots

    def _backward(self) -> tuple[Ints, Ints, Ints]:
        """Owner, template and slots of the gradients' terms, in the reference's order."""
        np, rows, loss = self.np, self.rows, self.tape.loss
        pulls = list(self._pulls())
        count = np.zeros(rows, np.int32)
        for pull in pulls:
            count += np.bincount(pull.targets, minlength=rows)
        node = np.arange(self.nodes, dtype=np.int32)
        node[self.gradient[loss]] = self.one
        aliases = [self.gradient[[loss]]]
        template, slots, keys, owners = (
            [np.zeros(0, np.int16)],
            [_no_slots(np, 0)],
            [np.zeros(0, np.int64)],
            [aliases[0][:0]],
        )
        for (op, k, _), position, consumers, targets in pulls:
            expr = op.contributions[position]
            if expr == G:
                # A gradient that is one consumer's gradient unchanged is that one.
                alias = (count[targets] == 1) & (self.code[targets] != sums.PARAMETER)
                node[self.gradient[targets[alias]]] = self.gradient[consumers[alias]]
                aliases.append(self.gradient[targets[alias]])
                consumers, targets = consumers[~alias], targets[~alias]
            number, taken = self._contribution(expr, k, consumers)
            template.append(np.full(len(consumers), number, np.int16))
            slots.append(taken)
            owners.append(self.gradient[targets])
            # Of each gradient the last consumer's first; of one consumer the left operand's first.
            keys.append(((rows - targets.astype(np.int64)) * rows + (rows - consumers)) * 2 + position)
        if self.code[loss] == sums.PARAMETER:
            template.append(np.zeros(1, np.int16))
            slots.append(np.array([[self.one, NONE, NONE]], np.int32))
            owners.append(self.gradient[[loss]])
            keys.append(np.zeros(1, np.int64))
        node = jump_pointers(node, np.concatenate(aliases))
        node = np.append(node, np.arange(len(node), self.nodes, dtype=np.int32))  # coefficients came since
        order = np.argsort(np.concatenate(keys))
        taken = np.concatenate(slots)[order]
        return (
            np.concatenate(owners)[order],
            np.concatenate(template)[order],
            np.where(taken == NONE, NONE, node[taken]),
        )

    def _pulls(self) -> Iterator[_Pulls]:
        wanted = (self.code >= sums.COMPUTED) | (self.code == sums.PARAMETER)
        for kind in self.kinds:
            rows = kind.rows[kind.rows <= self.tape.loss]
            for position in range(kind.op.arity):
                targets = self.operands[position][rows]
                kept = wanted[targets]
                yield _Pulls(kind, position, rows[kept], targets[kept])

    def _contribution(self, expr: Expr, k: Optional[float], consumers: Ints) -> tuple[int, Ints]:
        """Template and slots of what these rows give; aliases are not yet followed."""
        coefficient = _dear_coefficient(expr)
        if coefficient is None or not len(consumers):
            number, operands = self._template(expr, k)
            return number, self._slots(operands, consumers)
        number, _ = self._template(_PRODUCT, None)
        slots = _no_slots(self.np, len(consumers))
        slots[:, 0] = self._coefficients(coefficient, k, consumers)
        slots[:, 1] = self.gradient[consumers]
        return number, slots

    def _coefficients(self, expr: Expr, k: Optional[float], consumers: Ints) -> Ints:
        """Nodes of a factor that is worth computing once."""
        np = self.np
        number, operands = self._template(expr, k)
        slots = self._slots(operands, consumers)
        distinct, inverse = np.unique(slots, axis=0, return_inverse=True)
        self.coefficients.append((number, distinct))
        first, self.nodes = self.nodes, self.nodes + len(distinct)
        nodes: Ints = first + inverse.reshape(-1)
        return nodes

    def _of_coefficients(self) -> tuple[Ints, Ints, Ints]:
        np = self.np
        counts = [len(slots) for _, slots in self.coefficients]
        owner = np.arange(self.nodes - sum(counts), self.nodes, dtype=np.int32)
        template = np.repeat(np.array([number for number, _ in self.coefficients], np.int16), counts)
        return owner, template, np.concatenate([_no_slots(np, 0), *(slots for _, slots in self.coefficients)])

    def _template(self, expr: Expr, k: Optional[float]) -> tuple[int, Sequence[Leaf]]:
        """The expression over slots as a template's number; and which leaf fills each slot."""
        operands = [leaf for leaf in dict.fromkeys(leaves(expr)) if leaf != K]
        leaf_to: dict[Leaf, Expr] = dict(zip(operands, SLOTS))
        if k is not None:
            leaf_to[K] = Literal(k)
        template = _folded(substitute(expr, leaf_to))
        return self.templates.setdefault(template, len(self.templates)), operands

    def _slots(self, operands: Sequence[Leaf], rows: Ints) -> Ints:
        """What these rows have for the leaves; gradients are the rows' own, aliases not yet followed."""
        np, value = self.np, self.value
        slots = _no_slots(np, len(rows))
        for slot, leaf in enumerate(operands):
            if leaf == G:
                slots[:, slot] = self.gradient[rows]
            else:
                of = {"a": self.operands[0], "b": self.operands[1]}.get(leaf.name)
                slots[:, slot] = value[rows if of is None else of[rows]]
        return slots


_ADDITION = A + B
_PRODUCT = A * G


def _no_slots(np: Any, count: int) -> Ints:
    slots: Ints = np.full((count, len(SLOTS)), NONE, np.int32)
    return slots


def _first_alike(np: Any, rows: Ints, key: Ints) -> Ints:
    """For each row the first with the same key; rows ascend."""
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    alike: Ints = rows[first[inverse]]
    return alike


def _dear_coefficient(expr: Expr) -> Optional[Expr]:
    """The factor of a gradient that takes a call or a division."""
    if isinstance(expr, Apply) and expr.primitive == "mul" and expr.operands[1] == G:
        return None if is_cheap(expr.operands[0]) else expr.operands[0]
    return None


def _folded(expr: Expr) -> Expr:
    """The expression with differences of two numbers computed, such as the exponent of a power's derivative."""
    if not isinstance(expr, Apply):
        return expr
    operands = tuple(map(_folded, expr.operands))
    numbers = [operand.number for operand in operands if isinstance(operand, Literal)]
    if expr.primitive == "sub" and len(numbers) == 2:
        return Literal(numbers[0] - numbers[1])
    return Apply(expr.primitive, operands)
