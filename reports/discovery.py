"""Find the modules dropped into a folder of this package. A broken one is left out with a warning."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import warnings
from collections.abc import Iterable, Iterator
from types import ModuleType


def defining(protocol: type, key: str, package: str, path: Iterable[str]) -> dict[str, ModuleType]:
    """Return the package's modules that define `key`, by file name. They must define the rest of the protocol too."""
    asked = {*protocol.__annotations__, *(name for name in vars(protocol) if not name.startswith("_"))}
    found = {}
    for info in pkgutil.iter_modules(path):
        with left_out(f"{package.removeprefix('zoomgrad.').replace('.', '/')}/{info.name}.py"):
            module = importlib.import_module(f"{package}.{info.name}")
            lacking = sorted(name for name in asked if not hasattr(module, name))
            if key not in lacking and lacking:
                raise AttributeError(f"it has no {' and no '.join(lacking)}")
            if not lacking:
                found[info.name] = module
    return found


@contextlib.contextmanager
def left_out(what: str) -> Iterator[None]:
    """Turn an exception or SystemExit raised in the block into a warning that names `what`."""
    try:
        yield
    except (Exception, SystemExit) as error:
        warnings.warn(f"{what} is left out: {type(error).__name__}: {error}", stacklevel=4)
