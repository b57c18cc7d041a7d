"""The engine `rpython`: its text, run by this Python over a stand-in for RPython's library, and translated."""

import math
import sys
from itertools import count
from types import ModuleType, SimpleNamespace

import pytest

from tests.engines.compiled.compiling import CLASSIFIER_ROWS, compiled, difference, reference, trains_alike, usable
from tests.engines.compiled.test_differential import spread
from tests.engines.graphs import NAMED, classifier
from zoomgrad import engines
from zoomgrad.engines.compiled import engine as compiled_engine
from zoomgrad.engines.graph.optimisers import power
from zoomgrad.engines.translated import rpython
from zoomgrad.harness import workloads

STEPS = {"xor": 9, "tour": 2, "random-dag": 3, "microgpt-L1-D8-H2-T4": 3}
"""Workload -> steps. The last one has rows of several lengths and another optimiser."""


class InPython:
    """A stand-in for the translated library: the functions of the text."""

    def __init__(self):
        self.new, self.free = count(), []
        anything = SimpleNamespace(
            DOUBLE=0,
            DOUBLEP=0,
            SIGNEDP=0,
            Signed=0,
            llexternal=lambda name, *_, **__: {"pow": power}.get(name) or getattr(math, name),
        )
        marks = dict.fromkeys(("__init__", "jit_merge_point"), lambda self, **_: None)
        jit = SimpleNamespace(JitDriver=type("JitDriver", (), marks))
        modules = {
            "rpython.rlib": {"jit": jit},
            "rpython.rlib.entrypoint": {"entrypoint_highlevel": lambda *_: lambda function: function},
            "rpython.rtyper.lltypesystem": {"lltype": anything, "rffi": anything},
            "rpython.translator.tool.cbuild": {"ExternalCompilationInfo": lambda **_: None},
        }
        self.names = {"__name__": "micrograd"}
        with pytest.MonkeyPatch.context() as patch:
            for name, names in modules.items():
                module = ModuleType(name)
                vars(module).update(names)
                patch.setitem(sys.modules, name, module)
            exec(compile(rpython.text(), "micrograd.rpy", "exec"), self.names)

    def call(self, name, *arguments):
        return self.names[name](*arguments)


@pytest.fixture
def engine(monkeypatch):
    """The engine over the stand-in."""
    monkeypatch.setitem(rpython._LIBRARIES, False, InPython())
    monkeypatch.setattr(compiled_engine, "translator", lambda: None)
    return usable("rpython")


def has_the_reference_bits(engine):
    """Programs, random numbers of a classifier and workloads, against the reference."""
    for graph in NAMED:
        outcome, kinds = reference(graph, graph.numbers), spread(graph.numbers, ["input", "parameter"])
        if outcome:
            assert difference(compiled(engine, graph, kinds, graph.numbers, [0]), graph.numbers, outcome) == "", graph
    trains_alike(engine, *classifier(), CLASSIFIER_ROWS, 3, 11)
    for name, steps in STEPS.items():
        workload = workloads.load(name)
        both = [each.prepare(workload) for each in (engine, engines.load("tuple"))]
        for trainer in both:
            trainer.train(steps)
        ours, theirs = ([t.losses, t.gradients(), t.parameters(), t.predict(workload.row(1))] for t in both)
        assert ours == theirs, name
    return True


def test_the_text_has_the_reference_bits(engine):
    assert has_the_reference_bits(engine)
    if sys.implementation.name == "cpython":  # the place of an ended kernel is used again
        assert len(rpython._LIBRARIES[False].names["LIBRARY"].graphs) < len(NAMED)


@pytest.mark.host
def test_the_translated_library_has_the_reference_bits():
    assert has_the_reference_bits(usable("rpython"))
