"""The runner of strangers' programs, tried on small programs of our own."""

import functools
import json

import pytest

from tests.engines.compiled.compiling import usable
from tests.harness.worker.own_classes import CLOSURES, USE
from tests.strangers import notebook
from tests.strangers.__main__ import line, summary
from tests.strangers.find import programs
from tests.strangers.judge import judge
from tests.strangers.run import run

TRAINS = """
import random
import time
from micrograd.nn import MLP
model = MLP(2, [2, 1])
for _ in range(2):
    loss = (model([0.5, -0.25]) - random.random()) ** 2
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= 0.1 * p.grad
print(loss, object())
print(time.perf_counter(), "differs from run to run")
"""
BACKWARD = "from micrograd.engine import Value\nv = Value(1.0)\nv.backward()\n"


@pytest.fixture
def fare(tmp_path):
    """Write a project, and return the line and the verdict of its only program."""

    def fare(seconds=20, **files):
        for name, text in files.items():
            file = tmp_path / "project" / name.replace("__", "/")
            file = file.with_suffix(".ipynb" if name.startswith("book") else ".py")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        (program,) = programs(tmp_path)
        verdict = judge(program, functools.partial(run, seconds=seconds))
        return line(verdict), verdict

    return fare


def test_a_program_that_imports_micrograd(fare):
    usable("native")
    text, verdict = fare(program=TRAINS)
    assert text.startswith("project/program.py: micrograd; same")
    assert "\n".join(summary([verdict])).startswith("\n1 programs, of which 1 run by themselves\n  1 print the same")


def test_a_class_that_runs_as_it_is(fare):
    usable("native")
    text, _ = fare(program=CLOSURES.replace("self.grad += out", "self.grad = out") + USE)
    assert text.startswith("project/program.py: as it is; same; ")
    assert "the gradient of a in" in text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise ValueError('mine')", "ValueError: mine"),
        ("while True: pass", "did not end in 1 s"),
        ("import absent_module", "needs absent_module"),
        ("while True: print('flood' * 10_000)", "printed or wrote too much"),
        ("open('../../outside', 'w')", "PermissionError: a program may write in its own folder only"),
        ("import subprocess; subprocess.run(['true'])", "PermissionError: a program may not start processes here"),
        ("import socket; socket.create_connection(('127.0.0.1', 1))", "ConnectionError: there is no network here"),
    ],
)
def test_a_program_that_does_not_run_by_itself(fare, text, reason):
    _, verdict = fare(seconds=1, program=f"{BACKWARD}{text}")
    assert verdict.alone.startswith(reason)


def book(*cells):
    return json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]})


def test_a_notebook_goes_on_after_a_failing_cell(fare):
    _, verdict = fare(book=book("%matplotlib inline\nimport absent_module", "!pip", "x = = 1", BACKWARD, "v * 2"))
    assert (verdict.alone, verdict.exec) == ("", "same")
    assert notebook.script(book("a = 1\na")) == "with _stranger_cell(1, False):\n    a = 1\n    _stranger_show(a)\n"
