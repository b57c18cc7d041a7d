"""Engine -> the modules that programs of the micrograd literature import.

    micrograd.engine   Value, Max, draw_dot, counter           micrograd and "Compiling ML models to C for fun"
    micrograd.nn       Module, Neuron, Layer, MLP, Value
    autograd           Value                                   "Tour de micrograd"
    nn                 Neuron, Layer, MLP(nin, nouts, activation, step)

`micrograd` takes the place of an installed package of that name. `autograd` and `nn` are found only if nothing else has
the name, so a program's own modules come first.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Optional

from zoomgrad.engines import nn
from zoomgrad.engines.api import Engine
from zoomgrad.engines.graph.draw import draw_dot
from zoomgrad.engines.straight import value_lines
from zoomgrad.harness.worker.programs import probe
from zoomgrad.harness.worker.programs.stand_in import standing_in

Names = Mapping[str, Any]

REPLACEMENT = "_zoomgrad_value"
ADOPT, STANDING_IN, CHECK = (f"{REPLACEMENT}_{name}" for name in ("adopt", "standing_in", "check"))
"""For `script.replace`: a module with Value, a decorator that makes a subclass the class of all results, one that
gives it the names of a program's class, and a function that compares that class with Value."""


class Modules(MetaPathFinder, Loader):
    """Import modules from dictionaries instead of files."""

    def __init__(self, contents: Mapping[str, Names], imported: set[str]) -> None:
        self._contents = contents
        self._imported = imported

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        return ModuleSpec(name, self, is_package=name == "micrograd") if name in self._contents else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None: the import system makes the module."""

    def exec_module(self, module: ModuleType) -> None:
        self._imported.add(module.__name__)
        module.__dict__.update(self._contents[module.__name__])
        if module.__name__ == "micrograd":  # after `import micrograd`, a program may write `micrograd.engine`
            importlib.import_module("micrograd.engine")
            importlib.import_module("micrograd.nn")


def offer(engine: Engine, value: Any, *, own_first: bool = False) -> set[str]:
    """Make the modules importable, for the rest of the process. Returns a set of those imported so far.

    value: the engine's Value, or a subclass, which all operators then create.
    own_first: a `micrograd` of the program's own, or an installed one, comes first.
    """
    own = engine.Value

    def adopt(subclass: Any) -> Any:
        if hasattr(own, "_adopt"):  # a class in C, whose operators do not look at the module
            own._adopt(subclass)
        sys.modules[own.__module__].__dict__["Value"] = subclass
        return subclass

    adopt(value)
    networks = nn.bind(value, NamedNeuron if value is not engine.Value else nn.Neuron)
    names = {"Value": value, "Max": Max, "draw_dot": draw_dot, "__getattr__": _counter_of(value)}
    published = {"micrograd": {}, "micrograd.engine": names, "micrograd.nn": {**networks._asdict(), "Value": value}}
    tour = {"autograd": {"Value": value}, "nn": _tour(value)}
    replacement = {REPLACEMENT: {"Value": value, ADOPT: adopt, STANDING_IN: standing_in, CHECK: probe.check}}
    imported: set[str] = set()
    first, last = (replacement, {**published, **tour}) if own_first else ({**replacement, **published}, tour)
    sys.meta_path[:] = [Modules(first, imported), *sys.meta_path, Modules(last, imported)]
    return imported


# --- "Compiling ML models to C for fun" ------------------------------------------------------------------------------


def with_ids(value: Any) -> Any:
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


class _IsMaximum(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return getattr(instance, "_op", "") == "max"


class Max(metaclass=_IsMaximum):
    """The larger of two Values. In the post, its result is an object of this class."""

    def __new__(cls, left: Any, right: Any) -> Any:
        return left.max(right)


def _counter_of(value: Any) -> Callable[[str], Any]:
    """A module's `__getattr__` with `counter`, the number of Values so far."""

    def lookup(name: str) -> Any:
        if name == "counter" and hasattr(value, "counter"):
            return value.counter
        raise AttributeError(f"module 'micrograd.engine' has no attribute {name!r}")

    return lookup


# --- "Tour de micrograd" ---------------------------------------------------------------------------------------------


class TourNeuron(nn.Neuron):
    """A neuron with a random bias. All layers have the same activation, `tanh` or `relu`."""

    def __init__(self, nin: int, activation: str) -> None:
        super().__init__(nin, activation="relu" if activation == "relu" else "tanh", random_bias=True)


class TourLayer(nn.Layer):
    """Neurons of one activation."""

    def __init__(self, nin: int, nout: int, activation: str) -> None:
        self.neurons = [self.Neuron(nin, activation) for _ in range(nout)]  # type: ignore[arg-type]


class TourMLP(nn.MLP):
    """Layers of one activation, and the step of `update_parameters`."""

    def __init__(self, nin: int, nouts: list[int], activation: str, step: float) -> None:
        sizes = [nin, *nouts]
        self.layers = [self.Layer(*pair, activation) for pair in zip(sizes, nouts)]  # type: ignore[call-arg]
        self.step = step


def _tour(value: Any) -> Names:
    networks = nn.bind(value, TourNeuron, TourLayer, TourMLP)
    return {"Neuron": networks.Neuron, "Layer": networks.Layer, "MLP": networks.MLP, "Value": value}
