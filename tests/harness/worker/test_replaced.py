"""A program's class is replaced by one in C if it computes the same, and the program prints the same in any case."""

import contextlib
import io
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.engines.compiled.compiling import usable
from tests.harness.worker.own_classes import CLOSURES, NUMBERS, USE

pytestmark = pytest.mark.skipif(sys.implementation.name != "cpython", reason="only CPython has classes in C")

ROOT = Path(__file__).parents[3]


def execute(path, text, *options):
    """Run a program under `exec`: its output, and what standard error says."""
    usable("native")
    path.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "zoomgrad", "exec", *options, path.name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}  # a worker's environment has no zoomgrad
    return subprocess.run(command, cwd=path.parent, env=environment, capture_output=True, text=True)


def by_itself(text):
    """What the program prints, and its names."""
    output, names = io.StringIO(), {"__name__": "program", "__file__": ""}
    with contextlib.redirect_stdout(output):
        exec(compile(text, "program.py", "exec"), names)
    return output.getvalue()


def changed(text, changes):
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


# name: text of the class, changes in it, statements after USE
REPLACED = {
    "of the video": (CLOSURES, [], "print(a._prev == set(), c._op, len(c._prev), a.tanh()._op)"),
    "of microgpt": (NUMBERS, [], "print(a.relu().data, a._local_grads, c._local_grads, (a * b)._local_grads)"),
    "with its own text": (
        CLOSURES,
        [
            (
                "\n    def __add__",
                '\n    def __repr__(self):\n        return f"V({self.data}, {self._op})"\n\n    def __add__',
            )
        ],
        "print(c, [a, b], f'{d}')",
    ),
    "with two arguments": (
        CLOSURES,
        [
            *((', _op="", label=""', ""), (', "+")', ")"), (', "*")', ")"), (', "tanh")', ")")),
            *(("_op = _op", "x = 1"), ("label = label", "y = 1")),
        ],
        "",
    ),
    "without a label": (CLOSURES, [('label=""', "label=None")], "print(c.label, Value(1.0, label='x').label)"),
    "with other names": (
        CLOSURES,
        [("data", "value"), ("grad", "slope"), ("_prev", "parents"), ("_op", "kind"), ("backward", "backprop")],
        "print(c.parents == {*c.parents}, c.kind)",
    ),
    "with operands of results only": (
        CLOSURES,
        [
            *(("_children=()", "_children=None"), ("set(_children)", "_children and [*_children]")),
            *(("        self._backward = lambda: None\n", ""), ("in v._prev", "in v._prev or ()")),
            ("v._backward()", "v._prev and v._backward()"),
        ],
        "print(a._prev, len(c._prev), Value(1.0, None, label='x').label)",
    ),
    "with two texts of an operation": (
        CLOSURES,
        [('"+")', '"+", "add")'), ('"*")', '"*", "mul")')],
        "d.label = 'x'; print(c.label, a.label, d.label, (a * b).label, a.tanh()._op, a.tanh().label)",
    ),
    "that makes floats": (
        CLOSURES,
        [("self.data = data", "self.data = float(data)")],
        "print((a * 2).data, Value(3).data, [v.data for v in (a * 2)._prev if v is not a])",
    ),
    "with arrays": (
        CLOSURES,
        [],
        "import numpy\nv = Value(numpy.array([2.0, 3.0])); w = v * v + 2 * v; w.backward(); print(w.data, v.grad)\n"
        "v.grad = None; print(v.grad, Value([1]).data)",
    ),
    "with ints": (
        CLOSURES,
        [("0.0", "0"), ("1.0", "1")],
        "v = Value(3); w = v * 2 + v; w.backward(); print(w.data, v.grad, w.grad)",
    ),
    "with a setting": (
        NUMBERS,
        [
            ("local_grads=()", "local_grads=(), requires_grad=True"),
            ('"grad",', '"grad", "requires_grad",'),
            ("self.data, ", "self.requires_grad = requires_grad\n        self.data, "),
        ],
        "print(c.requires_grad, Value(1, requires_grad=False).requires_grad)",
    ),
    "with another tanh": (
        CLOSURES,
        [
            (
                "(math.exp(2 * self.data) - 1) / (math.exp(2 * self.data) + 1)",
                "math.sinh(self.data) / math.cosh(self.data)",
            )
        ],
        "e = a.tanh() + a; e.backward(); print(e.data, a.grad)",
    ),
    "with an heir": (
        CLOSURES + "class Heir(Value):\n    kind = 'heir'\n",
        [("Value(self", "type(self)(self")],
        "print((Heir(2.0) * 3.0).kind, isinstance(Heir(1.0), Value))",
    ),
    "in a function": (
        "def make():\n"
        + CLOSURES.strip().replace("\n", "\n    ").replace("import", "    import")
        + "\n    return Value\n\nValue = make()\n",
        [],
        "",
    ),
    "that is copied and kept": (
        CLOSURES,
        [],
        "import copy, pickle\na.m = [1]\n"
        "for v in copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a)) if __file__ else a:\n"
        "    print(v.data, v.grad, v.m, type(v) is Value)",
    ),
    "with an operation outside": (
        NUMBERS,
        [],
        "e = Value(math.sin(a.data), children=(a,), local_grads=(math.cos(a.data),))\na.grad = 0\n"
        "(e * 2).backward()\nprint(a.grad, a.sin().data, e._local_grads)",
    ),
}


