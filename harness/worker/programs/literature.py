"""Engine -> the modules that programs of the micrograd literature import.

    micrograd.engine   Value, Max, draw_dot, counter           micrograd and "Compiling ML models to C for fun"
    micrograd.nn       Module, Neuron, Layer, MLP, Value
    autograd           Value                                   "Tour de micrograd"
    nn                 MLP(nin, nouts, activation, step)

They are found only if nothing else has the name, so a program's own modules and installed ones come first.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Optional

from zoomgrad.engines import nn
from zoomgrad.engines.graph.draw import draw_dot
from zoomgrad.engines.straight import value_lines

MODULES = ("micrograd", "micrograd.engine", "micrograd.nn", "autograd", "nn")


class Modules:
    """Import modules from dictionaries instead of files. The dictionaries are made at the first import.

    It has the methods of a finder and a loader, but not the base classes, which take longer to import than a program
    to start.
    """

    def __init__(self, contents: Callable[[], Mapping[str, Mapping[str, Any]]], imported: set[str]) -> None:
        self._contents = contents
        self._imported = imported

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        inside = name.partition(".")[0] in self._imported or "." not in name  # not of a `micrograd` of the program
        loader: Any = self
        return ModuleSpec(name, loader, is_package=name == "micrograd") if name in MODULES and inside else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None: the import system makes the module."""

    def exec_module(self, module: ModuleType) -> None:
        self._imported.add(module.__name__)
        module.__dict__.update(self._contents()[module.__name__])
        if module.__name__ == "micrograd":  # after `import micrograd`, a program may write `micrograd.engine`
            importlib.import_module("micrograd.engine")
            importlib.import_module("micrograd.nn")


def offer(value_of: Callable[[], Any], *, with_ids: bool = False) -> set[str]:
    """Make the modules importable, for the rest of the process. Returns a set of those imported so far.

    value_of: gives the engine's Value. with_ids: replace it with a subclass that has identifiers.
    """
    imported: set[str] = set()

    @functools.cache
    def contents() -> Mapping[str, Mapping[str, Any]]:
        value, neuron, names = value_of(), nn.Neuron, dict[str, Any]()
        if with_ids:
            module = sys.modules[value.__module__].__dict__
            module["Value"] = value = value_lines.identified(value)  # operators create it
            neuron = value_lines.NamedNeuron
            names["__getattr__"] = functools.partial(getattr, value)  # finds `counter` in the class
        networks = {**nn.bind(value, neuron)._asdict(), "Value": value}
        names.update(Value=value, Max=value.max, draw_dot=draw_dot)
        tour = {"MLP": nn.bind(value, mlp=TourMLP).MLP, "Value": value}
        engine_and_nn = {"micrograd": {}, "micrograd.engine": names, "micrograd.nn": networks}
        return {**engine_and_nn, "autograd": {"Value": value}, "nn": tour}

    sys.meta_path.append(Modules(contents, imported))
    return imported


class TourMLP(nn.MLP):
    """As in "Tour de micrograd": layers of one activation, `tanh` or `relu`, with random biases and a rate."""

    def __init__(self, nin: int, nouts: list[int], activation: str, step: float) -> None:
        used = "relu" if activation == "relu" else "tanh"
        super().__init__(nin, nouts, last_linear=False, step=step, activation=used, random_bias=True)
