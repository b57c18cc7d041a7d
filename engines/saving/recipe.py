"""Program -> its recipe, which pickle stores: the engine's name, the tape, the numbers. Loading compiles again.

The bits are the same, because the tape is. Machine code is never in a pickle. Loading a pickle can run code, so load
only pickles that you trust. Loading a file of parameters runs no code.
"""

from __future__ import annotations

from array import array
from dataclasses import replace
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
    left, right, index = (array("i", column) for column in (tape.left, tape.right, tape.index))
    stored = replace(tape, ops=bytes(tape.ops), left=left, right=right, index=index, constants=tuple(tape.constants))
    return rebuild, (engine, names(), stored, program.state())


def rebuild(engine: str, ops: tuple[str, ...], tape: Tape, state: Any) -> Program:
    """Compile the Program again, with the numbers that it had.

    ops: the table that the tape's codes refer to. Raises UnknownName and Unavailable if the engine does not exist or
    can't run here, the errors of `compile`, and BrokenTape for a pickle of another version, or that was changed.
    """
    import engines  # the package that discovers this one

    if ops != names():
        raise check.BrokenTape("another version of zoomgrad made the pickle\n  Load it with that version.")
    check.check(tape)
    if (len(state[0]), len(state[1]), len(state[2])) != (tape.inputs, tape.parameters, tape.parameters):
        raise check.BrokenTape("the numbers are not as many as the tape's inputs and parameters")
    chosen: Any = engines.load(engine)
    if not hasattr(chosen, "compile_tape"):
        raise Unavailable(f"{engine} compiles no graphs", "Choose an engine that has `compile`.")
    chosen.check()
    program: Program = chosen.compile_tape(tape, *state[:2])
    program.set_state(state)
    return program
