"""A stranger's micrograd program runs unchanged on every engine."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.compiled.compiling import usable
from tests.engines.ladder import of_each_value
from tests.engines.programs import MICROGRAD_README
from zoomgrad import engines
from zoomgrad.harness.worker.lifeline import HARNESS, identity
from zoomgrad.harness.worker.programs import script

ROOT = Path(__file__).parents[3]
TRAINING = """
import random
import sys
import micrograd.nn
from micrograd import nn
from micrograd.engine import Value
from micrograd.nn import Layer, MLP, Module, Neuron

assert __name__ == "__main__"
random.seed(1337)
model = MLP(3, [4, 4, 1])
print(model)
print("number of parameters", len(model.parameters()))
xs = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
ys = [1.0, -1.0, -1.0, 1.0]
for k in range(20):
    ypred = [model(list(map(Value, x))) for x in xs]
    loss = sum((yout - ygt) ** 2 for ygt, yout in zip(ys, ypred))
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= 0.01 * p.grad
print(f"{loss.data:.6f}")
sys.exit(len(sys.argv))
"""


def execute(engine, tmp_path, text, *arguments, replaced=""):
    script = tmp_path / "program.py"
    script.write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "zoomgrad.harness.worker.programs.execute", engine, replaced, str(script), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("engine", of_each_value())
def test_the_readme_of_micrograd(engine, tmp_path):
    result = execute(engine, tmp_path, MICROGRAD_README)
    assert result.stderr == ""
    assert result.stdout == "24.7041\n138.8338\n645.5773\n"


def test_a_training_program_with_arguments_and_an_exit_code(tmp_path):
    printed = {engine: execute(engine, tmp_path, TRAINING, "one", "two") for engine in of_each_value()}
    assert {result.returncode for result in printed.values()} == {3}
    assert len({result.stdout for result in printed.values()}) == 1
    assert printed["tuple"].stdout.splitlines()[1] == "number of parameters 41"


OWN = """
class Value:
    def __init__(self, data):
        self.data = data

    def __repr__(self):
        return f"<{self.data:g}>"

    def __mul__(self, other):
        return Value(self.data * other.data)

    def backward(self):
        print("own")

class Other:
    pass

product = Value(2.0) * Value(3.0)
product.backward()
print(product, type(product).__module__)
"""


def test_a_warning_says_that_a_program_with_its_own_value_ran_without_the_engine(tmp_path):
    ran = execute("tuple", tmp_path, OWN)
    assert (ran.returncode, ran.stdout) == (0, "own\n<6> __main__\n")
    assert "program.py ended without importing micrograd, so tuple had no effect" in ran.stderr
    assert "`--replace Value`" in ran.stderr


def test_the_engines_value_replaces_a_class_and_keeps_its_repr(tmp_path):
    ran = execute("hoisted", tmp_path, OWN, replaced="Value")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "<6> __main__\n", "")


@pytest.mark.parametrize(
    ("name", "text", "problem", "remedy"),
    [
        ("Scalar", OWN, "defines no class 'Scalar'", "Its classes: Value, Other."),
        ("Scalar", "def f():\n  class Scalar: pass", "defines no class 'Scalar'", "Its classes: none."),
        ("Value", OWN.replace("class Value", "@decorated\nclass Value"), "the decorator decorated", "without"),
    ],
)
def test_a_class_that_cannot_be_replaced_is_refused(tmp_path, name, text, problem, remedy):
    ran = execute("tuple", tmp_path, text, replaced=name)
    assert (ran.returncode, ran.stdout) == (2, "")
    first, second = ran.stderr.splitlines()
    assert problem in first
    assert remedy in second


@pytest.mark.parametrize("engine", of_each_value())
def test_what_a_value_lacks_stays(tmp_path, engine):
    """Methods, attributes, bases, and names for data, children and label that differ from micrograd's."""
    text = """
import math

class Base:
    def half(self):
        return self * 0.5

class Scalar(Base):
    kinds = ["leaf"]
    __slots__ = ("value",)

    def __init__(self, value, name="x", parents=None, *, _op="", requires_grad=True):
        self.value, self.name = value, name
        self.parents = list(parents or [])

    def __mul__(self, other):
        raise NotImplementedError

    def sine(self):
        out = Scalar(math.sin(self.value), parents=[self], _op="sin")
        def _backward():
            self.grad += math.cos(self.value) * out.grad
        out._backward = _backward
        return out

a = Scalar(0.0, "a", requires_grad=False)
b = a.sine().half()
b.backward()
print(a.grad, a.name, b.name, len(b.parents), b.value, Scalar.kinds)
"""
    if not engines.load(engine).extensible:
        assert execute(engine, tmp_path, text, replaced="Scalar").returncode == 2
        return
    expected = "0.5 a x 2 0.0 ['leaf']\n"
    ran = execute(engine, tmp_path, text, replaced="Scalar")
    if engine in ("baseline", "tuple", "slots", "hoisted", "native"):
        assert (ran.stdout, ran.stderr) == (expected, "")
    else:  # an engine without backward functions can't take an operation of the program's own
        assert ran.stdout == expected or "has no backward functions" in ran.stderr


