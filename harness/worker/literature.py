"""Engine -> the modules that programs of the micrograd literature import.

    micrograd.engine   Value, Max, draw_dot, counter           micrograd and "Compiling ML models to C for fun"
    micrograd.nn       Module, Neuron, Layer, MLP, Value
    autograd           Value                                   "Tour de micrograd"
    nn                 Neuron, Layer, MLP(nin, nouts, activation, step)

`micrograd` takes the place of an installed package of that name. `autograd` and `nn` are found only if nothing else has
the name, so a program's own modules come first.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Optional

from engines import nn
from engines.api import Engine
from engines.graph.draw import draw_dot
from engines.straight import value_lines

Names = Mapping[str, Any]


class Modules(MetaPathFinder, Loader):
    """Importer of the given modules: name -> contents."""

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


@contextlib.contextmanager
def offered(engine: Engine, *, numbered: bool = False) -> Iterator[set[str]]:
    """Make the modules importable within the block. Yields the names of those imported so far, a set that grows.

    numbered: give every Value an `_id`, `compile()` and `backward_compile()`. Creating a Value then takes longer.
    """
    imported: set[str] = set()
    operators = sys.modules[engine.Value.__module__].__dict__
    value = operators["Value"] = with_ids(engine.Value) if numbered else engine.Value
    networks = nn.bind(value, neuron=NamedNeuron if numbered else nn.Neuron)
    names = {"Value": value, "Max": _maximum, "draw_dot": draw_dot, "__getattr__": _counter_of(value)}
    published = {"micrograd": {}, "micrograd.engine": names, "micrograd.nn": {**networks._asdict(), "Value": value}}
    tour = {"autograd": {"Value": value}, "nn": _tour(networks)}
    finders = [Modules(published, imported), Modules(tour, imported)]
    sys.meta_path[:] = [finders[0], *sys.meta_path, finders[1]]
    try:
        yield imported
    finally:
        operators["Value"] = engine.Value
        for finder in finders:
            sys.meta_path.remove(finder)
        for name in imported:
            sys.modules.pop(name, None)


# --- "Compiling ML models to C for fun" ------------------------------------------------------------------------------


def with_ids(value: Any) -> Any:
    """Return a subclass whose objects carry `_id`: their number, from 0, counting constants too.

    Operators create such objects only if the subclass replaces the class in its module.
    """

    class Value(value):  # type: ignore[misc]
        __slots__ = ("_id",)

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
    """A neuron whose leaves are named `weight` and `bias`, which tells its generated C that they have gradients."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        for weight in self.w:
            weight._op = value_lines.WEIGHT
        self.b._op = value_lines.BIAS


def _maximum(left: Any, right: Any) -> Any:
    """Return the larger of two Values, as the post's class `Max` does."""
    return left.max(right)


def _counter_of(value: Any) -> Callable[[str], Any]:
    """A module's `__getattr__` with `counter`, the number of Values so far."""

    def lookup(name: str) -> Any:
        if name == "counter" and hasattr(value, "counter"):
            return value.counter
        raise AttributeError(f"module 'micrograd.engine' has no attribute {name!r}")

    return lookup


# --- "Tour de micrograd" ---------------------------------------------------------------------------------------------


def _tour(networks: nn.Networks) -> Names:
    """The tour's networks: all layers have the same activation, and biases are random."""

    class Neuron(networks.Neuron):  # type: ignore[misc, name-defined]
        def __init__(self, nin: int, activation: str) -> None:
            super().__init__(nin, activation="relu" if activation == "relu" else "tanh", random_bias=True)

    class Layer(networks.Layer):  # type: ignore[misc, name-defined]
        def __init__(self, nin: int, nout: int, activation: str) -> None:
            self.neurons = [Neuron(nin, activation) for _ in range(nout)]

    class MLP(networks.MLP):  # type: ignore[misc, name-defined]
        def __init__(self, nin: int, nouts: list[int], activation: str, step: float) -> None:
            sizes = [nin, *nouts]
            self.layers = [Layer(*pair, activation) for pair in zip(sizes, nouts)]
            self.step = step

    return {"Neuron": Neuron, "Layer": Layer, "MLP": MLP, "Value": networks.Neuron.Value}
