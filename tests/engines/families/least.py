"""Estimate the least that a step of microgpt takes: `python -m tests.engines.families.least`.

It counts what a step with the interpreter's bits needs: a product and an addition for each multiplication in the tape,
and for each of its derivatives, and libm's calls, with a second `pow` for each power's derivative. It times each alone:
products in the widest vectors, in the first cache, without a fused multiply-add. Recovered loops in vectors leave most
powers out: see `powers.h`. `tests.engines.families.parts` measures the update, which is needed too.
"""

from __future__ import annotations

from array import array
from collections import Counter
from time import perf_counter

import cffi

import engines
from engines.graph.tape import INPUT, Tape, names
from engines.kernel import building, toolchains
from engines.kernel.buffers import at_cache_line
from harness import workloads

STEPS, COUNT, TURNS, ROUNDS = 1000, 1024, 256, 100
SOURCE = """
#ifdef __AVX512F__
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
typedef double vector __attribute__((vector_size(8 * LANES), aligned(8)));
void time_products(double *x, long long n, long long turns)
{
    vector a = {0.0}, b = a, c = a, d = a, e = a, f = a, g = a, h = a; /* each waits for its own addition only */
    const vector factor = *(vector *)x;
    for (long long turn = 0; turn < turns; turn++)
        for (long long i = 0; i < n; i += 8 * LANES) {
            const vector *at = (const vector *)(x + i);
            a += at[0] * factor, b += at[1] * factor, c += at[2] * factor, d += at[3] * factor;
            e += at[4] * factor, f += at[5] * factor, g += at[6] * factor, h += at[7] * factor;
        }
    *(vector *)(x + n) = a + b + c + d + e + f + g + h;
}
double exp(double), log(double), pow(double, double);
#define TIME(name, call)                                                                                               \
    void time_##name(double *x, long long n, long long turns)                                                          \
    {                                                                                                                  \
        for (long long turn = 0; turn < turns; turn++)                                                                 \
            for (long long i = 0; i < n; i++)                                                                          \
                x[n + i] = call;                                                                                       \
    }
TIME(exp, exp(x[i] - 2.0))
TIME(log, log(x[i]))
TIME(pow, pow(x[i], -1.5))
"""
TIMED = ("products", "exp", "log", "pow")


def needs(tape: Tape) -> Counter[str]:
    """Of a step on this tape."""
    of = [names()[code] for code in tape.ops]
    found = Counter[str]()
    for left, right, op in zip(tape.left, tape.right, of):
        if op == "*":
            found["products"] += 1 + sum(tape.ops[row] != INPUT for row in (left, right))
    # Loops compute equal powers once, such as those of a softmax's divisions.
    ops = Counter(op for op, _ in set(zip(of, tape.left)))
    return found + Counter({"exp": ops["exp"], "log": ops["log"], "pow": 2 * ops["**"]})


def per_step() -> dict[str, float]:
    """How often each is needed, the mean over the steps on the first names."""
    workload, engine, found = workloads.load("microgpt"), engines.load("tcc"), Counter[str]()
    rows = Counter(len(workload.row(step)) for step in range(STEPS))
    for shape in workload.shapes():
        row = workload.row(shape.rows[0])
        model, inputs = workload.model(engine.nn), [engine.Value(x) for x in row]
        outputs = workload.outputs(model, inputs)
        loss = workload.loss(model, inputs, outputs)
        tape = engine.tape(loss, inputs=inputs, parameters=model.parameters(), outputs=outputs)
        for name, count in needs(tape).items():
            found[name] += count * rows[len(row)]
    return {name: found[name] / STEPS for name in TIMED}


def nanoseconds() -> dict[str, float]:
    """Of one, the best of many rounds."""
    ffi, best = cffi.FFI(), {}
    ffi.cdef("".join(f"void time_{name}(double *x, long long n, long long turns);" for name in TIMED))
    flags = (*toolchains.STRICT, "-O3", *toolchains.NATIVE, "-mprefer-vector-width=512")
    with building.build(toolchains.find("gcc"), [SOURCE], flags) as built, building.loading():
        lib = ffi.dlopen(str(built.path))
    numbers = at_cache_line(array("d", [0.01 + 4 * i / COUNT for i in range(COUNT)] * 2))
    x = ffi.from_buffer("double[]", numbers)
    for name in TIMED:
        best[name] = 1.0
        for _ in range(ROUNDS):
            start = perf_counter()
            getattr(lib, f"time_{name}")(x, COUNT, TURNS)
            best[name] = min(best[name], (perf_counter() - start) / COUNT / TURNS)
    return {name: seconds * 1e9 for name, seconds in best.items()}


def main() -> None:
    """Print a row for each."""
    each = nanoseconds()
    for name, count in per_step().items():
        print(f"{name:8} {count:9,.1f} per step, {each[name]:6.3f} ns each, {count * each[name] / 1e3:5.2f} µs")


if __name__ == "__main__":
    main()
