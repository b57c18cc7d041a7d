"""The C form: a program without Python computes the engine's bits, and no compiler warns."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from engines.kernel import toolchains
from engines.standalone.graph import module_name
from engines.standalone.source import shares_values
from harness import workloads
from harness.standalone import graphs
from harness.standalone.make import Form, make
from tests.harness.standalone.building import bits, build, run_alone, usable

STEPS, BATCH = 9, 2

MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "{name}.h"
#include "other.h"
static void *content(const char *file)
{{
    static char all[1 << 21];
    FILE *stream = fopen(file, "rb");
    size_t size = fread(all, 1, sizeof all, stream);
    void *copy = malloc(size);
    for (size_t i = 0; i < size; i++)
        ((char *)copy)[i] = all[i];
    fclose(stream);
    return copy;
}}
int main(void)
{{
    struct {name}_model *m = {name}_new(), *second = {name}_new();
    if ((second == 0) != {shared})
        return 1;
    struct other_model *other = other_new();
    struct {name}_column columns[] = {{{columns}}};
    double losses[{steps}];
    long long done = {name}_train(m, columns, {count}, {rows}, 0, {steps}, {batch}, {rate}, losses);
    for (long long i = 0; i < done; i++)
        printf("%a\\n", losses[i]);
    for (int i = 0; i < {name}_PARAMETERS; i++)
        printf("%a\\n", {name}_parameters(m)[i]);
    if ({name}_train(m, columns, 0, 1, 0, 1, 1, 0.1, losses) != -1 || {name}_backward(m) != -1)
        return 1;
    if (!second)
        {name}_restart(second = m);
    {name}_set_input(second, columns, {count}, 0);
    printf("%a\\n", {name}_forward(second));
    if ({name}_predict(second, {name}_inputs(second)) != {name}_outputs(second) || {name}_backward(second) != 0)
        return 1;
    other_predict(other, other_inputs(other));
    if (second != m)
        {name}_free(second);
    {name}_free(m), other_free(other);
    return !{name}_new();
    return 0;
}}
"""


@pytest.mark.parametrize(
    ("engine", "workload"),
    [("tcc", "xor"), ("tcc-published", "xor"), ("rerolled-tcc", "digits"), ("rerolled-gcc", "digits")],
)
def test_a_program_in_c_trains_as_the_engine_does(tmp_path, engine, workload):
    """Beside another model, whose C has functions of the same names."""
    engine, task = build(tmp_path / "one", workload, engine, Form.c)
    other = usable("rerolled-tcc")
    graph = graphs.of_workload(other, workloads.load("xor"))._replace(name="other")
    make(other, graph, tmp_path / "two", Form.c, frozen=True)
    kinds = ("DOUBLES", "BYTES", "CLASSES")
    columns = []
    for number, column in enumerate(task.columns()):
        (tmp_path / f"column{number}").write_bytes(memoryview(column.data).tobytes())
        kind = f"{workload}_{kinds[column.kind]}"
        columns.append(f'{{content("column{number}"), {column.width}, {column.divisor}, {kind}}}')
    main = MAIN.format(
        name=workload,
        columns=", ".join(columns),
        count=len(columns),
        rows=task.columns()[0].rows,
        steps=STEPS,
        batch=BATCH,
        rate=task.rate(0),
        shared=int(shares_values(engine)),
    )
    (tmp_path / "main.c").write_text(main)
    tool = toolchains.find(usable("gcc-O1").compiler)
    flags = [*toolchains.STRICT, "-O1", *(flag for flag in engine.flags if flag.startswith("-m"))]
    sources = ["main.c", f"one/{workload}.c", "two/other.c"]
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-psabi"]
    command = [*tool.command, *flags, *warnings, "-Ione", "-Itwo", *sources, "-lm", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=100)
    printed = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60).stdout
    trainer = engine.prepare(task)
    trainer.restart(batch=1)
    trainer.train(1)
    first = trainer.losses[0]
    trainer.restart(batch=BATCH)
    trainer.train(STEPS)
    assert bits(map(float.fromhex, printed.split())) == bits([*trainer.losses, *trainer.parameters(), first])


@pytest.mark.parametrize("frozen", [False, True])
def test_the_readme_compiles_and_runs(tmp_path, frozen):
    built = tmp_path / "built"
    build(built, "xor", "gcc-O1", Form.c, frozen=frozen)
    readme = (built / "README.md").read_text()
    (tmp_path / "example.c").write_text(re.search(r"```c\n(.*?)```", readme, re.DOTALL)[1])
    command = re.search(r"```\n(\w+ .*-lm)\n```", readme)[1]
    warnings = ["-Wall", "-Wextra", "-Wconversion", "-Werror"]
    subprocess.run([*command.split(), *warnings], cwd=built, check=True, timeout=60)
    printed = subprocess.run(["./example"], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60).stdout
    assert printed.count("loss") == (1 if frozen else 4)
    build(built, "xor", "gcc-O1", Form.c, frozen=frozen)  # following the README does not block the next build


@pytest.mark.parametrize("name", ["model", "main", "published", "forward", "INPUTS", "NULL", "double"])
@pytest.mark.parametrize("form", Form)
def test_a_script_may_have_any_name(tmp_path, name, form):
    engine = usable("tcc-published")
    graph = graphs.of_workload(engine, workloads.load("xor"))._replace(name=module_name(name))
    files = make(engine, graph, tmp_path, form, frozen=False)
    tool = toolchains.find(usable("gcc-O1").compiler)
    if form is Form.c:
        subprocess.run([*tool.command, "-c", files[0], "-o", "out.o"], cwd=tmp_path, check=True, timeout=60)
    else:
        assert run_alone(tmp_path, graph.name, "print(module.INPUTS)") == 3


def test_a_program_in_cpp_uses_the_header(tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("there is no g++ on PATH")
    build(tmp_path, "xor", "gcc-O1", Form.c)
    (tmp_path / "user.cpp").write_text('#include "xor.h"\nint main() { return !xor_new(); }\n')
    subprocess.run(["gcc", "-c", "xor.c", "-o", "xor.o"], cwd=tmp_path, check=True, timeout=60)
    subprocess.run(["g++", "user.cpp", "xor.o", "-lm", "-o", "user"], cwd=tmp_path, check=True, timeout=60)
    subprocess.run(["./user"], cwd=tmp_path, check=True, timeout=60)
