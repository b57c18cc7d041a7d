"""Code -> C: both passes as straight-line functions over the caller's buffers, in one translation unit or several.

The text includes no headers and declares the libm functions that it calls, so a C compiler needs no search path.

    kernel.h                   the interface
    forward_0 ... backward_9   pieces of the passes; some may be in other units
    forward, backward          call the pieces
    turn.c, train.c            training
"""

from __future__ import annotations

from zoomgrad.engines.compiled.machine import CORES
from zoomgrad.engines.graph.expr import C
from zoomgrad.engines.graph.ops import LIBM
from zoomgrad.engines.kernel.c_text import BUFFERS, PIECE, Source, libm
from zoomgrad.engines.kernel.c_tree import Comment, Function, Include, Item, Text, defines, unit
from zoomgrad.engines.options import Options
from zoomgrad.engines.straight.lower import Code
from zoomgrad.engines.straight.pieces import Form, Language, cut

FORWARD, BACKWARD = (tuple(BUFFERS[buffer] for buffer in ("x", "p", "w", last)) for last in "yq")
"""Parameters of a pass and of each of its pieces."""

LANGUAGE = Language(C, local="const double %s = %s;", store="%s = %s;", accumulate="q[%d] += %s;")

FORMS = {"tcc": Form(piece=400), "gcc": Form(piece=100, units=CORES), "clang": Form(piece=400, units=CORES)}
"""Sizes from docs/results.md. gcc and Clang are slow enough that one translation unit for each core pays off."""


def form_of(options: Options) -> Form:
    """The form of an engine's C. Engines of recovered loops use it for graphs without loops."""
    if isinstance(options.form, Form):
        return options.form
    form = FORMS[options.compiler]
    return form._replace(piece=0, units=1) if options.whole else form


def c_source(code: Code, form: Form) -> Source:
    """The C of both passes and of training."""
    pieces = cut(code, LANGUAGE, form)
    functions = [
        *(Function(PIECE, name, FORWARD, [Text(lines)]) for name, lines in pieces.forward.items()),
        *(Function(PIECE, name, BACKWARD, [Text(lines)]) for name, lines in pieces.backward.items()),
    ]
    # Units of about equal size, in order.
    size = max(1, -(-len(functions) // form.units))
    first, *others = [functions[start : start + size] for start in range(0, len(functions), size)] or [[]]

    counts = f"{code.inputs} inputs, {code.parameters} parameters, {len(code.outputs)} outputs"
    about = Comment(f"A Value graph as straight-line C: {counts}, a workspace of {pieces.workspace} doubles.")
    declared = libm(LIBM)
    prototypes = [f"{function.signature};" for functions in others for function in functions]
    elsewhere: list[Item] = [Comment("Pieces in other translation units."), Text(prototypes)]
    forward = [f"{name}(x, p, w, y);" for name in pieces.forward]
    items: list[Item] = [
        about,
        Include("kernel/kernel.h"),
        defines(INPUTS=code.inputs, PARAMETERS=code.parameters),
        declared,
        *(elsewhere if others else []),
        *first,
        Function("double", "forward", FORWARD, [*forward, f"return {pieces.loss};"]),
        Include("kernel/rows.h"),
        Function("void", "backward", BACKWARD, [f"{name}(x, p, w, q);" for name in pieces.backward]),
        *map(Include, ("kernel/training.h", "straight/turn.c", "kernel/train.c")),
    ]
    other_units = [unit([about, declared, *functions]) for functions in others]
    return Source([unit(items), *other_units], pieces.workspace)
