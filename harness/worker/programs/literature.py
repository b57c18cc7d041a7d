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

Names = Mapping[str, Any]
MODULES = ("micrograd", "micrograd.engine", "micrograd.nn", "autograd", "nn")


class Modules:
    """Import modules from dictionaries instead of files. The dictionaries are made at the first import.

    It has the methods of a finder and a loader, but not the base classes, which take longer to import than a program
    to start.
    """

    def __init__(self, contents: Callable[[], Mapping[str, Names]], imported: set[str]) -> None:
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
    def contents() -> Mapping[str, Names]:
        own = value_of()
        value = own
        if with_ids:
            value = sys.modules[own.__module__].__dict__["Value"] = identified(own)  # operators create it
        networks = nn.bind(value, NamedNeuron if with_ids else nn.Neuron)
        names = {"Value": value, "Max": maximum, "draw_dot": draw_dot, "__getattr__": _counter_of(value)}
        published = {"micrograd": {}, "micrograd.engine": names, "micrograd.nn": {**networks._asdict(), "Value": value}}
        tour = nn.bind(value, mlp=TourMLP)
        return {**published, "autograd": {"Value": value}, "nn": {"MLP": tour.MLP, "Value": value}}

    sys.meta_path.append(Modules(contents, imported))
    return imported


# --- "Compiling ML models to C for fun" ------------------------------------------------------------------------------


def identified(value: Any) -> Any:
    """Return a subclass whose objects have `_id`, their number from 0, and print their own lines of C.

    Creating such an object takes longer.
    """

    class Value(value):  # type: ignore[misc]
        __slots__ = ("_id",)
        __module__ = value.__module__  # where `offer` puts it, so that pickle finds it
        __qualname__ = value.__qualname__

        counter = 0

        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            self._id = Value.counter
            Value.counter += 1

        var = value_lines.data
        compile = value_lines.forward
        backward_compile = value_lines.backward

        def getgrad(self) -> str:
            if self._op in (value_lines.CONSTANT, value_lines.INPUT):
                raise RuntimeError("constants and inputs have no gradient in the C of the post")
            return value_lines.grad(self)

    return Value


class NamedNeuron(nn.Neuron):
    """A neuron whose leaves are named `weight` and `bias`: in the post's C, only named parameters have gradients."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        for weight in self.w:
            weight._op = value_lines.WEIGHT
        self.b._op = value_lines.BIAS


def maximum(left: Any, right: Any) -> Any:
    """The larger of two Values. The post calls it `Max`."""
    return left.max(right)


def _counter_of(value: Any) -> Callable[[str], Any]:
    """A module's `__getattr__` with `counter`, the number of Values so far."""

    def lookup(name: str) -> Any:
        if name == "counter" and hasattr(value, "counter"):
            return value.counter
        raise AttributeError(f"module 'micrograd.engine' has no attribute {name!r}")

    return lookup


# --- "Tour de micrograd" ---------------------------------------------------------------------------------------------


class TourMLP(nn.MLP):
    """Layers of one activation, `tanh` or `relu`, with random biases, and the step of `update_parameters`."""

    def __init__(self, nin: int, nouts: list[int], activation: str, step: float) -> None:
        used = "relu" if activation == "relu" else "tanh"
        super().__init__(nin, nouts, last_linear=False, step=step, activation=used, random_bias=True)
