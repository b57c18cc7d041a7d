"""C over recovered loops on another architecture: vectors of two doubles, 32 registers, and another libm.

The C is cross-compiled for AArch64 with its training data inside, and runs under qemu.
"""

import shutil
import subprocess
from dataclasses import replace

import pytest

from tests.engines.graphs import REFERENCE
from zoomgrad import engines
from zoomgrad.engines.compiled.emit import emit
from zoomgrad.engines.compiled.lower import lower
from zoomgrad.engines.compiled.trace import trace
from zoomgrad.engines.kernel.c_text import table
from zoomgrad.engines.kernel.c_tree import read
from zoomgrad.engines.kernel.toolchains import STRICT
from zoomgrad.engines.rerolled.fitted import form_of
from zoomgrad.engines.rerolled.step.variants import variant_for, variants_of
from zoomgrad.harness import workloads

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"

pytestmark = [
    pytest.mark.host,
    pytest.mark.skipif(
        not (shutil.which(COMPILER) and shutil.which(EMULATOR)),
        reason=f"no {COMPILER} or {EMULATOR}: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user",
    ),
]

MAIN = """
#include <stdio.h>

int main(void)
{
    static double x[INPUTS + 1], w[WORKSPACE + 8], y[OUTPUTS + 1], q[PARAMETERS + 1], losses[STEPS];
    const struct column columns[] = {{rows, INPUTS, 1.0, 0, 0.0, 0.0, 0}};
    const struct buffers buffers = {x, p, w, y, q};
    const struct stretch stretch = {columns, 1, ROWS, 0, STEPS, BATCH, 0, rates, losses, 1, 0};
    train(&buffers, &stretch);
    for (int n = 0; n < STEPS; n++)
        printf("%a\\n", losses[n]);
    for (int n = 0; n < PARAMETERS; n++)
        printf("%a\\n", p[n]);
    return 0;
}
"""


def program(workload, options, steps):
    """Return the translation units of a program that trains, and prints its losses and parameters."""
    graph = trace(workload, workload.row(0))
    inputs, parameters = graph.numbers()
    variant = variant_for(workload.batch, variants_of(lower(graph.tape(), options, parameters)))
    source = emit(variant.code, options)
    rows = min(workload.rows, steps)
    sizes = {"INPUTS": len(inputs), "PARAMETERS": len(parameters), "OUTPUTS": len(graph.outputs)}
    sizes |= {"WORKSPACE": source.workspace, "STEPS": steps, "ROWS": rows, "BATCH": workload.batch}
    rates = [workload.rate(update) for update in range(steps)]
    data = {"rows": [x for n in range(rows) for x in workload.row(n)], "rates": rates, "p": parameters}
    constants = [line for name, numbers in data.items() for line in table(name, numbers)]
    defined = [f"#define {name} {size}" for name, size in sizes.items()]
    main = "\n".join([read("kernel/kernel.h"), *defined, *constants]).replace("const double p[", "double p[")
    return [*source.units, main + MAIN]


def run(units, folder):
    """Return the numbers that the program prints."""
    files = []
    for number, unit in enumerate(units):
        files.append(folder / f"{number}.c")
        files[-1].write_text(unit)
    binary = folder / "program"
    subprocess.run([COMPILER, *STRICT, "-O2", "-static", "-o", binary, *files, "-lm"], check=True)
    printed = subprocess.run([EMULATOR, binary], check=True, capture_output=True, text=True, timeout=60).stdout
    return [float.fromhex(line) for line in printed.split()]


@pytest.mark.parametrize(
    ("engine", "name"),
    [("rerolled-gcc", name) for name in ("digits", "mlp-64x50x10-b7", "conv-2d", "recurrent")]
    + [("rerolled-clang-sparse", "digits")],
)
def test_a_cross_compiled_program_has_the_bits_of_the_reference(engine, name, tmp_path):
    workload, steps = workloads.load(name), 15
    options = engines.load(engine).options
    options = replace(options, form=form_of(options, 2, 32))
    trainer = engines.load(REFERENCE).prepare(workload)
    trainer.restart(batch=workload.batch)
    trainer.train(steps)
    assert run(program(workload, options, steps), tmp_path) == [*trainer.losses, *trainer.parameters()]
