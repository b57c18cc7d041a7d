"""micrograd in RPython, a subset of Python 2.7.

`forward` makes a Value of each row of a tape, as a program with micrograd does in every step, and `backward` orders the
Values by a walk with an explicit stack. `rpython.py` adds the table of ops, as `function` and `contribute`.
"""

from rpython.rlib import jit
from rpython.rlib.entrypoint import entrypoint_highlevel
from rpython.rtyper.lltypesystem import lltype, rffi
from rpython.translator.tool.cbuild import ExternalCompilationInfo

DOUBLE, LONG, DOUBLES, LONGS = rffi.DOUBLE, lltype.Signed, rffi.DOUBLEP, rffi.SIGNEDP
LIBM = ExternalCompilationInfo(libraries=["m"], compile_extra=["-ffp-contract=off"])
INPUT, PARAMETER, CONSTANT = range(3)


def libm(name, arity):
    """A function of libm: RPython's own have other bits, or raise exceptions."""
    return rffi.llexternal(name, [DOUBLE] * arity, DOUBLE, compilation_info=LIBM, releasegil=False)


class Value(object):
    """A scalar and its gradient. Its op stands for the closure `_backward`."""

    def __init__(self, data, op=CONSTANT, left=None, right=None, k=0.0):
        self.data, self.grad, self.op, self.left, self.right, self.k = data, 0.0, op, left, right, k
        self.entered = self.done = 0  # the number of the last walk that came here


class Graph(object):
    """The rows of a tape, its parameters, which live as long as a model's do, and the loss of the last step."""

    _immutable_fields_ = ["ops[*]", "left[*]", "right[*]", "index[*]", "constants[*]", "rows", "row_of_loss"]

    def __init__(self, columns, rows, constants, constant_count, row_of_loss, outputs, output_count, parameters):
        self.ops = [columns[i] for i in range(rows)]
        self.left = [columns[rows + i] for i in range(rows)]
        self.right = [columns[2 * rows + i] for i in range(rows)]
        self.index = [columns[3 * rows + i] for i in range(rows)]
        self.constants = [constants[i] for i in range(constant_count)]
        self.outputs = [outputs[i] for i in range(output_count)]
        self.rows, self.row_of_loss = rows, row_of_loss
        self.parameters = [Value(0.0) for _ in range(parameters)]
        self.loss = Value(0.0)
        self.walks = 0


class Library(object):
    pass


LIBRARY = Library()
LIBRARY.graphs = []  # of an instance, because RPython takes a global list for a constant
# RPython demands that one of several drivers is recursive, although none is.
BUILD = jit.JitDriver(greens=[], reds=["row", "x", "graph", "values"], is_recursive=True)
ORDER = jit.JitDriver(greens=[], reds=["walk", "stack", "order"])
BACKWARD = jit.JitDriver(greens=[], reds=["i", "order"])


def build(graph, x):
    """The Values of a step."""
    values = [None] * graph.rows
    row = 0
    while row < graph.rows:
        BUILD.jit_merge_point(row=row, x=x, graph=graph, values=values)
        op, index = graph.ops[row], graph.index[row]
        if op == INPUT:
            values[row] = Value(x[index])
        elif op == PARAMETER:
            values[row] = graph.parameters[index]
        elif op == CONSTANT:
            values[row] = Value(graph.constants[index])
        else:
            k = graph.constants[index] if index >= 0 else 0.0
            left = values[graph.left[row]]
            right = values[graph.right[row]] if graph.right[row] >= 0 else None
            data = function(op, left.data, right.data if right is not None else 0.0, k)
            values[row] = Value(data, op, left, right, k)
        row += 1
    return values


def topo(loss, walk):
    """The loss and all Values below it, operands first."""
    order, stack = [], [loss]
    while len(stack) > 0:
        ORDER.jit_merge_point(walk=walk, stack=stack, order=order)
        v = stack[-1]
        if v.entered == walk:  # its operands are done, or this is the second visit
            stack.pop()
            if v.done != walk:
                v.done = walk
                order.append(v)
            continue
        v.entered = walk
        if v.right is not None and v.right.done != walk:
            stack.append(v.right)
        if v.left is not None and v.left.done != walk:
            stack.append(v.left)
    return order


def walk_back(order):
    """Let every Value contribute to the gradients of its operands."""
    i = len(order) - 1
    while i >= 0:
        BACKWARD.jit_merge_point(i=i, order=order)
        v = order[i]
        left, right = v.left, v.right
        if left is not None:
            contribute(v.op, left, right, left.data, right.data if right is not None else 0.0, v.k, v.data, v.grad)
        i -= 1


@entrypoint_highlevel("main", [LONG, LONGS, LONG, DOUBLES, LONG, LONG, LONGS, LONG, LONG], "rp_new")
def new(place, columns, rows, constants, constant_count, row_of_loss, outputs, output_count, parameters):
    """Put the graph of a tape into a place."""
    graph = Graph(columns, rows, constants, constant_count, row_of_loss, outputs, output_count, parameters)
    while len(LIBRARY.graphs) <= place:
        LIBRARY.graphs.append(graph)
    LIBRARY.graphs[place] = graph


@entrypoint_highlevel("main", [LONG, DOUBLES, DOUBLES, DOUBLES], "rp_forward")
def forward(place, x, p, y):
    graph = LIBRARY.graphs[place]
    for i in range(len(graph.parameters)):
        graph.parameters[i].data = p[i]
    values = build(graph, x)
    for i in range(len(graph.outputs)):
        y[i] = values[graph.outputs[i]].data
    graph.loss = values[graph.row_of_loss]
    return graph.loss.data


@entrypoint_highlevel("main", [LONG, DOUBLES], "rp_backward")
def backward(place, q):
    graph = LIBRARY.graphs[place]
    for i in range(len(graph.parameters)):
        graph.parameters[i].grad = q[i]
    graph.walks += 1
    order = topo(graph.loss, graph.walks)
    graph.loss.grad = 1.0
    walk_back(order)
    for i in range(len(graph.parameters)):
        q[i] = graph.parameters[i].grad


@entrypoint_highlevel("main", [DOUBLES, DOUBLES, LONG, DOUBLE, DOUBLE], "rp_update")
def update(p, q, count, rate, batch):
    for i in range(count):
        p[i] -= rate * q[i] / batch
        q[i] = 0.0


def target(driver, arguments):
    return (lambda arguments: 0), None
