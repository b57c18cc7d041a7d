"""Graph and engine -> the README of a standalone build, with a compile command and an example that runs."""

from __future__ import annotations

from engines.kernel.c_engine import CEngine
from engines.standalone.graph import Graph
from engines.standalone.source import library_threads, shares_values

ABOUT = """\
# {name}

The graph of {origin} as C, made by zoomgrad's engine `{engine}` with {tool}. {kind}
{sizes}.
{promise}, where libm is the same.
"""

MODULE = """
`{file}` is a module for CPython 3.11 and newer on this kind of machine. It needs nothing but Python.
{native}
| call | result |
|---|---|
{calls}

A row is a flat buffer of {inputs:,} doubles or bytes, or a tuple of columns side by side. A column is a tuple
`(data, width, divisor, one_hot)`: doubles, bytes that become `byte / divisor`, or class labels, one byte each, that
become `width` inputs. An example is `((pixels, 784, 255.0, False), (labels, 10, 1.0, True))`.
{train}
```python
{example}
```

The C is in `{name}.c`. To compile it again, for another Python or machine, into the parent folder:

```
{compiler} {flags} -fPIC -shared $(python3-config --includes) -o ../{file} {name}.c
```
"""

MODULE_NATIVE = """
It is compiled for the processor that built it (`-march=native`). On x86-64, importing it raises ImportError on a
processor that lacks one of its vector instructions.
"""

TRAIN = """
`train` takes one step for each row, or `steps` of them from `first_row` on, and wraps around. It updates after every
`batch` steps; a partial batch waits for the next call. `rate` is a number, or a buffer with one double for each update.
The rows may be one flat buffer; bytes in it are not divided. The first loss that is not finite raises NonFiniteLoss
(with `step` and `value`), before that step's update. {threads}
Ctrl-C waits for the end of the call.
"""

OWN_THREADS = "Other threads run meanwhile, and their calls of this module raise RuntimeError."
SHARED_THREADS = "Other threads wait meanwhile. A process can import this module once, because its values are static."

LIBRARY = """
`{name}.h` describes each function. {threads}
{native}
```c
#include <stdio.h>

#include "{name}.h"

int main(void)
{{
    struct {name}_model *model = {name}_new();
    if (!model)
        return 1;
{body}
    {name}_free(model);
    return 0;
}}
```

Save that as `example.c` in the parent folder, then, in this one:

```
{compiler} {flags} -I. -o ../example ../example.c {name}.c -lm
```
"""

LIBRARY_NATIVE = """
`-march=native` makes a program for the processor that compiles it. Leave it out for other processors.
"""

FORWARD_BODY = """\
    for (int i = 0; i < {name}_INPUTS; i++)
        {name}_inputs(model)[i] = i % 7 / 7.0;
    printf("loss %.17g\\n", {name}_forward(model));"""

TRAIN_BODY = """\
    static double rows[4 * {name}_INPUTS], losses[4];
    for (int i = 0; i < 4 * {name}_INPUTS; i++)
        rows[i] = i % 7 / 7.0;
    const struct {name}_column column = {{rows, {name}_INPUTS, 1.0, {name}_DOUBLES}};
    long long done = {name}_train(model, &column, 1, 4, 0, 4, 2, 0.001, losses);
    for (long long i = 0; i < done; i++)
        printf("loss %.17g\\n", losses[i]);"""


def module_readme(engine: CEngine, graph: Graph, *, frozen: bool, file: str) -> str:
    """For an extension module. file: its name."""
    name, outputs = graph.name, len(graph.tape.outputs)
    calls = ["`forward(row)` | the loss"]
    if outputs:
        fewer = f"; the first {graph.features:,} inputs suffice" if graph.features < graph.tape.inputs else ""
        calls += [
            f"`predict(row)` | an array of the outputs{fewer}",
            "`outputs()` | an array of the outputs of the last forward pass",
        ]
    if not frozen:
        calls += [
            "`backward()` | adds the gradients of the row that `forward` ran on",
            "`zero_grad()` | sets the gradients to 0, and discards a partial batch",
            "`update(rate, batch=1)` | `parameters -= rate * gradients / batch`, then `gradients = 0`",
            "`train(rows, rate, batch=1, steps=None, first_row=0)` | an array of the losses",
            "`parameters()`, `gradients()` | arrays, which are copies",
            "`set_parameters(doubles)` | replaces all parameters",
            "`restart()` | returns to the starting parameters",
        ]
    example = [
        "import random",
        "from array import array",
        "",
        f"import {name}",
        "",
        f'rows = array("d", [random.random() for _ in range(4 * {name}.INPUTS)])  # four rows',
        *([] if frozen else [f"print(list({name}.train(rows, rate=0.001, batch=2)))"]),
        f"print({name}.forward(rows[: {name}.INPUTS]){f', list({name}.outputs())' if outputs else ''})",
    ]
    return _about(engine, graph, frozen) + MODULE.format(
        name=name,
        file=file,
        inputs=graph.tape.inputs,
        native=MODULE_NATIVE if engine.native else "",
        calls="\n".join(f"| {call} |" for call in calls),
        train="" if frozen else TRAIN.format(threads=SHARED_THREADS if shares_values(engine) else OWN_THREADS),
        example="\n".join(example),
        compiler=engine.compiler,
        flags=_flags(engine),
    )


def library_readme(engine: CEngine, graph: Graph, *, frozen: bool) -> str:
    """For C and a header."""
    name = graph.name
    return _about(engine, graph, frozen) + LIBRARY.format(
        name=name,
        threads=library_threads(engine),
        native=LIBRARY_NATIVE if engine.native else "",
        body=(FORWARD_BODY if frozen else TRAIN_BODY).format(name=name),
        compiler=engine.compiler,
        flags=_flags(engine),
    )


def _about(engine: CEngine, graph: Graph, frozen: bool) -> str:
    bound = f"Results differ from the reference's by at most {engine.error_bound} (relative)"
    return ABOUT.format(
        name=graph.name,
        origin=graph.origin,
        engine=engine.name,
        tool=engine.toolchain(),
        kind="Its weights are constants, and it has a forward pass only." if frozen else "It trains.",
        sizes=", ".join(
            f"{count:,} {noun}{'s' * (count != 1)}"
            for count, noun in (
                (graph.tape.inputs, "input"),
                (len(graph.parameters), "parameter"),
                (len(graph.tape.outputs), "output"),
            )
        ),
        promise="Its results are the engine's, bit for bit" if engine.strict else bound,
    )


def _flags(engine: CEngine) -> str:
    """The engine's flags, without search paths of this machine."""
    return " ".join(flag for flag in engine.flags if not flag.startswith("-I"))
