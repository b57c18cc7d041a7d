"""A stranger's micrograd program runs unchanged on every engine."""

import json
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.engines.compiled.compiling import usable
from tests.engines.graphs import MICROGRAD_README
from tests.engines.ladder import of_each_value
from zoomgrad import engines

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


def execute(engine, tmp_path, text, *arguments, name="program.py"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "zoomgrad.harness.worker.programs.execute", engine, ""]
    return subprocess.run([*command, str(tmp_path / name), *arguments], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("engine", of_each_value())
def test_the_readme_of_micrograd(engine, tmp_path):
    result = execute(engine, tmp_path, MICROGRAD_README)
    note = "" if engines.load(engine).rebuilds else f"zoomgrad: {engine} .* nothing under exec, because .*\n"
    assert re.fullmatch(note, result.stderr)
    assert result.stdout == "24.7041\n138.8338\n645.5773\n"


def test_a_training_program_with_arguments_and_an_exit_code(tmp_path):
    printed = {engine: execute(engine, tmp_path, TRAINING, "one", "two") for engine in ("", *of_each_value())}
    assert {result.returncode for result in printed.values()} == {3}
    assert len({result.stdout for result in printed.values()}) == 1
    assert printed["tuple"].stdout.splitlines()[1] == "number of parameters 41"


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="on PyPy, no class is replaced")
def test_a_line_says_that_there_was_nothing_to_speed_up(tmp_path):
    ran = execute("", tmp_path, "print('ran')")
    assert (ran.returncode, ran.stdout) == (0, "ran\n")
    assert "program.py neither imported micrograd nor had a class to replace" in ran.stderr


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
    assert (ran.returncode, "x = = 1" in ran.stderr, "harness" in ran.stderr) == (1, True, False)


def test_a_notebook_is_one_program_without_what_only_jupyter_runs(tmp_path):
    cells = ["%matplotlib inline\nimport micrograd\n!pip install x", "if True:\n    !ls\nprint(7 % 4)"]
    cells += ["print(\n    '%d'\n    % 5\n)", "%%bash\nls -l", "%%time\n%time x = 6", "print(x)"]
    written = [{"cell_type": "markdown", "source": ["# No `code` %here"]}]
    written += [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    ran = execute("tuple", tmp_path, json.dumps({"cells": written}), name="book.ipynb")
    assert (ran.stdout, ran.stderr) == ("3\n5\n6\n", "")


@pytest.mark.parametrize("text", ["print(1)", "[]", "{}", '{"cells": [{}]}', '{"cells": 3}', '"text"', "\ufeff"])
def test_what_is_no_notebook_is_refused(tmp_path, text):
    ran = execute("tuple", tmp_path, text, name="book.ipynb")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "can't be read" in ran.stderr and "Name a Python program or a notebook" in ran.stderr


def test_a_programs_own_modules_come_first(tmp_path):
    (tmp_path / "nn.py").write_text("own = True")
    (tmp_path / "micrograd.py").write_text("own = True")
    text = (
        "import nn, autograd, micrograd; print(nn.own, micrograd.own, autograd.Value.__module__)\nimport micrograd.nn"
    )
    ran = execute("tuple", tmp_path, text)
    assert ran.stdout == "True True zoomgrad.engines.interpreted.tuple\n"
    assert "ModuleNotFoundError" in ran.stderr, "ours is not mixed with a package of the program"


def test_an_engine_without_a_value_is_refused(tmp_path):
    usable("handwritten")
    result = execute("handwritten", tmp_path, "print('ran')")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("zoomgrad: handwritten runs whole models only")
    assert "--engine tuple" in result.stderr


@pytest.mark.host
def test_a_program_takes_the_place_of_the_command(tmp_path):
    """Signals reach it, and it is not marked as a worker."""
    text = "import micrograd, os, time\ntry:\n    print(os.environ.get('ZOOMGRAD_HARNESS'), flush=True)\n"
    text += "    time.sleep(60)\nexcept KeyboardInterrupt:\n    exit(3)"
    (tmp_path / "program.py").write_text(text)
    command = [sys.executable, "-m", "zoomgrad", "exec", "--engine", "tuple", str(tmp_path / "program.py")]
    obey = partial(signal.signal, signal.SIGINT, signal.default_int_handler)  # a background job ignores Ctrl-C
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, preexec_fn=obey) as process:
        assert process.stdout.readline() == b"None\n"
        process.send_signal(signal.SIGINT)
    assert process.returncode == 3
