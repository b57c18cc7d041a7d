"""Python text -> C -> an extension module, built once per interpreter, tool and text, and kept in a private folder."""

from __future__ import annotations

import contextlib
import sys
import sysconfig
from collections.abc import Iterator
from functools import partial
from typing import Any

from engines.api import Unavailable
from engines.kernel import object_cache
from engines.kernel.building import BuildFailed, Built, build, loading, private_folder, write
from engines.kernel.extension import abi, check_header, include_flags, load_module
from engines.kernel.toolchains import Toolchain, find
from engines.translated.source import source
from engines.translated.translators import Translator

FLAGS = ("-std=gnu11", "-O2", "-fno-strict-aliasing", "-ffp-contract=off", "-fno-builtin", "-w")
"""The C of these tools breaks the aliasing rules, as Python's own does. It is not ours, so warnings help nobody."""

COMPILERS = ("gcc", "clang")
"""TCC does not compile what these tools write."""


def value(translator: Translator) -> Any:
    """The class Value, built by this tool. Raises Unavailable."""
    _check_python()
    version, tool = translator.version(), _compiler()
    flags = (*FLAGS, *include_flags())
    module = f"zoomgrad_translated_{translator.tool.lower()}"
    recipe = (translator.tool.lower(), abi(), version, str(tool), *tool.command, *flags, source())
    make = partial(_object, translator, tool, flags, module)
    try:
        with object_cache.kept_or_built("translated", recipe, make) as built, loading():
            return load_module(module, str(built.path)).Value
    except BuildFailed as failure:
        raise Unavailable(f"Value could not be built: {failure.reason}", failure.remedy) from None


@contextlib.contextmanager
def _object(translator: Translator, tool: Toolchain, flags: tuple[str, ...], module: str) -> Iterator[Built]:
    with private_folder() as place:
        write(place / f"{module}.py", source().encode())
        translated = translator.translate(place, module)
        with build(tool, [translated.text], (*flags, *translated.flags)) as built:
            yield built


def _compiler() -> Toolchain:
    for name in COMPILERS:
        with contextlib.suppress(Unavailable):
            return find(name)
    raise Unavailable("there is neither gcc nor Clang to build it", "Install one, for example `apt install gcc`.")


def _check_python() -> None:
    """Raise Unavailable if this interpreter can't use such a module."""
    if sys.implementation.name != "cpython":
        raise Unavailable(
            "extension modules are for CPython; other interpreters only emulate its C API",
            "Use `slots`, which their just-in-time compilers make fast.",
        )
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise Unavailable(
            "the module relies on the global interpreter lock, which this Python lacks",
            "Use `slots`, or a Python with the lock.",
        )
    check_header()
