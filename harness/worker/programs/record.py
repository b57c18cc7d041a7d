"""Run a micrograd program, then write its graph as JSON.

`python -m harness.worker.programs.record ENGINE SCRIPT REPLY`. The program leaves `loss`, `inputs`, and `parameters` or
`model`; it may leave `outputs`. The harness checks all of the reply.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import engines
from engines.api import CyclicGraph
from engines.graph.tape import names as names_of_codes
from engines.kernel.engine import CompiledEngine
from harness.worker.programs.execute import run

DEEPEST = 8
"""How deep lists of Values may be nested."""


class NoGraph(Exception):
    """A name that the program lacks, or that is not what it should be. Carries the problem and the remedy."""


def record(engine: CompiledEngine, names: dict[str, Any]) -> dict[str, Any]:
    """The graph below the program's `loss` as plain lists. Raises NoGraph and the errors of `linearize`."""
    loss = names.get("loss")
    if not isinstance(loss, engine.Value):
        found = f"its `loss` is of type {type(loss).__name__}" if "loss" in names else "it leaves no `loss`"
        raise NoGraph(f"{found}\n  End the program with `loss = …`, a Value at the top level.")
    if "inputs" not in names:
        raise NoGraph("it leaves no `inputs`\n  Leave a list of the Values that hold one row, in order.")
    parameters = names.get("parameters")
    if parameters is None:
        if not callable(getattr(names.get("model"), "parameters", None)):
            raise NoGraph("it leaves neither `parameters` nor a `model`\n  Leave a list of Values, or an nn.Module.")
        parameters = names["model"].parameters()
    inputs, parameters, outputs = (
        _flat(engine, name, found)
        for name, found in (("inputs", names["inputs"]), ("parameters", parameters), ("outputs", names.get("outputs")))
    )
    tape = engine.tape(loss, inputs=inputs, parameters=parameters, outputs=outputs)
    name = names_of_codes()
    numbers = ((row, tape.number(row)) for row in range(len(tape)))
    return {
        "ops": [name[code] for code in tape.ops],
        "left": [*tape.left],
        "right": [*tape.right],
        "numbers": [(row, number) for row, number in numbers if number is not None],
        "loss": tape.loss,
        "outputs": tape.outputs,
        "inputs": tape.inputs,
        "parameters": [_number(index, p.data) for index, p in enumerate(parameters)],
    }


def _number(index: int, data: Any) -> float:
    try:
        return float(data)
    except (TypeError, ValueError, OverflowError):
        raise NoGraph(
            f"the data of parameter {index:,} is of type {type(data).__name__}\n  Leave a number there."
        ) from None


def _flat(engine: CompiledEngine, name: str, found: Any, depth: int = 0) -> list[Any]:
    """The Values in nested lists and tuples, in order."""
    if found is None:
        return []
    if isinstance(found, engine.Value):
        return [found]
    if not isinstance(found, (list, tuple)) or depth > DEEPEST:
        raise NoGraph(f"its `{name}` hold a {type(found).__name__}, not Values\n  Leave a list of Values.")
    return [value for part in found for value in _flat(engine, name, part, depth + 1)]


def main() -> None:
    """Run the script, and write its graph or what is wrong with it."""
    _, name, script, reply = sys.argv
    engine = engines.load(name)
    assert isinstance(engine, CompiledEngine)
    recorder = os.getpid()
    names = run(name, Path(script), [])
    if os.getpid() != recorder:
        return  # the script forked, and this is the copy
    try:
        found = json.dumps(record(engine, names))
    except (NoGraph, TypeError, ValueError, CyclicGraph) as wrong:
        found = json.dumps({"wrong": str(wrong)})
    Path(reply).write_text(found, encoding="ascii")


if __name__ == "__main__":
    main()
