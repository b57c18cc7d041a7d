"""A Program continues with the bits of the parameters that were saved."""

from array import array

import pytest

from zoomgrad import engines
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.saving.parameters import BadFile

CHEAP = ("bytecode", "python-source", "tcc", "tcc-extension", "rerolled-numpy", "rerolled-tcc")
ROWS = array("d", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])


def program_of(name):
    engine = engines.load(name)
    try:
        engine.check()
    except Unavailable as missing:
        pytest.skip(missing.reason)
    x, y = engine.Value(0.5), engine.Value(0.25)
    model = engine.nn.MLP(1, [3, 1], activation="tanh")
    error = (model([x]) - y) ** 2 + (x * 0.5).exp() ** -1 + 3.0
    return engine.compile(error, inputs=[x, y], parameters=model.parameters(), outputs=[model([x])])


@pytest.mark.parametrize("name", CHEAP)
def test_saved_parameters_are_loaded(name, tmp_path):
    program, file = program_of(name), tmp_path / "model"
    program.train(ROWS, rate=0.1, batch=2)
    program.save(file, shapes={"layers.0": (3, 2), "layers.1": (1, 4)}, settings={"epoch": "1"})
    other = program_of(name)
    other.train(ROWS, rate=0.5, batch=2)
    other.forward()
    found = other.load(file)
    with pytest.raises(RuntimeError, match="backward before forward"):
        other.backward()
    assert found.shapes == {"layers.0": (3, 2), "layers.1": (1, 4)}
    assert found.settings == {"epoch": "1"}
    assert list(other.parameters) == list(program.parameters)
    assert list(other.gradients) == [0.0] * 10
    program.zero_grad()
    assert other.train(ROWS, rate=0.1, batch=2) == program.train(ROWS, rate=0.1, batch=2)


def test_parameters_of_another_model_change_nothing(tmp_path):
    program, file = program_of("bytecode"), tmp_path / "model"
    saved_parameters = list(program.parameters)
    engine = engines.load("bytecode")
    w = engine.Value(2.0)
    engine.compile(w * w, inputs=[], parameters=[w]).save(file)
    with pytest.raises(BadFile, match="it holds 1 parameters, not 10\n"):
        program.load(file)
    assert list(program.parameters) == saved_parameters
