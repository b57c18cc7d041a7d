"""`zoomgrad build`: the module in a Python that has nothing of ours, and the folder that it fills."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from tests.engines.compiled.compiling import usable
from zoomgrad.harness import built_module, workloads
from zoomgrad.harness.machine import interpreters
from zoomgrad.harness.machine.project import with_project

ALONE = """
import json, sys
from array import array
sys.path.insert(0, {folder!r})
printed = []
exec({example!r}, {{"print": lambda *texts: printed.append(texts)}})
assert not [m for m in sys.modules if m.split('.')[0] in ('zoomgrad', 'cffi', 'numpy')]
print(json.dumps(printed))
"""


def zoomgrad(folder, *arguments):
    command = [sys.executable, "-m", "zoomgrad", "build", *arguments]
    return subprocess.run(
        command, cwd=folder, env=with_project(os.environ), capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    usable("tcc-extension")
    folder = tmp_path_factory.mktemp("project")
    done = zoomgrad(folder, "xor", "--into", "built/xor")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("Import it: `cd built/xor && python -c 'import xor; help(xor)'`.")
    return folder / "built" / "xor"


def the_readme_prints(folder, python):
    example = re.search(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)[1]
    command = [python, "-I", "-S", "-c", ALONE.format(folder=str(folder), example=example)]
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=100, env={"PATH": os.environ["PATH"]}
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_the_readmes_example_prints_the_engines_bits_without_zoomgrad(folder):
    engine, workload = usable("tcc-extension"), workloads.load("xor")
    model = workload.model(engine.nn)
    inputs = [engine.Value(x) for x in workload.row(0)]
    outputs = workload.outputs(model, inputs)
    loss = workload.loss(model, inputs, outputs)
    program = engine.compile(loss, inputs=inputs, parameters=model.parameters(), outputs=outputs)
    rows = [[(3 * row + column) % 7 / 7.0 for column in range(3)] for row in range(4)]
    losses = [*program.train(rows, rate=0.001, batch=2)]
    program.set_input(rows[0])
    expected = [[losses], [program.forward(), [*program.outputs]]]
    assert the_readme_prints(folder, sys.executable) == expected


def test_other_pythons_import_it(folder):
    expected = the_readme_prints(folder, sys.executable)
    for found in interpreters.discover():
        if re.fullmatch(r"cpython-3\.1[1-9][.\d]*", found.name):
            assert the_readme_prints(folder, str(found.path)) == expected


def test_a_file_is_never_replaced(folder):
    readme = folder / "README.md"
    text = readme.read_text()
    refused = zoomgrad(folder.parent, "xor", "--into", "xor")
    assert (refused.returncode, readme.read_text()) == (2, text)
    assert "exists\n  Name another folder" in refused.stderr


@pytest.mark.parametrize(
    ("text", "name"),
    [("xor", "xor"), ("mlp-2x3x1", "mlp_2x3x1"), ("random", "model_random"), ("7", "model_7"), ("for", "model_for")],
)
def test_a_name_is_an_identifier_that_hides_no_module(text, name):
    assert built_module.module_name(text) == name
