"""Python text -> C -> an extension module, built once per interpreter, tool and text, and kept in a private folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.kernel.building import BuildFailed, Built, build, loading, private_folder, write
from zoomgrad.engines.kernel.extension import abi, check_python, include_flags, load_module
from zoomgrad.engines.kernel.kept import kept
from zoomgrad.engines.kernel.toolchains import Toolchain, usable
from zoomgrad.engines.translated.source import source
from zoomgrad.engines.translated.translators import Translator

FLAGS = ("-std=gnu11", "-O2", "-fno-strict-aliasing", "-ffp-contract=off", "-fno-builtin", "-w")
"""The C of these tools breaks the aliasing rules, as Python's own does. It is not ours, so warnings help nobody."""

COMPILERS = ("gcc", "clang")
"""TCC does not compile what these tools write."""


def value(translator: Translator) -> Any:
    """The class Value, built by this tool. Raises Unavailable."""
    check_python("slots")
    version, tool = translator.version(), next(usable(COMPILERS))
    flags = (*FLAGS, *include_flags())
    module = f"zoomgrad_translated_{translator.tool.lower()}"
    recipe = (translator.tool.lower(), abi(), version, str(tool), *tool.command, *flags, source())
    try:
        with kept("translated", recipe, _object(translator, tool, flags, module)) as built, loading():
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
