"""How near a batch comes to the processor's peak: `python -m tests.engines.roofline --workload mnist --batch 1000`.

The floor of a step is its work over the peak. The work is every multiplication, addition and so on of the recovered
loops, without padding. The peak is what a loop of independent multiplications and additions reaches in registers,
compiled by the engine's compiler. Products and sums are separate, as strict order demands, so the peak counts both.
The best tile is what the fastest product of two matrices reaches, of several shapes that fit the registers, with 64
terms whose weights stay in the first-level cache. The bytes are those of parameters and gradients that one turn reads
and writes, divided by the rows that share them.

Peak, tiles and steps take turns in blocks. The table has the best peak and tile, and the median step.
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
TILES = ((4, 6), (5, 5), (3, 7), (6, 4), (8, 3), (2, 12), (4, 5), (4, 4), (2, 4))
"""Rows and vectors of tiles. Those with too many sums for the registers spill, and lose."""
TERMS, REPEATS = 64, 2000
"""Terms of a tile, and tiles of one measurement."""


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


def tile_source(width, rows, vectors):
    """C of `void tileRxV(double *y)`: sums of `rows` by `vectors`, each over TERMS products, REPEATS times."""
    sums = [(row, vector) for row in range(rows) for vector in range(vectors)]
    lines = [
        f"void tile{rows}x{vectors}(double *y) {{",
        f"    const v *w = (v *)y; const double *x = y + {TERMS * vectors * width};",
        f"    for (long n = 0; n < {REPEATS}; n++) {{",
        f"        v {', '.join(f's{r}_{c} = {{0}}' for r, c in sums)};",
        f"        for (long t = 0; t < {TERMS}; t++) {{",
        *(f"            const v w{c} = w[{vectors} * t + {c}];" for c in range(vectors)),
        *(f"            const v x{r} = (v){{0}} + x[{r * TERMS} + t];" for r in range(rows)),
        *(f"            s{r}_{c} += w{c} * x{r};" for r, c in sums),
        "        }",
        # As far as the compiler knows, this reads the sums and changes the numbers, so it computes every tile.
        f"        v all[] = {{{', '.join(f's{r}_{c}' for r, c in sums)}}};",
        '        __asm__ volatile("" : : "r"(all) : "memory");',
        "    }",
        "}",
    ]
    return "\n".join(lines) + "\n"


def register():
    """The constraint of a vector register in a statement of assembler."""
    return "x" if engines.kernel.toolchains.IS_X86 else "w"


def peaks_of(engine, folder):
    """Functions that measure the peak in registers and that of the best tile, in floating-point operations a second."""
    source, built = Path(folder, "peak.c"), Path(folder, "peak.so")
    width = engine.fitted.width
    source.write_text(peak_source(width) + "".join(tile_source(width, *tile) for tile in TILES))
    flags = [flag for flag in engine.flags if not flag.startswith("-std=")]
    subprocess.run([*engine.toolchain().command, *flags, "-shared", "-fPIC", source, "-o", built], check=True)
    library = ctypes.CDLL(str(built))
    # Zeros, aligned for any vector: a ctypes array alone is not.
    most = max(TERMS * (rows + width * vectors) for rows, vectors in TILES)
    room = ctypes.create_string_buffer(64 + 8 * most)

    def rate(name, count):
        start = ctypes.c_void_p(-(-ctypes.addressof(room) // 64) * 64)
        ctypes.memset(room, 0, len(room))
        function = library[name]
        function.restype = None
        before = perf_counter()
        function(start)
        return count * width / (perf_counter() - before)

    def in_registers():
        return rate("peak", 2 * CHAINS * ROUNDS)

    def in_tiles():
        return max(rate(f"tile{rows}x{vectors}", 2 * rows * vectors * TERMS * REPEATS) for rows, vectors in TILES)

    return in_registers, in_tiles


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
    print(f"{'engine':24} rows  bytes/row  peak Gflop/s  best tile  floor us  us/row  of the peak  of the tile")
    with tempfile.TemporaryDirectory() as folder:
        for engine in chosen:
            engine.check()
            trainer = prepared(engine, engine.fitted, workload)
            in_registers, in_tiles = peaks_of(engine, folder)
            peaks, tiles, steps = [], [], []
            for _ in range(args.blocks):
                peaks += [in_registers() for _ in range(20)]
                tiles += [in_tiles() for _ in range(20)]
                steps.append(seconds_per_row(trainer, args.batch, args.seconds))
            best, tile, step = max(peaks), max(tiles), statistics.median(steps)
            rows = min(args.batch, engine.fitted.rows_together(loops.inputs, loops.parameters)) if args.batch > 1 else 1
            # A turn reads the parameters, and reads and writes their gradients.
            moved = 3 * 8 * tape.parameters / rows
            print(
                f"{engine.name:24} {rows:4} {moved:10,.0f} {best / 1e9:13.1f} {tile / 1e9:10.1f}"
                f" {1e6 * count / best:9.2f} {1e6 * step:7.2f} {count / best / step:12.0%} {count / tile / step:12.0%}"
            )


if __name__ == "__main__":
    main()
