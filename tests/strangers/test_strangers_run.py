"""The runner of strangers' programs, tried on small programs of our own."""

import functools
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.compiled.compiling import usable
from tests.strangers import __main__ as strangers
from tests.strangers import notebook
from tests.strangers.__main__ import line, summary
from tests.strangers.find import programs
from tests.strangers.judge import judge
from tests.strangers.run import run

TRAINS = """
import random
from micrograd.nn import MLP
model = MLP(2, [2, 1])
for _ in range(2):
    loss = (model([0.5, -0.25]) - random.random()) ** 2
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= 0.1 * p.grad
print(loss, object())
"""
OWN = """
class Value:
    def __init__(self, value, kind="", parents=()):
        self.value, self.grad, self.parents, self.kind = value, 0.0, set(parents), kind
        self._backward = lambda: None

    def __repr__(self):
        return f"<{self.value} {self.kind}>"

    def __add__(self, other):
        return self.result(self.value + other.value, "+", other, lambda: 1.0, lambda: 1.0)

    def __mul__(self, other):
        return self.result(self.value * other.value, "*", other, lambda: other.value, lambda: self.value)

    def result(self, value, kind, other, left, right):
        out = Value(value, kind, (self, other))
        def _backward():
            self.grad += left() * out.grad
            other.grad += right() * out.grad
        out._backward = _backward
        return out

    def cube(self):
        out = Value(self.value**3, "cube", (self,))
        def _backward():
            self.grad += 3 * self.value**2 * out.grad
        out._backward = _backward
        return out

    def backward(self):
        self.grad = 1.0
        done, order = set(), []
        def visit(v):
            if v not in done:
                done.add(v)
                for parent in v.parents:
                    visit(parent)
                order.append(v)
        visit(self)
        for v in reversed(order):
            v._backward()
"""
USES_OWN = (
    "from own.engine import Value\na = Value(2.0)\nloss = a.cube() * Value(parents=(), value=1.5)\nloss.backward()\n"
)
USES_OWN += "print(loss, a.grad, len(loss.parents))\n"
BACKWARD = "from micrograd.engine import Value\nv = Value(1.0)\nv.backward()\n"


@pytest.fixture
def fare(tmp_path):
    """Write a project, and return the line and the verdict of its only program."""

    def fare(engines=("hoisted",), seconds=20, **files):
        for name, text in files.items():
            file = tmp_path / "project" / name.replace("__", "/")
            file = file.with_suffix(".ipynb" if name.startswith("book") else ".py")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        (program,) = programs(tmp_path)
        verdict = judge(program, engines, functools.partial(run, seconds=seconds))
        return line(verdict, engines), verdict

    return fare


def test_a_program_that_runs_unchanged(fare, monkeypatch):
    usable("native")
    # On a busy machine, the program may take long enough for a speed.
    monkeypatch.setattr(strangers, "SHORTEST", math.inf)
    text, verdict = fare(("native", "hoisted"), program=TRAINS)
    assert text.startswith("unchanged  project/program.py: 11 Values; as by itself; native -")
    assert verdict.engines == {"native": "same", "hoisted": "same"}


def test_a_class_in_a_module_with_names_and_an_operation_of_its_own(fare):
    usable("native")
    _, verdict = fare(("native", "hoisted"), own__engine=OWN, examples__program=USES_OWN)
    assert (verdict.alone, verdict.reason, verdict.from_alone) == ("", "", "")
    assert set(verdict.engines.values()) == {"same"}
    assert verdict.values == 2


def test_a_program_whose_output_depends_on_the_engine(fare):
    text, verdict = fare(program=f"{BACKWARD}print(hasattr(v, '__dict__'))")
    assert text.startswith("differs ")
    assert verdict.changed == {"hoisted": 1}


