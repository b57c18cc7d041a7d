"""A stranger's micrograd program runs unchanged on every engine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.worker.lifeline import HARNESS, identity
from tests.engines.ladder import of_each_value
from tests.engines.programs import MICROGRAD_README

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
        [sys.executable, "-m", "harness.worker.execute", engine, replaced, str(script), *arguments],
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


def test_a_program_finds_the_modules_beside_it(tmp_path):
    (tmp_path / "mine.py").write_text("answer = 42")
    assert execute("tuple", tmp_path, "import micrograd, mine; print(mine.answer)").stdout == "42\n"


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
    assert "program.py ran without tuple, because it never imported micrograd" in ran.stderr
    assert "`--replace Value`" in ran.stderr


def test_the_warning_is_printed_even_if_the_program_fails(tmp_path):
    ran = execute("tuple", tmp_path, "raise SystemExit(3)")
    assert ran.returncode == 3
    assert "never imported micrograd" in ran.stderr


def test_the_engines_value_replaces_a_class_and_keeps_its_repr(tmp_path):
    ran = execute("hoisted", tmp_path, OWN, replaced="Value")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "<6> engines.interpreted.hoisted\n", "")


@pytest.mark.parametrize(
    ("name", "text", "problem", "remedy"),
    [
        ("Scalar", OWN, "defines no class 'Scalar'", "Its classes: Value, Other."),
        ("Scalar", "x = 1", "defines no class 'Scalar'", "Its classes: none."),
        ("Value", OWN.replace("__mul__", "sine"), "because it lacks sine", "without --replace"),
    ],
)
def test_a_class_that_cannot_be_replaced_is_refused(tmp_path, name, text, problem, remedy):
    ran = execute("tuple", tmp_path, text, replaced=name)
    assert (ran.returncode, ran.stdout) == (2, "")
    first, second = ran.stderr.splitlines()
    assert problem in first
    assert remedy in second


def test_a_module_beside_the_program_may_use_ids(tmp_path):
    (tmp_path / "mine.py").write_text("def text(v):\n    return v.compile()\n")
    text = "from micrograd.engine import Value\nimport mine\nprint(mine.text(Value(1.5)))"
    assert execute("tuple", tmp_path, text).stdout == "data[0] = 1.5;\n"


def test_a_program_that_uses_no_ids_gets_values_without_them(tmp_path):
    text = "from micrograd.engine import Value\nprint(Value.__module__, hasattr(Value(1), '_id'))"
    assert execute("tuple", tmp_path, text.replace("_id", "x")).stdout == "engines.interpreted.tuple False\n"


def test_a_programs_own_modules_come_before_the_tours(tmp_path):
    (tmp_path / "nn.py").write_text("own = True")
    ran = execute("tuple", tmp_path, "import nn, autograd; print(nn.own, autograd.Value.__module__)")
    assert (ran.stdout, ran.stderr) == ("True engines.interpreted.tuple\n", "")


def test_a_name_that_micrograd_lacks_is_an_import_error(tmp_path):
    ran = execute("tuple", tmp_path, "from micrograd.engine import Tensor")
    assert "ImportError: cannot import name 'Tensor'" in ran.stderr


def test_an_engine_without_a_value_is_refused(tmp_path):
    result = execute("handwritten", tmp_path, "print('ran')")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("zoomgrad: handwritten runs whole models only")
    assert "--engine tuple" in result.stderr


def test_an_exception_ends_the_program_as_in_python(tmp_path):
    result = execute("tuple", tmp_path, "1 / 0")
    assert result.returncode == 1
    assert "ZeroDivisionError" in result.stderr


def test_a_process_that_a_program_starts_is_not_marked_as_a_worker(tmp_path):
    """The next run ends processes that a worker left behind; an editor that a program started must stay."""
    text = "import os, subprocess, micrograd; subprocess.run('echo marked: $ZOOMGRAD_HARNESS', shell=True)"
    (tmp_path / "program.py").write_text(text)
    result = subprocess.run(
        [sys.executable, "-m", "harness.worker.execute", "tuple", "", str(tmp_path / "program.py")],
        cwd=ROOT,
        env={**os.environ, HARNESS: identity()},
        capture_output=True,
        text=True,
    )
    assert (result.stdout.strip(), result.stderr) == ("marked:", "")
