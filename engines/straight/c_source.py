"""Code -> C: straight-line functions over the caller's buffers, and the few that go round them.

The text includes no header and needs nothing but libm, whose functions it declares, so that any C compiler takes it
without a search path. It can be cut into several translation units, for compilers that are slow enough to run side by
side.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from engines.graph.expr import INFIX, C
from engines.kernel.c_runtime import COLUMNS, TRAIN, UPDATE
from engines.kernel.c_text import Source
from engines.straight.lower import ACCUMULATE, NUMBER, Code
from engines.straight.pieces import Language, Piece, Shape, cut

LANGUAGE = Language(
    C,
    local="    const double %s = %s;",
    store="    %s = %s;",
    accumulate="    q[%d] += %s;",
)


class Storage(Enum):
    """Where values live that have a name. The published experiment tried several; the sweep compares them."""

    locals = "locals within a function, the rest in the caller's workspace"
    array = "all in the caller's workspace"
    static = "locals within a function, the rest in a static array"
    globals = "a static variable for each"


@dataclass(frozen=True)
class Form:
    """What the C looks like; nothing in it changes a bit of the result."""

    piece: int = 400
    """A function ends after so many primitives; 0: one function for each pass."""
    expression: int = 16
    """A value that takes more primitives gets a name."""
    storage: Storage = Storage.locals
    units: int = 1
    """Translation units, at most; static storage allows only one."""


PARAMETER_OF = {
    "x": "const double *restrict x",
    "p": "const double *restrict p",
    "w": "double *restrict w",
    "y": "double *restrict y",
    "q": "double *restrict q",
}
"""Buffer -> how a function declares it. They never overlap, and compilers may know."""

HEAD = """\
/* {title}
   x: {inputs} inputs   p: {parameters} parameters   w: workspace of {workspace}   y: {outputs} outputs
   q: gradients of the parameters   No two of these buffers overlap. */
"""

# Inlined into its only caller, a piece would undo the cutting, which is what keeps optimising compilers linear.
PIECE = '__attribute__((noinline, visibility("hidden"))) void'


def c_source(code: Code, form: Form, *, title: str = "A Value graph as straight-line C.", export: str = "") -> Source:
    """The C of both passes. export: what stands before each function that is called from outside."""
    storage = form.storage
    # No name of ours is one that a function's argument hides.
    language = LANGUAGE._replace(workspace=_OWN_NAMES[storage]) if storage in _OWN_NAMES else LANGUAGE
    keep_locals = storage in (Storage.locals, Storage.static)
    pieces = cut(code, language, Shape(form.piece, form.expression, keep_locals))

    head = HEAD.format(
        title=title,
        inputs=code.inputs,
        parameters=code.parameters,
        workspace=pieces.workspace,
        outputs=len(code.outputs),
    )
    functions = _functions(code)
    declared = "".join(f"double {name}({', '.join(['double'] * arity)});\n" for name, arity in functions)
    values = _own_storage(storage, pieces.workspace)
    groups = _divide([*pieces.forward, *pieces.backward], 1 if storage in _OWN_NAMES else form.units)
    units = [f"{head}\n{declared}{values}\n" + "\n".join(map(_define, group)) for group in groups]

    elsewhere = "".join(f"{_signature(piece)};\n" for group in groups[1:] for piece in group)
    units[0] += "\n".join(
        [
            "",
            elsewhere,
            _pass(f"{export}double forward", ("x", "p", "w", "y"), pieces.forward, pieces.loss),
            _pass(f"{export}void backward", ("x", "p", "w", "q"), pieces.backward),
            COLUMNS.format(inputs=code.inputs, parameters=code.parameters, export=export),
            UPDATE.format(export=export),
            TRAIN.format(export=export),
        ]
    )
    return Source(units, pieces.workspace)


_OWN_NAMES = {Storage.static: "values[%d]", Storage.globals: "w%d"}
"""Where the C keeps its values itself: what a value of the workspace is called."""


def _own_storage(storage: Storage, workspace: int) -> str:
    if storage is Storage.static and workspace:
        return f"\nstatic double values[{workspace}];\n"
    if storage is Storage.globals and workspace:
        names = [f"w{index}" for index in range(workspace)]
        lines = [", ".join(names[start : start + 16]) for start in range(0, workspace, 16)]
        return "\nstatic double " + ",\n    ".join(lines) + ";\n"
    return ""


def _functions(code: Code) -> list[tuple[str, int]]:
    """The libm functions that the code calls, with how many arguments."""
    called = {instruction[0] for instruction in code.instructions} - _NO_FUNCTION
    return sorted({(i[0], len(i) - 1) for i in code.instructions if i[0] in called}) if called else []


_NO_FUNCTION = {*INFIX, "where", NUMBER, ACCUMULATE}


def _divide(pieces: list[Piece], units: int) -> list[list[Piece]]:
    """Neighbours together, about equally many in each."""
    size = max(1, -(-len(pieces) // units))
    return [pieces[start : start + size] for start in range(0, len(pieces), size)] or [[]]


def _signature(piece: Piece) -> str:
    return f"{PIECE} {piece.name}({', '.join(PARAMETER_OF[name] for name in piece.arguments) or 'void'})"


def _define(piece: Piece) -> str:
    return f"{_signature(piece)}\n{{\n" + "\n".join(piece.lines) + "\n}\n"


def _pass(start: str, arguments: tuple[str, ...], pieces: list[Piece], result: str = "") -> str:
    """A whole pass: calls of its pieces."""
    lines = [f"    {piece.name}({', '.join(piece.arguments)});" for piece in pieces]
    used = {name for piece in pieces for name in piece.arguments} | set(re.findall(r"\b[xpw](?=\[)", result))
    unused = [f"    (void){name};" for name in arguments if name not in used]
    lines = unused + lines + ([f"    return {result};"] if result else [])
    return f"{start}({', '.join(PARAMETER_OF[name] for name in arguments)})\n{{\n" + "\n".join(lines) + "\n}\n"
