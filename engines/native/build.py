"""Build the extension type once per interpreter and compiler, keep it in a private folder, and load it.

Building takes about a second, and loading a kept object about a millisecond, so it is built when first needed. At
install time there may be no compiler yet, and the project is run from a clone.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from zoomgrad.engines.api import CyclicGraph, Unavailable
from zoomgrad.engines.graph.ops import LIBM
from zoomgrad.engines.graph.value import Value
from zoomgrad.engines.interpreted.once import once
from zoomgrad.engines.kernel.building import BuildFailed, build, loading
from zoomgrad.engines.kernel.c_tree import read
from zoomgrad.engines.kernel.extension import LIMITED_API, abi, check_python, include_flags, load_module
from zoomgrad.engines.kernel.kept import kept
from zoomgrad.engines.kernel.toolchains import Toolchain, usable
from zoomgrad.engines.native import ops_in_c
from zoomgrad.engines.native.attributes import ATTRIBUTES, construct, contribute
from zoomgrad.engines.value_base import check_exponent

COMPILERS = ("gcc", "clang", "tcc")
"""Best first. TCC's code is half as fast, and comes as a Python package."""


@once
def load() -> Any:
    """The class Value of the extension module, which is built if needed. Raises Unavailable."""
    check_python("hoisted")
    failures = []
    for tool in usable(COMPILERS):
        text = source(tool)
        recipe = ("value", abi(), str(tool), *tool.command, *flags(tool), text)
        try:
            with kept("native", recipe, build(tool, [text], flags(tool))) as (path, _), loading():
                return class_in(path)
        except BuildFailed as failure:
            failures.append(failure.reason)
    raise Unavailable(
        f"Value could not be built: {'; '.join(failures)}", "Run `zoomgrad doctor`, or install another compiler."
    )


@cache
def recorder() -> Any:
    """The class that compiled engines record graphs with: the C type where it can be built, else the one in Python."""
    try:
        return load()
    except Unavailable:
        return Value


def source(tool: Toolchain) -> str:
    """The whole C of the module, for that compiler."""
    limited = LIMITED_API if tool.family == "tcc" else ""
    head = f"{limited}#define PY_SSIZE_T_CLEAN\n#include <Python.h>\n"
    files = ("value.c", "operations.c", "backward.c", "attributes.c", "record.c", "module.c")
    return "\n".join([head, read("native/number.h"), ops_in_c.text(), *(read(f"native/{file}") for file in files)])


def flags(tool: Toolchain) -> tuple[str, ...]:
    """Flags that keep Python's bits: no fused products, and each libm function exactly as it is called."""
    exact = [f"-fno-builtin-{name}" for name, _ in LIBM]
    optimised = () if tool.family == "tcc" else ("-O2", "-fno-strict-aliasing", "-ffp-contract=off", *exact)
    return ("-std=gnu11", *optimised, *include_flags())


def class_in(path: Path) -> Any:
    """Load the module, and return its class Value."""
    module = load_module("zoomgrad_value", str(path))
    forward = [ops_in_c.in_python(op.forward) for op in ops_in_c.ALL]
    value = module.configure(check_exponent, CyclicGraph, construct, contribute, *forward)
    value._dress = module.dress
    value._topo = value.topo  # a program's class may have another `topo`
    value.__name__ = value.__name__  # error messages show a name without the module
    for name, attribute in ATTRIBUTES.items():
        setattr(value, name, attribute)
    return value
