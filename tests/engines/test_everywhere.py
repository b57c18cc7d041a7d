"""Checks for other interpreters: they must generate the host's texts, compute its bits and handle C correctly."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.compiled.compiling import ONE_OF_EACH_KIND, usable
from tests.engines.ladder import of_each_value
from zoomgrad import engines
from zoomgrad.harness import workloads

ROOT = Path(__file__).parents[2]
INTERPRETED = [name for name in of_each_value() if engines.load(name).strict]


@pytest.fixture(scope="module")
def host(request):
    """Fingerprints that the host wrote."""
    file = request.config.getoption("--host")
    if not file:
        pytest.skip("nothing to compare with: `python -m tests` passes the host's fingerprints (--host)")
    return json.loads(Path(file).read_text())


def test_generated_texts_are_the_hosts(host):
    """Every stage from the graph to the text runs here, so a different set order or rounding would show."""
    pytest.importorskip("numpy")
    from tests.engines.fingerprints import texts

    expected, found = host["texts"], texts()
    assert found.keys() >= {"bytecode", "python-source", "rerolled-numpy", "handwritten"}
    different = [
        f"{engine}, {graph}"
        for engine in found.keys() & expected.keys()  # for example, only CPython has extension modules
        for graph, text in found[engine].items()
        if text != expected[engine][graph]
    ]
    assert not different, f"{len(different)} texts differ from the host's; the first are {different[:5]}"


@pytest.mark.host
def test_generated_texts_are_the_same_under_any_hash_seed():
    """The order of a set must not affect a text, because every process of a race must compile the same program."""
    pytest.importorskip("numpy")
    command = [sys.executable, "-m", "tests.engines.fingerprints", "--of", "tour", "mlp-6x5x3"]
    found = [
        subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True)
        for seed in ("1", "2")
    ]
    first, second = (json.loads(one.stdout) for one in found)
    assert len(first) > 5
    assert first == second


@pytest.mark.parametrize("name", [*INTERPRETED, *ONE_OF_EACH_KIND, "handwritten"])
def test_trained_parameters_are_the_hosts(name, host):
    """A strict engine must compute the reference CPython's bits on every interpreter of the machine.

    A compiled object may come from the host, but cffi, buffers and training loop are this interpreter's.
    """
    from tests.engines.fingerprints import MORE_STEPS, STEPS, training

    engine = usable(name)
    chosen = {**STEPS, **({} if name in INTERPRETED else MORE_STEPS)}
    chosen = {each: steps for each, steps in chosen.items() if not engine.supports(workloads.load(each))}
    assert chosen
    for workload, steps in chosen.items():
        assert training(engine, workload, steps) == host["trainings"][workload], workload