@pytest.mark.parametrize("name", REPLACED)
def test_a_class_is_replaced_and_the_program_prints_the_same(tmp_path, name):
    text, changes, tail = REPLACED[name]
    changes_of_use = [each for each in changes if name == "with other names" and each[0] in USE]
    text = f"{changed(text, changes)}{changed(USE, changes_of_use)}{tail}\n"
    ran = execute(tmp_path / "program.py", text)
    assert ran.stdout == by_itself(text), ran.stderr
    assert re.fullmatch(r"zoomgrad: program.py:\d+: Value runs in C.*\n", ran.stderr), ran.stderr


# name: text of the class, changes in it, the operations that stay the program's own and their difference
IN_PART = {
    "= for +=": (
        CLOSURES,
        [("self.grad += (1 - t", "self.grad = (1 - t")],
        "tanh: with a = 0.37 and b = -1.29, the grad",
    ),
    "a leaky relu": (
        NUMBERS,
        [("max(0, self", "max(0.01 * self.data, self")],
        "relu: with a = -3.1 and b = 2.3, the data of",
    ),
    "a clamped log": (
        NUMBERS,
        [("log(self.data)", "log(max(self.data, 1e-10))"), ("max(0, self", "max(1e-3, self")],
        "log: with",
    ),
}


@pytest.mark.parametrize("name", IN_PART)
def test_an_operation_that_differs_stays_and_the_line_says_how(tmp_path, name):
    text, changes, reason = IN_PART[name]
    text = (
        changed(text, changes) + USE + "e = a.tanh() * a + a if hasattr(a, 'tanh') else (a * b).relu() * a + a.log()\n"
    )
    text += "e.backward()\nprint(a.grad, e.data)\n"
    ran = execute(tmp_path / "program.py", text)
    assert ran.stdout == by_itself(text)
    assert re.fullmatch(r"zoomgrad: program.py:\d+: Value runs in C, except .*, which differ: .*\n", ran.stderr)
    assert reason in ran.stderr