def test_a_class_in_a_module_beside_the_program_is_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text("from .engine import Value")
    (tmp_path / "mine" / "engine.py").write_text(OWN.partition("class Other")[0])
    text = "from mine import Value\nv = Value(2.0) * Value(3.0)\nprint(v, len(v.topo()))"
    ran = execute("hoisted", tmp_path, text, replaced="Value")
    assert (ran.stdout, ran.stderr) == ("<6> 3\n", "")


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("v._id", True),
        ("v.compile()", True),
        ("import micrograd.engine as e\ne.counter", True),
        ("from micrograd.engine import counter", True),
        ("from package import lines", True),
        ("import broken", False),
    ],
)
def test_ids_are_made_only_for_programs_that_use_them(tmp_path, text, uses):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "lines.py").write_text("def lines(v):\n    return v.backward_compile()")
    (tmp_path / "broken.py").write_text("print 'Python 2'")
    assert script.uses_ids(ast.parse(text), tmp_path / "program.py") == uses


@pytest.mark.parametrize("engine", of_each_value())
def test_models_can_be_pickled(tmp_path, engine):
    program = (
        "import micrograd, nn, pickle\nfor model in micrograd.nn.MLP(2, [2, 1]), nn.MLP(2, [2, 1], 'tanh', 0.1):\n"
    )
    program += "    for m in (model, pickle.loads(pickle.dumps(model))):\n        m([1.0, 2.0]).backward()\n"
    program += "        print(m, [p.grad for p in m.parameters()])\n"
    ran = execute(engine, tmp_path, program)
    lines = ran.stdout.splitlines()
    assert (lines[::2], ran.stderr) == (lines[1::2], "")
    assert len(lines) == 4


def test_threads_and_exit_handlers_still_have_the_engine(tmp_path):
    text = """
import atexit, threading, time

def late():
    from micrograd.engine import Value
    print(Value(2.0) * 3)

def slow():
    time.sleep(0.2)
    late()

atexit.register(late)
threading.Thread(target=slow).start()
"""
    ran = execute("tuple", tmp_path, text)
    assert (ran.stdout, ran.stderr) == ("Value(data=6.0, grad=0)\n" * 2, "")


def test_a_syntax_error_prints_the_programs_line_alone(tmp_path):
    ran = execute("tuple", tmp_path, "x = = 1")
    assert ran.returncode == 1
    assert "x = = 1" in ran.stderr
    assert "harness" not in ran.stderr


def test_a_programs_own_modules_come_before_the_tours(tmp_path):
    (tmp_path / "nn.py").write_text("own = True")
    ran = execute("tuple", tmp_path, "import nn, autograd; print(nn.own, autograd.Value.__module__)")
    assert (ran.stdout, ran.stderr) == ("True zoomgrad.engines.interpreted.tuple\n", "")


def test_an_engine_without_a_value_is_refused(tmp_path):
    usable("handwritten")
    result = execute("handwritten", tmp_path, "print('ran')")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("zoomgrad: handwritten runs whole models only")
    assert "--engine tuple" in result.stderr


def test_a_process_that_a_program_starts_is_not_marked_as_a_worker(tmp_path):
    """The next run ends processes that a worker left behind; an editor that a program started must stay."""
    text = "import os, subprocess, micrograd; subprocess.run('echo marked: $ZOOMGRAD_HARNESS', shell=True)"
    (tmp_path / "program.py").write_text(text)
    result = subprocess.run(
        [sys.executable, "-m", "zoomgrad.harness.worker.programs.execute", "tuple", "", str(tmp_path / "program.py")],
        cwd=ROOT,
        env={**os.environ, HARNESS: identity()},
        capture_output=True,
        text=True,
    )
    assert (result.stdout.strip(), result.stderr) == ("marked:", "")
