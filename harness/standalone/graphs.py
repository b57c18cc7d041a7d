"""Workload or script -> Graph. A script runs in a separate process, and every field of its reply is checked."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engines.graph.tape import CONSTANT, INPUT, LEAVES, NONE, PARAMETER, Tape, from_rows
from engines.kernel.c_engine import CEngine
from engines.standalone.graph import Graph, Unfit, module_name
from harness import stages
from harness.machine.project import worker_command
from harness.workloads import Workload
from results.files import NotAsWritten, first_of, read_bytes
from results.printable import on_one_line

MOST_REPLY_BYTES = 1 << 30
"""Largest reply of a script. A row takes about 30 bytes."""

Row = Annotated[int, Field(ge=NONE, lt=1 << 31)]


class _Reply(BaseModel):
    """What a script's process wrote."""

    model_config = ConfigDict(strict=True, extra="forbid")

    ops: list[Annotated[str, Field(max_length=20)]]
    left: list[Row]
    right: list[Row]
    numbers: list[tuple[Row, Annotated[int, Field(ge=-(2**53), le=2**53)] | float]]
    loss: Row
    outputs: list[Row]
    inputs: Annotated[int, Field(ge=0, le=10_000_000)]
    parameters: list[float]


class _Wrong(BaseModel):
    """What it wrote instead if the script lacks something."""

    wrong: Annotated[str, Field(max_length=10_000)]


def of_workload(engine: CEngine, workload: Workload) -> Graph:
    """Graph of the workload's step, with its starting parameters. Raises Unfit if it has several."""
    if workload.varies:
        raise Unfit(
            f"{workload.name} has a graph for each length of a row, and a standalone build has one",
            "Name a script that leaves one of these graphs.",
        )
    loss, inputs, parameters, outputs = stages.trace(engine, workload)
    tape = engine.tape(loss, inputs=inputs, parameters=parameters, outputs=outputs)
    numbers = tuple(parameter.data for parameter in parameters)
    return Graph(module_name(workload.name), f"workload {workload.name}", tape, numbers)


def of_script(engine: CEngine, script: Path, environment: Mapping[str, str]) -> Graph:
    """Graph that the script leaves. environment: of its process, which must find this project. Raises Unfit."""
    shown = re.sub(r"[^\w.-]", "_", script.name, flags=re.ASCII)
    origin = f"script {shown}"
    with tempfile.TemporaryDirectory(prefix="zoomgrad-script-") as folder:
        reply = Path(folder) / "graph.json"
        command = worker_command(
            Path(sys.executable), "harness.worker.programs.record", engine.name, str(script), str(reply)
        )
        code = subprocess.run(command, env=environment, check=False).returncode  # noqa: S603  (a list)
        try:
            content = read_bytes(reply, MOST_REPLY_BYTES, follow_links=False)
        except (OSError, NotAsWritten):
            raise Unfit(
                f"{origin}: it ended with exit code {code} and left no graph",
                f"Run `zoomgrad exec --engine {engine.name} {shown}`, and let it run to its last line.",
            ) from None
    return Graph(module_name(script.stem), origin, *_checked(origin, content))


def _checked(origin: str, content: bytes) -> tuple[Tape, tuple[float, ...]]:
    """The tape and the parameters in a reply, with rows that exist, each leaf once. `checked` looks at the rest."""
    if content.startswith(b'{"wrong":'):
        try:
            wrong = _Wrong.model_validate_json(content).wrong
        except ValidationError:
            wrong = "its reply is broken"
        problem, _, remedy = wrong.partition("\n")
        raise Unfit(f"{origin}: {on_one_line(problem)}", on_one_line(remedy.strip()) or "Correct the script.")
    try:
        found = _Reply.model_validate_json(content)
    except ValidationError as error:
        raise _broken(origin, first_of(error)) from None
    rows, numbers = len(found.ops), dict(found.numbers)
    if len(found.left) != rows or len(found.right) != rows or not all(0 <= row < rows for row in numbers):
        raise _broken(origin, "rows are missing")
    leaves = [(op, numbers.get(row)) for row, op in enumerate(found.ops) if op in (LEAVES[INPUT], LEAVES[PARAMETER])]
    if len(set(leaves)) != len(leaves) or not all(type(index) is int for _, index in leaves):
        raise _broken(origin, "a leaf has two rows, or none")
    for row, op in enumerate(found.ops):
        if op == LEAVES[CONSTANT] and row in numbers:
            numbers[row] = float(numbers[row])
    rows_of_tape = zip(found.ops, found.left, found.right, map(numbers.get, range(rows)), strict=True)
    try:
        tape = from_rows(
            rows_of_tape,
            loss=found.loss,
            outputs=found.outputs,
            inputs=found.inputs,
            parameters=len(found.parameters),
        )
    except KeyError as unknown:
        raise _broken(origin, f"there is no op {unknown}") from None
    except OverflowError:
        raise _broken(origin, "an index is too large") from None
    return tape, tuple(found.parameters)


def _broken(origin: str, why: str) -> Unfit:
    return Unfit(f"{origin}: its graph is broken: {why}", "Correct the script: it must not write the build's files.")