def test_other_bits_without_other_output(fare):
    _, verdict = fare(program=f"{BACKWARD}w = Value(hasattr(v, '__dict__') * 2.0**-60)")
    assert verdict.engines == {"hoisted": "other bits in w"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise ValueError('mine')", "ValueError: mine"),
        ("while True: pass", "did not end in 1 s"),
        ("import absent_module", "needs absent_module"),
        ("import sys; sys.exit(3)", "exit code 3"),
        ("while True: print('flood' * 10_000)", "printed or wrote too much"),
        ("open('../../outside', 'w')", "PermissionError: a program may write in its own folder only"),
        ("import os; os.remove('/nowhere')", "PermissionError: a program may write in its own folder only"),
        ("import subprocess; subprocess.run(['true'])", "PermissionError: a program may not start processes here"),
        ("import socket; socket.create_connection(('127.0.0.1', 1))", "ConnectionError: there is no network here"),
        ("import os; os.abort()", "died (code -6)"),
        ("input()", "EOFError: EOF when reading a line"),
    ],
)
def test_a_program_that_does_not_run_by_itself(fare, text, reason):
    _, verdict = fare(seconds=1, program=f"{BACKWARD}{text}")
    assert verdict.alone.startswith(reason)


def test_a_program_that_only_we_fail(fare):
    text, _ = fare(program="def same(c): return c\n@same\n" + OWN.lstrip() + "v = Value(1.0)\nv.backward()\n")
    assert text.startswith("fails      project/program.py: refused: ")
    assert text.endswith("program.py:3: a Value can't replace Value, because it has the decorator same")


def test_plots_and_times_do_not_count(fare):
    plots = (
        "import time, matplotlib.pyplot as plt\nfrom graphviz import Digraph\nfig, ax = plt.subplots()\nax.plot([1])\n"
    )
    _, verdict = fare(program=f"{plots}{BACKWARD}print(time.perf_counter_ns())\nDigraph(format='svg').node('a')")
    assert verdict.engines == {"hoisted": "same"}


def book(*cells):
    return json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]})


def test_a_notebook_goes_on_after_a_failing_cell(fare):
    _, verdict = fare(book=book("%matplotlib inline\nimport absent_module", "!pip", "x = = 1", BACKWARD, "v * 2"))
    assert (verdict.alone, verdict.engines, verdict.values) == ("", {"hoisted": "same"}, 1)


def test_a_notebook_without_a_backward_pass_that_ends(fare):
    _, verdict = fare(book=book("import absent_module", f"absent_module.x\n{BACKWARD}"))
    assert verdict.alone == "no cell that calls backward ends: needs absent_module"


def test_the_script_of_a_notebook():
    assert notebook.script(book("a = 1\na")) == "with _zoomgrad_cell(1, False):\n    a = 1\n    _zoomgrad_show(a)\n"
    with pytest.raises(ValueError, match="not a notebook"):
        notebook.script("[]")


def test_a_program_compiles_with_its_loss_in_a_function(fare):
    text = TRAINS.replace("random.random()", "x").replace("loss = ", "x = 0.25\n    loss = ").replace("loss, ", "")
    _, verdict = fare(("compiled:tcc",), program=text)
    assert (verdict.compiled, verdict.moved) == ("same", 5)


def test_what_is_not_a_program(tmp_path):
    (tmp_path / "library.py").write_text(OWN)
    (tmp_path / "test_it.py").write_text(BACKWARD)
    (tmp_path / "arrays.py").write_text(OWN.replace("def cube", "def shape") + "Value(1).shape\nValue(1).backward()\n")
    (tmp_path / "broken.py").write_text("print 'Python 2'")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "program.py").write_text(BACKWARD)
    (tmp_path / "program.py").write_text(BACKWARD)
    assert [(p.name, p.loose) for p in programs(tmp_path)] == [(f"{tmp_path.name}/program.py", True)]


def test_the_totals(fare):
    _, verdict = fare(program=TRAINS)
    totals = "\n".join(summary([verdict], ["hoisted"]))
    assert "1 programs, of which 1 run by themselves" in totals
    assert "1 run unchanged on hoisted with the bits of tuple" in totals


def test_wrong_use():
    ran = subprocess.run(
        [sys.executable, "-m", "tests.strangers", "nowhere"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, "nowhere is not a folder" in ran.stderr) == (2, True)
