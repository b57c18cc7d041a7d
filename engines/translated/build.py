"""Python text -> C -> an extension module, built once per interpreter, tool and text, and kept in a private folder."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.machinery
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engines.api import Unavailable
from engines.kernel import object_cache
from engines.kernel.building import BuildFailed, Built, build, loading, private_folder, write
from engines.kernel.extension import abi, check_header, include_flags
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
    recipe = "\0".join([abi(), version, str(tool), *tool.command, *flags, source()])
    module = f"zoomgrad_translated_{translator.tool.lower()}"
    name = f"{translator.tool.lower()}-{hashlib.sha256(recipe.encode()).hexdigest()[:32]}"
    try:
        with _kept(translator, tool, flags, module, name) as built, loading():
            return _loaded(built.path, module).Value
    except BuildFailed as failure:
        raise Unavailable(f"Value could not be built: {failure.reason}", failure.remedy) from None


@contextlib.contextmanager
def _kept(translator: Translator, tool: Toolchain, flags: tuple[str, ...], module: str, name: str) -> Iterator[Built]:
    """The kept object of that name; if there is none, a new one, which is then kept."""
    store = object_cache.of_user("translated", from_seconds=0.0)
    if store:
        with object_cache.kept(store, name) as found:
            if found:
                yield found
                return
    with private_folder() as place:
        write(place / f"{module}.py", source().encode())
        translated = translator.translate(place, module)
        with build(tool, [translated.text], (*flags, *translated.flags)) as built:
            yield built
            if store:  # it could be loaded
                object_cache.keep(built, store, name)


def _loaded(path: Path, module: str) -> Any:
    loader = importlib.machinery.ExtensionFileLoader(module, str(path))
    spec = importlib.util.spec_from_loader(module, loader)
    assert spec is not None
    made = importlib.util.module_from_spec(spec)
    loader.exec_module(made)
    return made


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
