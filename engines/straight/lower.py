"""Tape -> Code: expand ops to primitives, and generate code for the gradients that parameters need.

The result is in static single assignment form. If several rows contribute to a gradient, it is a chain of additions in
the reference's order, not a variable that grows. So all dependencies are explicit, and back ends may inline and move
code without changing a bit. There is no dead code: the only gradients are those that a parameter needs.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

from zoomgrad.engines.graph import expr as exprs
from zoomgrad.engines.graph.expr import Apply, Expr, G, K, Literal
from zoomgrad.engines.graph.ops import OPS
from zoomgrad.engines.graph.tape import CONSTANT, INPUT, LEAVES, PARAMETER, Tape, names

NUMBER = "number"
ACCUMULATE = "accumulate"
SEED = "seed"

Instruction = tuple[Any, ...]
"""("number", double): a leaf.

(primitive, value…): an expression over earlier values.
("accumulate", index, value): add the value to the gradient of parameter `index`. Nothing reads the result.
("seed", index): set the gradient of parameter `index`, which is the loss, to 1, as `backward` does.
"""


class Code(NamedTuple):
    """The forward pass, then the backward pass.

    Values are numbered in this order: the inputs, the parameters, the results of the instructions.
    """

    inputs: int
    parameters: int
    instructions: list[Instruction]
    reads: list[int]
    """Value -> number of reads; at least KEPT if the other pass or the caller also reads it."""
    backward: int
    """Index of the first instruction of the backward pass."""
    loss: int
    outputs: tuple[int, ...]


KEPT = 1 << 30
"""Weight of a read that needs the value in the workspace: by the backward pass of a forward value, or by the caller."""


def lower(tape: Tape) -> Code:
    """Lower all rows for the forward pass, and rows between a parameter and the loss for the backward pass."""
    lowering = _Lowering(tape)
    lowering.forward()
    backward = len(lowering.instructions)
    if lowering.differentiable[tape.loss]:
        lowering.backward()
    loss, *outputs = (lowering.values[row] for row in (tape.loss, *tape.outputs))
    reads = lowering.reads
    reads[loss] += KEPT
    for output in outputs:
        reads[output] += 2  # copied to the caller at once, so it needs a name but no place in the workspace
    return Code(tape.inputs, tape.parameters, lowering.instructions, reads, backward, loss, tuple(outputs))


_IS_PARAMETER = 2


class _Lowering:
    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.instructions: list[Instruction] = []
        self.reads: list[int] = [0] * (tape.inputs + tape.parameters)
        self.values: list[int] = []
        """Row -> value."""
        self.differentiable = bytearray(len(tape) + 1)
        """Row -> whether it depends on a parameter, or is one (_IS_PARAMETER). The last byte is for NONE."""

    def forward(self) -> None:
        tape, instructions, reads, values = self.tape, self.instructions, self.reads, self.values
        index, differentiable, inputs = tape.index, self.differentiable, tape.inputs
        # Fast path: nearly all rows are sums and products of two operands, which need no walk over an expression.
        pairs = [_pair(op.forward) for op in OPS.values()]
        plain = [*[None] * len(LEAVES), *(pair[0] if pair and pair[1:] == (0, 1) else None for pair in pairs)]
        for row, (op, left, right) in enumerate(zip(tape.ops, tape.left.tolist(), tape.right.tolist())):
            primitive = plain[op]
            if primitive is not None:
                a, b = values[left], values[right]
                reads[a] += 1
                reads[b] += 1
                values.append(len(reads))
                instructions.append((primitive, a, b))
                reads.append(0)
            elif op == PARAMETER:
                values.append(inputs + index[row])
                differentiable[row] = _IS_PARAMETER
            elif op == INPUT:
                values.append(index[row])
            elif op == CONSTANT:
                values.append(self._append(NUMBER, float(tape.constants[index[row]])))
            else:
                leaves = (values[left], values[right], tape.number(row))  # a missing right operand is never read
                values.append(self._emit(OPS[names()[op]].forward, leaves, 0))
            if differentiable[left] or differentiable[right]:
                differentiable[row] = 1

    def backward(self) -> None:
        """Walk the rows in reverse. Each contributes to its left operand's gradient first, then to the right one's."""
        tape, instructions, reads, values = self.tape, self.instructions, self.reads, self.values
        ops, index, differentiable = tape.ops, tape.index, self.differentiable
        lefts, rights = columns = tape.left.tolist(), tape.right.tolist()
        gradients: list[Optional[int]] = [None] * len(tape)  # of rows other than parameters
        plans: list[list[tuple[Any, ...]]] = [[] for _ in LEAVES]
        for op in OPS.values():
            plans.append([(column, c == G, _pair(c), c) for column, c in zip(columns, op.contributions)])
        backward = len(reads)
        if ops[tape.loss] == PARAMETER:
            self._append(SEED, index[tape.loss])
            return
        gradients[tape.loss] = self._append(NUMBER, 1.0)
        for row in range(tape.loss, -1, -1):
            gradient = gradients[row]
            if gradient is None:
                continue
            for column, passes_on, pair, expr in plans[ops[row]]:
                operand = column[row]
                wanted = differentiable[operand]
                if not wanted:
                    continue
                if passes_on:  # a sum passes on its gradient unchanged
                    value = gradient
                else:
                    leaves: tuple[Any, ...] = (values[lefts[row]], values[rights[row]], None, values[row], gradient)
                    if pair is not None:
                        primitive, a, b = pair
                        a, b = leaves[a], leaves[b]
                        reads[a] += 1 if a >= backward else KEPT
                        reads[b] += 1 if b >= backward else KEPT
                        value = len(reads)
                        instructions.append((primitive, a, b))
                        reads.append(0)
                    else:
                        value = self._emit(expr, (*leaves[:2], tape.number(row), *leaves[3:]), backward)
                if wanted == _IS_PARAMETER:
                    reads[value] += 1
                    instructions.append((ACCUMULATE, index[operand], value))
                    reads.append(0)
                    continue
                earlier = gradients[operand]
                if earlier is not None:
                    reads[earlier] += 1
                    reads[value] += 1
                    value = self._append("add", earlier, value)
                gradients[operand] = value

    def _append(self, *instruction: Any) -> int:
        self.instructions.append(instruction)
        self.reads.append(0)
        return len(self.reads) - 1

    def _emit(self, expr: Expr, leaves: tuple[Any, ...], backward: int) -> int:
        """Append an expression of the op table, and return its value.

        leaves: the values of a and b, the number k itself, the values of out and g. A read of a value before
        `backward` counts as KEPT.
        """
        number = _constant(expr, leaves[2])
        if number is not None:
            return self._append(NUMBER, float(number))
        if isinstance(expr, Apply):
            operands = [self._emit(operand, leaves, backward) for operand in expr.operands]
            for operand in operands:
                self.reads[operand] += 1 if operand >= backward else KEPT
            return self._append(expr.primitive, *operands)
        value: int = leaves[exprs.LEAVES.index(expr)]
        return value


def _constant(expr: Expr, k: Any) -> Any:
    """The expression as a number, if it is constant. This computes `k - 1` with the number as given, int or float."""
    if isinstance(expr, Literal):
        return expr.number
    if isinstance(expr, Apply) and expr.primitive == "sub":
        left, right = (_constant(operand, k) for operand in expr.operands)
        return None if left is None or right is None else left - right
    return k if expr == K else None


def _pair(expr: Expr) -> Optional[tuple[str, int, int]]:
    """A primitive and the indices of its operands in `expr.LEAVES`, if it has two and both are leaves except K."""
    if not isinstance(expr, Apply) or len(expr.operands) != 2 or not {*expr.operands} <= {*exprs.LEAVES} - {K}:
        return None
    left, right = (exprs.LEAVES.index(operand) for operand in expr.operands)
    return expr.primitive, left, right
