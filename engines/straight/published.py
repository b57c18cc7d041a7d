"""Tape -> C as in the blog post: two global arrays, and one assignment for each node and each adjoint.

Method: "Compiling ML models to C for fun", section "Let's write a compiler". Row n of the tape is `data[n]` and
`grad[n]`, so `%7 = * %3 %5` becomes

    data[7] = data[3] * data[5];        in the forward pass
    grad[3] += data[5] * grad[7];       in the backward pass, which walks the rows in reverse
    grad[5] += data[3] * grad[7];

Each pass is one function, and no node or adjoint is optimised away. This is the baseline for every later form; `-whole`
isolates the effect of splitting. The published functions take no buffers; `published.c` wraps them as a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator

from zoomgrad.engines.graph.expr import C, Expr, number
from zoomgrad.engines.graph.ops import LIBM, OPS
from zoomgrad.engines.graph.tape import CONSTANT, INPUT, LEAVES, PARAMETER, Tape
from zoomgrad.engines.kernel.c_text import Source, libm, table
from zoomgrad.engines.kernel.c_tree import Comment, Function, Include, Item, Text, defines, unit


def published_source(tape: Tape) -> Source:
    """The published functions and a kernel's interface to them, in one translation unit."""
    inputs, parameters = _rows_of(tape, INPUT, tape.inputs), _rows_of(tape, PARAMETER, tape.parameters)
    size = max(len(tape), *(row + 1 for row in parameters), 1)
    # An unused input has no row.
    set_input = [f"data[{row}] = x[{index}];" for index, row in enumerate(inputs) if row < len(tape)]
    update = [f"data[{row}] -= rate * grad[{row}] / batch;" for row in parameters]
    items: list[Item] = [
        Comment("A Value graph as first published: row n of the tape is data[n], and its gradient is grad[n]."),
        Include("kernel/kernel.h"),
        defines(INPUTS=tape.inputs, PARAMETERS=tape.parameters, OUTPUTS=len(tape.outputs), LOSS=tape.loss),
        libm(LIBM),
        Text([f"double data[{size}];", f"double grad[{size}];"]),
        Function("void", "published_set_input", ("const double *x",), set_input),
        Function("void", "published_forward", (), [Text(list(_forward(tape)))]),
        Function("void", "published_backward", (), [Text(list(_backward(tape)))]),
        Function("void", "published_update", ("double rate", "double batch"), update),
        Comment("Indices of parameters and outputs in data[] and grad[]."),
        Text([*table("parameter_rows", parameters, "int"), *table("output_rows", tape.outputs, "int")]),
        *map(Include, ("kernel/rows.h", "kernel/training.h", "straight/published.c", "kernel/train.c")),
    ]
    return Source([unit(items)], workspace=0)


def _forward(tape: Tape) -> Iterator[str]:
    """One assignment for each node, including constants. Inputs and parameters are set elsewhere."""
    assignments = [f"data[{{out}}] = {spelled(op.forward)};" for op in OPS.values()]
    for row, (op, left, right) in enumerate(zip(tape.ops, tape.left, tape.right)):
        if op >= len(LEAVES):
            yield assignments[op - len(LEAVES)].format(a=left, b=right, out=row, k=_constant(tape, row))
        elif op == CONSTANT:
            yield f"data[{row}] = {_constant(tape, row)};"


def _backward(tape: Tape) -> Iterator[str]:
    """Zero all gradients, then one sum for each adjoint in the reference's order. Inputs and constants have none."""
    ops = tape.ops
    sums: list[list[str]] = [[] for _ in LEAVES]
    for op in OPS.values():
        sums.append([f"grad[{{{name}}}] += {spelled(expr)};" for name, expr in zip("ab", op.contributions)])
    yield from (f"grad[{row}] = 0.0;" for row in range(tape.loss) if ops[row] >= len(LEAVES))
    if ops[tape.loss] not in (INPUT, CONSTANT):
        yield f"grad[{tape.loss}] = 1.0;"
    # Only outputs need rows beyond the loss.
    for row in range(tape.loss, -1, -1):
        operands = (tape.left[row], tape.right[row])
        for operand, line in zip(operands, sums[ops[row]]):
            if ops[operand] not in (INPUT, CONSTANT):
                yield line.format(a=operands[0], b=operands[1], out=row, k=_constant(tape, row))


def spelled(expr: Expr) -> str:
    """A template over the rows of both operands, the row of the result, and the constant."""
    leaves = {"a": "data[{a}]", "b": "data[{b}]", "out": "data[{out}]", "g": "grad[{out}]", "k": "{k}"}
    return C.spell(expr, leaves)[0]


def _constant(tape: Tape, row: int) -> str:
    constant = tape.number(row)
    return "" if constant is None else number(constant)[0]


def _rows_of(tape: Tape, kind: int, count: int) -> list[int]:
    """The row of each leaf of a kind. Leaves that the graph does not use get rows after the tape's."""
    there = {tape.index[row]: row for row in tape.rows_of(kind)}
    absent = iter(range(len(tape), len(tape) + count))
    return [there[index] if index in there else next(absent) for index in range(count)]