# name: text of the class, changes in it, a part of the reason
KEPT = {
    "sums that overwrite": (CLOSURES, [("self.grad += out", "self.grad = out")], "the gradient of a in"),
    "a pass that starts anew": (
        CLOSURES,
        [("self.grad = 1.0", "[setattr(v, 'grad', 0.0) for v in order]\n        self.grad = 1.0")],
        "the gradient of",
    ),
    "rules of another kind": (
        CLOSURES,
        [("lambda: None", "lambda v: None"), ("_backward():", "_backward(v):"), ("v._backward()", "v._backward(v)")],
        "neither in a function nor as a number",
    ),
    "a class that prints": (
        CLOSURES,
        [("self.grad += out.grad", "print('+')\n            self.grad += out.grad")],
        "changes the output",
    ),
    "a setting that matters": (
        CLOSURES,
        [("= label", "= label\n        self.trained = True"), ("self.grad += out", "self.grad += self.trained * out")],
        "after a change of trained",
    ),
    "a sum of all objects": (
        "made = []\n" + CLOSURES,
        [("self.label = label", "self.label = label\n        made.append(1)")],
        "changes made",
    ),
    "an heir of such a class": (
        CLOSURES + "class Heir(Value):\n    kind = 'heir'\n",
        [("self.grad += out", "self.grad = out")],
        "its operators create objects of another class, Value",
    ),
    "a label of its data": (CLOSURES, [("= label", "= label or str(data)")], "attribute label differs"),
    "a counter": (
        CLOSURES,
        [("self.label = label", "self.label = Value.made = getattr(Value, 'made', 0) + 1")],
        "attribute label differs",
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_class_that_differs_runs_as_it_is_and_the_line_says_why(tmp_path, name):
    text, changes, reason = KEPT[name]
    text = changed(text, changes) + USE
    ran = execute(tmp_path / "program.py", text)
    assert ran.stdout == by_itself(text)
    assert re.fullmatch(r"(zoomgrad: program.py:\d+: \w+ runs as it is, because .*\n)+", ran.stderr), ran.stderr
    assert reason in ran.stderr


def test_the_comparison_leaves_no_trace(tmp_path):
    """It prints nothing, draws no random numbers, counts nothing, and ends."""
    noisy = ("self.data = data", "self.data = data\n        calls.append(print('made', random.random()))")
    text = "import random\nrandom.seed(1)\ncalls = []\n" + changed(CLOSURES, [noisy])
    text += "v = Value(1.0, ())\nprint(len(calls), random.random())\n"
    assert execute(tmp_path / "program.py", text).stdout == by_itself(text)


def test_a_comparison_that_does_not_end(tmp_path, monkeypatch):
    from zoomgrad.harness.worker.programs import probe

    class Endless:
        def __init__(self, data):
            while True:
                time.sleep(1)

        def __add__(self, other): ...

    monkeypatch.setattr(probe, "LIMIT_SECONDS", 1)
    assert probe.probe(Endless, None, formulas=True) == "comparing them did not end in 1 s"


def test_the_class_is_found_in_modules(tmp_path):
    """In a package beside the program, and in a folder that the program adds to its path; its own micrograd first."""
    for file in ("app/micrograd/engine.py", "lib/other.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(CLOSURES)
    (tmp_path / "app/micrograd/nn.py").write_text("from .engine import Value\ndef own():\n    return 'own'\n")
    text = "import sys\nsys.path.insert(0, '../lib')\nimport other\nfrom micrograd import nn\n"
    text += "from micrograd.engine import Value\n"
    ran = execute(tmp_path / "app/program.py", text + USE + "print(nn.own(), (other.Value(2.0) * 3.0).data)")
    assert ran.stdout.endswith("own 6.0\n")
    assert re.findall(r"(\S+):\d+: Value runs in C", ran.stderr) == [
        str(tmp_path / "app/../lib/other.py"),
        "micrograd/engine.py",
    ]


def test_a_class_is_kept(tmp_path):
    assert execute(tmp_path / "program.py", CLOSURES + USE, "--keep").stderr == ""


def test_a_compiled_loss_is_an_object_of_the_programs_class(tmp_path):
    text = changed(CLOSURES, [("_prev", "parents")]).replace("import math", "import math, zoomgrad")
    text += "    def __repr__(self):\n        return f'V({self.data}, {self.grad})'\n"
    text += "@zoomgrad.compiled()\ndef loss(w, x):\n    return w * x\n"
    text += "w = Value(2.0)\nfor x in 1.5, 2.5:\n    v = loss(w, x)\n    v.label = 'loss'\n    v.backward()\n"
    text += "    print(v, v.label, isinstance(v, Value), v.parents == {w}, w.grad, v + 1)\n"
    ran = execute(tmp_path / "program.py", text)
    assert ran.stdout == "V(3.0, 1.0) loss True True 1.5 V(4.0, 0.0)\nV(5.0, 1.0) loss True True 4.0 V(6.0, 0.0)\n"
