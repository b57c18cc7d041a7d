"""Program -> its recipe, which pickle stores: the engine's name, the tape, the numbers. Loading compiles again.

The bits are the same, because the tape is. Machine code is never in a pickle. Loading a pickle can run code, so load
only pickles that you trust. Loading a file of parameters runs no code.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

from engines.api import Unavailable
from engines.graph import check
from engines.graph.tape import Tape, names

if TYPE_CHECKING:
    from engines.kernel.program import Program


class Recipe(NamedTuple):
    """What compiles a Program again."""

    engine: str
    tape: Tape


def reduced(program: Program) -> tuple[Any, ...]:
    """What `Program.__reduce__` returns. Raises TypeError for a Program that was not compiled from a user's graph."""
    if program.recipe is None:
        raise TypeError(
            "this Program can't be pickled: it was not made by `compile`\n  Compile the graph with `engine.compile`."
        )
    engine, tape = program.recipe
    columns = (bytes(tape.ops), *(array("i", column) for column in (tape.left, tape.right, tape.index)))
    rest = (tuple(tape.constants), tape.loss, tape.outputs, tape.inputs, tape.parameters)
    # The names decode the ops where the table has another order.
    return rebuild, (engine, names(), columns, rest, program.state())


def rebuild(engine: str, ops: tuple[str, ...], columns: Any, rest: Any, state: Any) -> Program:
    """Compile the Program again, with the numbers that it had.

    Raises UnknownName and Unavailable if the engine does not exist or can't run here, the errors of `compile`, and
    BrokenTape for a pickle that was changed.
    """
    import engines  # the package that discovers this one

    _check_types(engine, ops, columns, rest, state)
    known = names()
    if not set(ops) <= set(known):
        raise check.BrokenTape(f"the ops {', '.join(sorted(set(ops) - set(known)))} do not exist in this version")
    codes = bytes(known.index(op) for op in ops)
    tape = check.check(Tape(columns[0].translate(codes.ljust(256, b"\xff")), *columns[1:], *rest))
    if (len(state[0]), len(state[1]), len(state[2])) != (tape.inputs, tape.parameters, tape.parameters):
        raise check.BrokenTape("the numbers are not as many as the tape's inputs and parameters")
    found: Any = engines.load(engine)
    if not hasattr(found, "compile_tape"):
        raise Unavailable(f"{engine} compiles no graphs", "Choose an engine that has `compile`.")
    found.check()
    program: Program = found.compile_tape(tape, *state[:2])
    program.set_state(state)
    return program


def _check_types(engine: Any, ops: Any, columns: Any, rest: Any, state: Any) -> None:
    """Raise BrokenTape unless each part has the type that `reduced` gives it, which later stages rely on."""
    try:
        codes, *indices = columns
        constants, loss, outputs, inputs, parameters = rest
        *buffers, taken = state
        right = (
            type(engine) is str
            and type(ops) is tuple
            and len(ops) < 256
            and all(type(op) is str for op in ops)
            and type(codes) is bytes
            and [(type(column), column.typecode) for column in indices] == [(array, "i")] * 3
            and type(constants) is tuple
            and all(type(constant) in (int, float) for constant in constants)
            and all(type(number) is int for number in (loss, inputs, parameters, taken, *outputs))
            and type(outputs) is tuple
            and [(type(buffer), buffer.typecode) for buffer in buffers] == [(array, "d")] * 3
        )
    except (TypeError, ValueError, AttributeError):
        right = False
    if not right:
        raise check.BrokenTape("the pickle was changed: a part has another type")
