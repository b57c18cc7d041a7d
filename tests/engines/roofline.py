"""How near a batch comes to the processor's peak: `python -m tests.engines.roofline --workload mnist --batch 1000`.

The floor of a step is its work over the peak. The work is every multiplication, addition and so on of the recovered
loops, without padding. The peak is what a loop of independent multiplications and additions reaches in registers,
compiled by the engine's compiler. Products and sums are separate, as strict order demands, so the peak counts both.
The bytes are those of parameters and gradients that one turn reads and writes, divided by the rows that share them.

Peak and steps take turns in blocks. The table has the best peak and the median step.
"""

import argparse
import ctypes
import dataclasses
import math
import statistics
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter

import engines
import engines.kernel.toolchains
from engines.graph.expr import Apply
from engines.kernel.engine import Clock
from engines.rerolled.engine import reroll
from harness import workloads
from tests.engines.tiles import prepared, seconds_per_row

CHAINS, ROUNDS = 12, 1_000_000
"""Independent sums: enough to hide the latency of an addition. Rounds of one measurement."""


def peak_source(width):
    """C of `void peak(double *y)`: CHAINS sums of `width` numbers, each plus a fresh product, ROUNDS times."""
    chains = range(CHAINS)
    lines = [
        f"typedef double v __attribute__((vector_size({8 * width})));",
        "void peak(double *y) {",
        f"    v a = *(v *)y, b = *(v *)y, {', '.join(f's{n} = *(v *)y' for n in chains)};",
        f"    for (long n = 0; n < {ROUNDS}; n++) {{",
        # The empty statement changes its operand as far as the compiler knows, so each product is computed afresh.
        *(f'        __asm__ volatile("" : "+{register()}"(a)); s{n} += a * b;' for n in chains),
        "    }",
        f"    *(v *)y = {' + '.join(f's{n}' for n in chains)};",
        "}",
    ]
    return "\n".join(lines) + "\n"


def register():
    """The constraint of a vector register in a statement of assembler."""
    return "x" if engines.kernel.toolchains.IS_X86 else "w"


def peak_of(engine, folder):
    """A function that measures the peak, in floating-point operations a second."""
    source, built = Path(folder, "peak.c"), Path(folder, "peak.so")
    width = engine.fitted.width
    source.write_text(peak_source(width))
    flags = [flag for flag in engine.flags if not flag.startswith("-std=")]
    subprocess.run([*engine.toolchain().command, *flags, "-shared", "-fPIC", source, "-o", built], check=True)
    measure = ctypes.CDLL(str(built)).peak
    measure.restype = None
    # Aligned for any vector: a ctypes array alone is not.
    room = ctypes.create_string_buffer(64 * 3)

    def run():
        start = -(-ctypes.addressof(room) // 64) * 64
        ctypes.memset(start, 0, 8 * width)
        before = perf_counter()
        measure(ctypes.c_void_p(start))
        return 2 * CHAINS * width * ROUNDS / (perf_counter() - before)

    return run


def operations(expr):
    """Arithmetic of an expression; a libm call counts as one."""
    return 1 + sum(map(operations, expr.operands)) if isinstance(expr, Apply) else 0


def work(loops):
    """Operations of one row: each term's, and one addition for each term."""
    return sum(
        math.prod(loop.counts) * segment.terms * (operations(segment.template) + 1)
        for loop in loops.loops
        for segment in loop.segments
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", default="mnist")
    parser.add_argument("--engines", default="rerolled-gcc,rerolled-clang")
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2)
    args = parser.parse_args()
    workload = dataclasses.replace(workloads.load(args.workload), batch=args.batch)
    chosen = [engines.load(name) for name in args.engines.split(",")]
    for engine in chosen:
        if engine.form.width == 1 or engine.form.is_single or engine.form.threads > 1:
            parser.error(f"{engine.name}: the peak is that of doubles in vectors, on one thread")
    tape, _, _ = chosen[0]._record(Clock(), workload, workload.row(0))
    loops = reroll(tape)
    count = work(loops)
    print(f"{args.workload}, batch {args.batch}: {count:,} operations a row")
    print(f"{'engine':24} rows  bytes/row  peak Gflop/s  floor us  us/row  of the peak")
    with tempfile.TemporaryDirectory() as folder:
        for engine in chosen:
            engine.check()
            trainer, peak = prepared(engine, engine.fitted, workload), peak_of(engine, folder)
            peaks, steps = [], []
            for _ in range(args.blocks):
                peaks += [peak() for _ in range(20)]
                steps.append(seconds_per_row(trainer, args.batch, args.seconds))
            best, step = max(peaks), statistics.median(steps)
            rows = min(args.batch, engine.fitted.rows_together(loops.inputs)) if args.batch > 1 else 1
            # A turn reads the parameters, and reads and writes their gradients.
            moved = 3 * 8 * tape.parameters / rows
            print(
                f"{engine.name:24} {rows:4} {moved:10,.0f} {best / 1e9:13.1f} {1e6 * count / best:9.2f}"
                f" {1e6 * step:7.2f} {count / best / step:11.0%}"
            )


if __name__ == "__main__":
    main()
