"""Workload -> the files of a module that works without zoomgrad: the C of `tcc-extension`, compiled, and a README."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterable

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.compiled.emit import module
from zoomgrad.engines.compiled.flags import flags_of
from zoomgrad.engines.compiled.lower import lower
from zoomgrad.engines.graph.optimisers import SGD
from zoomgrad.engines.kernel import building, toolchains
from zoomgrad.engines.row import Row
from zoomgrad.harness import stages
from zoomgrad.harness.workloads import Workload


def build(engine: Row, workload: Workload) -> dict[str, bytes]:
    """File -> content. Raises Unavailable unless the workload is one graph and plain descent, and BuildFailed."""
    if workload.varies or workload.optimiser is not SGD:
        raise Unavailable(
            f"{workload.name} has several graphs or another optimiser, and a module has one graph and plain descent",
            "Choose another workload from `zoomgrad list`, such as digits.",
        )
    graph, options = stages.trace(engine, workload), engine.options
    name = module_name(workload.name)
    (source,) = module(lower(graph.tape(), options), options, name, graph.numbers()[1]).units
    with building.build(toolchains.find(options.compiler), [source], flags_of(options)) as built:
        compiled = built.path.read_bytes()
    flags = " ".join(flag for flag in flags_of(options) if not flag.startswith("-I"))
    readme = README.format(name=name, workload=workload.name, batch=workload.batch, flags=flags)
    return {f"{name}.abi3.so": compiled, f"{name}.c": source.encode("ascii"), "README.md": readme.encode()}


def module_name(text: str, taken: Iterable[str] = getattr(sys, "stdlib_module_names", ())) -> str:
    """A valid name of a module that none of Python's own modules has."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    return name if name[:1].isalpha() and not keyword.iskeyword(name) and name not in taken else f"model_{name}"


README = """\
# {name}

The workload {workload} as a module for CPython 3.11 and newer. It needs nothing but Python. zoomgrad's engine
`tcc-extension` loads the same C, so the bits are the same where libm is.

```python
from array import array

import {name} as model


def zeros(count):
    return array("d", bytes(8 * count))


x, y, w = zeros(model.INPUTS), zeros(model.OUTPUTS), zeros(model.WORKSPACE)
p, q = array("d", model.START), zeros(model.PARAMETERS)  # parameters, and the gradients of a partial batch

rows = array("d", [i % 7 / 7.0 for i in range(4 * model.INPUTS)])  # four rows of inputs, targets included
columns = ((rows, model.INPUTS, 1.0, False),)
steps, batch, losses = 4, 2, zeros(4)
rates = array("d", [0.001] * (steps // batch))  # one for each update
model.train(x, p, w, y, q, columns, 0, steps, batch, 0, rates, losses, True, 0)
print(list(losses))

model.set_input(x, columns, 0)
print(model.forward(x, p, w, y), list(y))
```

| call | result |
|---|---|
| `forward(x, p, w, y)` | the loss; writes the outputs to `y` |
| `backward(x, p, w, q)` | after `forward`: adds the gradients to `q` |
| `update(p, q, rate, batch)` | `p -= rate * q / batch`, then `q = 0` |
| `zero_grad(q)` | `q = 0` |
| `set_input(x, columns, row)` | writes that row to `x` |
| `train(x, p, w, y, q, columns, first_row, steps, batch, taken, rates, losses, learns, y_step)` | the number of steps \
whose loss is finite; it ends at the first other loss |

Each buffer holds doubles. A row is one or more columns side by side. A column is a tuple
`(data, width, divisor, one_hot)`: doubles, bytes that become `byte / divisor`, or class labels, one byte each, that
become `width` inputs. In `train`, `taken` is the number of steps since the last update, `learns` is False for forward
passes only, and then `y_step` may be `OUTPUTS`, with a `y` for the outputs of every step. The workload's batch is
{batch}. A wrong argument raises an exception.

The C is in `{name}.c`. Any C compiler can compile it again, for another Python, or faster code:

```
gcc -O1 {flags} -fPIC -shared $(python3-config --includes) -o {name}.abi3.so {name}.c
```
"""
