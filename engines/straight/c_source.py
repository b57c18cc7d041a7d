"""Code -> C: both passes as straight-line functions over the caller's buffers, in one translation unit or several.

The text includes no headers and declares the libm functions that it calls, so any C compiler accepts it without a
search path. Several units pay off for a compiler that is slow enough to run once on each core.

    kernel.h                   the interface
    forward_0 ... backward_9   pieces of the passes; some may be in other units
    forward, backward          call the pieces
    turn.c, train.c            training
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from operator import itemgetter

from zoomgrad.engines.compiled.machine import CORES
from zoomgrad.engines.graph.expr import C, calls
from zoomgrad.engines.graph.ops import OPS
from zoomgrad.engines.kernel.c_text import BUFFERS, PIECE, Source, libm
from zoomgrad.engines.kernel.c_tree import (
    Call,
    Comment,
    Define,
    Function,
    Include,
    Item,
    Return,
    Statement,
    Text,
    unit,
)
from zoomgrad.engines.options import Options
from zoomgrad.engines.straight.lower import Code
from zoomgrad.engines.straight.pieces import Language, Piece, cut

LANGUAGE = Language(C, local="const double %s = %s;", store="%s = %s;", accumulate="q[%d] += %s;")


@dataclass(frozen=True)
class Form:
    """The form of the C. It changes no bit of the result."""

    piece: int = 400
    """A function ends after this many primitives; 0: one function for each pass."""
    expression: int = 16
    """A value that takes more primitives than this gets a name."""
    units: int = 1
    """Maximum number of translation units."""
    trains: bool = True
    """Whether to generate the backward pass and training."""


FORMS = {"tcc": Form(piece=400), "gcc": Form(piece=100, units=CORES), "clang": Form(piece=400, units=CORES)}
"""Sizes from docs/results.md. gcc and Clang are slow enough that one translation unit for each core pays off."""


def form_of(options: Options) -> Form:
    """The form of an engine's C. Engines of recovered loops use it for graphs without loops."""
    if options.code == "lines" and options.form is not None:
        form: Form = options.form
        return form
    form = replace(FORMS[options.compiler], trains=not options.frozen)
    return replace(form, piece=0, units=1) if options.whole else form


def c_source(code: Code, form: Form) -> Source:
    """The C of both passes and of training."""
    pieces = cut(code, LANGUAGE, piece=form.piece, expression=form.expression)
    functions = [_piece(piece) for piece in (*pieces.forward, *pieces.backward)]
    first, *others = _divided(functions, form.units)

    counts = f"{code.inputs} inputs, {code.parameters} parameters, {len(code.outputs)} outputs"
    about = Comment(f"A Value graph as straight-line C: {counts}, a workspace of {pieces.workspace} doubles.")
    declared = libm(_functions(code))
    prototypes = [function.prototype for functions in others for function in functions]
    elsewhere: list[Item] = [Comment("Pieces in other translation units."), Text(prototypes)]
    items: list[Item] = [
        about,
        Include("kernel/kernel.h"),
        Define("INPUTS", code.inputs),
        Define("PARAMETERS", code.parameters),
        declared,
        *(elsewhere if others else []),
        *first,
        _pass("double", "forward", ("x", "p", "w", "y"), pieces.forward, pieces.loss),
        Include("kernel/rows.h"),
        _pass("void", "backward", ("x", "p", "w", "q"), pieces.backward) if form.trains else Define("FORWARD_ONLY", 1),
        *map(Include, ("kernel/training.h", "straight/turn.c", "kernel/train.c")),
    ]
    other_units = [unit([about, declared, *functions]) for functions in others]
    return Source([unit(items), *other_units], pieces.workspace)


def _functions(code: Code) -> set[tuple[str, int]]:
    """The libm functions that the code calls, each with its number of arguments."""
    primitives = set(map(itemgetter(0), code.instructions))
    return {call for op in OPS.values() for expr in op.exprs for call in calls(expr) if call[0] in primitives}


def _divided(functions: list[Function], units: int) -> list[list[Function]]:
    """Divide the functions, in order, into units of about equal size."""
    size = max(1, -(-len(functions) // units))
    return [functions[start : start + size] for start in range(0, len(functions), size)] or [[]]


def _piece(piece: Piece) -> Function:
    return Function(PIECE, piece.name, _parameters(piece.arguments), [Text(piece.lines)])


def _pass(result: str, name: str, arguments: tuple[str, ...], pieces: list[Piece], value: str = "") -> Function:
    """A pass, which calls its pieces. value: the expression that it returns."""
    used = {buffer for piece in pieces for buffer in piece.arguments} | set(re.findall(r"\b[xpw](?=\[)", value))
    body: list[Statement] = [Text([f"(void){buffer};" for buffer in arguments if buffer not in used])]
    body += [Call(piece.name, piece.arguments) for piece in pieces]
    if value:
        body.append(Return(value))
    return Function(result, name, _parameters(arguments), body)


def _parameters(buffers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(BUFFERS[buffer] for buffer in buffers)
