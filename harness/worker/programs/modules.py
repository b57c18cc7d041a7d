"""Import the modules of the micrograd literature (`zoomgrad.literature`) from dictionaries instead of files."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Optional

from zoomgrad.literature import MODULES


class Modules:
    """The last entry of `sys.meta_path`, so that a program's own modules and installed ones come first.

    contents: makes the dictionaries, at the first import. The class has the methods of a finder and a loader, but not
    the base classes, which take longer to import than a program to start.
    """

    def __init__(self, contents: Callable[[], dict[str, dict[str, Any]]]) -> None:
        self._contents = contents
        self._made: dict[str, dict[str, Any]] = {}
        self.imported: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        inside = name.partition(".")[0] in self.imported or "." not in name  # not of a `micrograd` of the program
        loader: Any = self
        return ModuleSpec(name, loader, is_package=name == "micrograd") if name in MODULES and inside else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None: the import system makes the module."""

    def exec_module(self, module: ModuleType) -> None:
        self.imported.add(module.__name__)
        self._made = self._made or self._contents()
        module.__dict__.update(self._made[module.__name__])
        if module.__name__ == "micrograd":  # after `import micrograd`, a program may write `micrograd.engine`
            importlib.import_module("micrograd.engine")
            importlib.import_module("micrograd.nn")
