"""Graphs of workloads, builds of them, and what runs in a Python that has nothing of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import engines
from engines.api import Unavailable
from harness import workloads
from harness.standalone import graphs
from harness.standalone.make import Form, make

ALONE = """
import json, sys
from array import array
sys.path.insert(0, {folder!r})
import {name} as module
assert not [m for m in sys.modules if m.split('.')[0] in ('engines', 'harness', 'results', 'datasets', 'cffi', 'numpy')]
def bits(numbers):
    return [x.hex() for x in numbers]
def columns(files):
    return tuple((array('d', open(f, 'rb').read()) if d else open(f, 'rb').read(), w, v, o) for f, d, w, v, o in files)
"""


def usable(name):
    engine = engines.load(name)
    try:
        engine.check()
    except Unavailable as missing:
        pytest.skip(str(missing))
    return engine


def build(folder, workload, engine, form=Form.module, *, frozen=False):
    """The workload and the engine of a build in that folder."""
    engine, task = usable(engine), workloads.load(workload)
    make(engine, graphs.of_workload(engine, task), folder, form, frozen=frozen)
    return engine, task


def run_alone(folder, name, program, *, python=sys.executable, code=0):
    """What the program prints as JSON, in a Python without any path of ours. code: its expected exit code."""
    text = ALONE.format(folder=str(folder), name=name) + program
    result = subprocess.run(
        [python, "-I", "-S", "-c", text],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
    )
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout) if not code else result.stderr


def described(folder, columns):
    """Columns as files for `ALONE`."""
    found = []
    for number, column in enumerate(columns):
        view = memoryview(column.data)
        (folder / f"column{number}").write_bytes(view.tobytes())
        found.append([str(folder / f"column{number}"), view.format == "d", *column[1:]])
    return found


def bits(numbers):
    return [float(x).hex() for x in numbers]
