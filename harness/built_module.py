"""Workload -> the files of a module that works without zoomgrad: the C of `tcc-extension`, compiled, and a README."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.compiled.emit import module
from zoomgrad.engines.compiled.flags import flags_of
from zoomgrad.engines.compiled.lower import lower
from zoomgrad.engines.graph.optimisers import SGD
from zoomgrad.engines.kernel import building, toolchains
from zoomgrad.engines.row import Row
from zoomgrad.harness import stages
from zoomgrad.harness.workloads import Workload

README = Path(__file__).with_suffix(".md")
"""Template of the module's own README."""


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
    with building.build(toolchains.find(options.compiler), [source], flags_of(options)) as path:
        compiled = path.read_bytes()
    flags = " ".join(flag for flag in flags_of(options) if not flag.startswith("-I"))
    readme = README.read_text(encoding="utf-8").format(
        name=name, workload=workload.name, batch=workload.batch, flags=flags
    )
    return {f"{name}.abi3.so": compiled, f"{name}.c": source.encode("ascii"), "README.md": readme.encode()}


def module_name(text: str) -> str:
    """A valid name of a module that none of Python's own modules has."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    is_taken = keyword.iskeyword(name) or name in sys.stdlib_module_names
    return name if name[:1].isalpha() and not is_taken else f"model_{name}"
