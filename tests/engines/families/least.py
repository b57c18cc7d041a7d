"""Estimate libm's share of a step of microgpt: `python -m tests.engines.families.libm`.

It counts the calls in the tapes, with a second `pow` in the backward pass of each power, and times each function alone.
Recovered loops in vectors leave most powers out: see `powers.h`.
"""

from __future__ import annotations

from array import array
from collections import Counter
from time import perf_counter

import cffi

import engines
from engines.graph.tape import names
from engines.kernel import building, toolchains
from harness import workloads

STEPS, COUNT, ROUNDS = 1000, 1000, 300
SOURCE = """
double exp(double), log(double), pow(double, double);
void call_exp(double *x, long long n) { for (long long i = 0; i < n; i++) x[n + i] = exp(x[i] - 2.0); }
void call_log(double *x, long long n) { for (long long i = 0; i < n; i++) x[n + i] = log(x[i]); }
void call_pow(double *x, long long n) { for (long long i = 0; i < n; i++) x[n + i] = pow(x[i], -1.5); }
"""


def calls() -> Counter[str]:
    """Calls of each function in the steps on the first names."""
    workload, engine, found = workloads.load("microgpt"), engines.load("tcc"), Counter[str]()
    rows = Counter(len(workload.row(step)) for step in range(STEPS))
    for shape in workload.shapes():
        row = workload.row(shape.rows[0])
        model, inputs = workload.model(engine.nn), [engine.Value(x) for x in row]
        outputs = workload.outputs(model, inputs)
        loss = workload.loss(model, inputs, outputs)
        tape = engine.tape(loss, inputs=inputs, parameters=model.parameters(), outputs=outputs)
        # Loops compute equal powers once, such as those of a softmax's divisions.
        ops = Counter(op for op, _ in {(names()[code], left) for code, left in zip(tape.ops, tape.left)})
        for function, per_row in (("exp", ops["exp"]), ("log", ops["log"]), ("pow", 2 * ops["**"])):
            found[function] += per_row * rows[len(row)]
    return found


def nanoseconds() -> dict[str, float]:
    """Of one call, the best of many rounds."""
    ffi, best = cffi.FFI(), {}
    ffi.cdef("".join(f"void call_{name}(double *x, long long n);" for name in ("exp", "log", "pow")))
    flags = (*toolchains.STRICT, "-O2")
    with building.build(toolchains.find("gcc"), [SOURCE], flags) as built, building.loading():
        lib = ffi.dlopen(str(built.path))
    numbers = array("d", [0.01 + 4 * i / COUNT for i in range(COUNT)] * 2)
    x = ffi.from_buffer("double[]", numbers)
    for name in ("exp", "log", "pow"):
        best[name] = 1.0
        for _ in range(ROUNDS):
            start = perf_counter()
            getattr(lib, f"call_{name}")(x, COUNT)
            best[name] = min(best[name], (perf_counter() - start) / COUNT)
    return {name: seconds * 1e9 for name, seconds in best.items()}


def main() -> None:
    """Print a row for each function."""
    each = nanoseconds()
    for name, count in calls().items():
        per_step = count / STEPS
        print(
            f"{name}: {per_step:6.1f} calls per step, {each[name]:5.1f} ns each, {per_step * each[name] / 1e3:5.2f} µs"
        )


if __name__ == "__main__":
    main()
