"""Bounds on what generating Python bytecode instead of source can gain: `python -m tests.engines.python_bytecode`.

Bytecode saves the parser's time, but costs at least that of `marshal`, which turns bytes into code objects. The only
instructions that it can save are those that store and load a value that is used more than once: source needs a local
variable for it, and bytecode can keep it on the stack. Both bounds are printed for `python-source` on a workload, with
the median of five builds. Works under every interpreter that zoomgrad supports.
"""

from __future__ import annotations

import ast
import dis
import gc
import marshal
import statistics
import sys
import time
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

import engines
from engines.straight.python_source import _functions
from harness import workloads

BUILDS = 5


def main(workload: str) -> None:
    engine = engines.load("python-source")
    code = lowered(engine, workloads.load(workload))
    gc.disable()  # engines also compile with the collector off
    builds = [build(engine, code) for _ in range(BUILDS)]
    print(f"{sys.implementation.name} {sys.version.split()[0]}, python-source on {workload}:")
    for phase in builds[0].seconds:
        print(f"  {phase:<10} {statistics.median(each.seconds[phase] for each in builds) * 1e3:8.1f} ms")
    _, stores, total = builds[0]
    print(f"  {stores:,} of {total:,} instructions store a local variable ({stores / total:.1%})")


class Build(NamedTuple):
    """Seconds by phase, the number of instructions that store a local variable, and the number of all instructions."""

    seconds: dict[str, float]
    stores: int
    total: int


def build(engine: Any, code: Any) -> Build:
    seconds = dict.fromkeys(("text", "parse", "code", "encode", "unmarshal"), 0.0)
    texts = timed(seconds, "text", lambda: _functions(engine._pieces(code)))
    names: list[str] = []
    for text in texts:
        tree = timed(seconds, "parse", ast.parse, text)
        module = timed(seconds, "code", compile, tree, "", "exec")
        timed(seconds, "unmarshal", marshal.loads, marshal.dumps(module))
        for function in module.co_consts:
            if isinstance(function, CodeType):
                found = list(dis.get_instructions(function))
                names += [instruction.opname for instruction in found]
                timed(seconds, "encode", encode, [(each.opcode, each.arg or 0) for each in found])
    return Build(seconds, sum(name.startswith("STORE_FAST") for name in names), len(names))


def lowered(engine: Any, workload: Any) -> Any:
    model = workload.model(engine.nn)
    inputs = [engine.Value(x) for x in workload.row(0)]
    outputs = workload.outputs(model, inputs)
    loss = workload.loss(model, inputs, outputs)
    return engine.lower(engine.tape(loss, inputs=inputs, parameters=model.parameters(), outputs=outputs))


def encode(instructions: list[tuple[int, int]]) -> bytearray:
    """Write two bytes per instruction, which every generator of bytecode must do at least."""
    code = bytearray()
    for opcode, argument in instructions:
        code.append(opcode)
        code.append(argument & 255)
    return code


def timed(seconds: dict[str, float], phase: str, work: Callable[..., Any], *arguments: Any) -> Any:
    start = time.perf_counter()
    result = work(*arguments)
    seconds[phase] += time.perf_counter() - start
    return result


if __name__ == "__main__":
    main(*sys.argv[1:] or ["mnist"])
