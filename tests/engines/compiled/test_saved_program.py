"""A Program that is saved or pickled continues with the same bits."""

import copy
import pickle
from array import array
from dataclasses import replace

import pytest

import engines
from engines.api import Unavailable, UnknownName
from engines.graph.check import BrokenTape
from engines.saving import recipe
from engines.saving.parameters import BadFile
from tests.engines.compiled.compiling import COMPILED

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


def test_the_engines_here_compile():
    assert set(CHEAP) <= set(COMPILED)


@pytest.mark.parametrize("name", CHEAP)
def test_a_pickled_program_continues_with_the_same_bits(name):
    program = program_of(name)
    program.train(ROWS, rate=0.1, batch=2)  # a batch is left half full
    again = pickle.loads(pickle.dumps(program))
    assert again is not program
    assert again.state() == program.state()
    assert again.forward() == program.forward()
    assert again.outputs == program.outputs
    assert again.train(ROWS, rate=0.1, batch=2) == program.train(ROWS, rate=0.1, batch=2)
    assert again.state() == program.state()
    assert pickle.dumps(pickle.loads(pickle.dumps(again))) == pickle.dumps(again)


def test_a_copy_has_buffers_of_its_own():
    program = program_of("bytecode")
    for other in (copy.copy(program), copy.deepcopy(program)):
        other.parameters[0] = 7.0
        assert program.parameters[0] != 7.0


def test_buffers_of_the_caller_are_pickled_by_their_numbers():
    program = program_of("bytecode")
    program.parameters = array("d", range(len(program.parameters)))
    assert list(pickle.loads(pickle.dumps(program)).parameters) == list(program.parameters)


def test_where_the_engine_cannot_run_the_pickle_says_so(monkeypatch):
    program = program_of("bytecode")
    content = pickle.dumps(program)
    engine = engines.load("bytecode")
    monkeypatch.setattr(type(engine), "check", lambda self: (_ for _ in ()).throw(Unavailable("it is not here", "Buy")))
    with pytest.raises(Unavailable, match="it is not here"):
        pickle.loads(content)


def test_a_changed_recipe_corrupts_nothing():
    rebuild, (engine, ops, tape, state) = program_of("bytecode").__reduce__()
    assert rebuild is recipe.rebuild
    for changed in (
        (engine, ops, tape, (array("d"), *state[1:])),
        (engine, ops, tape, (state[0], state[1][:-1], state[2], 0)),
        (engine, ops, replace(tape, parameters=tape.parameters - 1), state),
        (engine, ops, replace(tape, left=array("i", [9999] * len(tape.left))), state),
        (engine, ops, replace(tape, ops=tape.ops[:-1]), state),
        (engine, (*ops, "sin"), tape, state),
        (engine, ops[::-1], tape, state),
    ):
        with pytest.raises(BrokenTape):
            rebuild(*changed)
    with pytest.raises(Unavailable, match="hoisted compiles no graphs"):
        rebuild("hoisted", ops, tape, state)
    with pytest.raises(UnknownName):
        rebuild("bytecoed", ops, tape, state)


def test_a_trainers_program_cannot_be_pickled():
    from harness import workloads

    trainer = engines.load("bytecode").prepare(workloads.load("xor"))
    with pytest.raises(TypeError, match="it was not made by `compile`\n"):
        pickle.dumps(trainer._program)


@pytest.mark.parametrize("name", CHEAP)
def test_saved_parameters_are_loaded(name, tmp_path):
    program, file = program_of(name), tmp_path / "model"
    program.train(ROWS, rate=0.1, batch=2)
    program.save(file, shapes={"layers.0": (3, 2), "layers.1": (1, 4)}, settings={"epoch": "1"})
    other = program_of(name)
    other.train(ROWS, rate=0.5, batch=2)
    found = other.load(file)
    assert found.shapes == {"layers.0": (3, 2), "layers.1": (1, 4)}
    assert found.settings == {"epoch": "1"}
    assert list(other.parameters) == list(program.parameters)
    assert list(other.gradients) == [0.0] * 10
    program.reset()
    assert other.train(ROWS, rate=0.1, batch=2) == program.train(ROWS, rate=0.1, batch=2)


def test_backward_after_load_needs_a_new_forward(tmp_path):
    program = program_of("bytecode")
    program.save(tmp_path / "model")
    program.forward()
    program.load(tmp_path / "model")
    with pytest.raises(RuntimeError, match="backward before forward"):
        program.backward()


def test_parameters_of_another_model_change_nothing(tmp_path):
    program, file = program_of("bytecode"), tmp_path / "model"
    saved_parameters = list(program.parameters)
    engine = engines.load("bytecode")
    w = engine.Value(2.0)
    engine.compile(w * w, inputs=[], parameters=[w]).save(file)
    with pytest.raises(BadFile, match="it holds 1 parameters, not 10\n"):
        program.load(file)
    assert list(program.parameters) == saved_parameters
