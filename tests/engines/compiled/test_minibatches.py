"""accumulate and predict: the bits of one row after the other, and nothing else of the program changes."""

from __future__ import annotations

import itertools
import math

import pytest

from tests.engines.compiled.compiling import (
    CLASSIFIER_ROWS,
    COMPILED,
    by_kernel,
    compiled,
    doubles,
    train_by_hand,
    usable,
)
from tests.engines.graphs import bits, classifier
from zoomgrad.engines.columns import Column
from zoomgrad.engines.graph.value import Value

NAN = math.nan


def state(program):
    """Everything that a caller sees."""
    return [bits(buffer) for buffer in (program.inputs, program.outputs, program.parameters, program.gradients)]


@pytest.mark.parametrize("name", by_kernel(COMPILED))
def test_a_network_in_minibatches(name):
    """Sums of gradients over rows that wrap around, then predictions with the weights that they give."""
    graph, kinds = classifier()
    found = compiled(usable(name), graph, kinds, graph.numbers, [0, 1, -1])
    rows, rates, program, losses = CLASSIFIER_ROWS, [0.1, 0.05], found.program, doubles()
    expected = train_by_hand(graph, kinds, graph.numbers, rows, rates, 5, 10)
    for part, rate in enumerate(rates):
        losses += program.accumulate(doubles(*itertools.chain(*rows)), 5 * part % len(rows), 5)
        program.update(rate, 5)
    assert bits(losses) == bits(expected.losses)
    assert bits(program.parameters) == bits(expected.parameters)
    before = state(program)
    predicted = program.predict(rows, 2, 5)
    assert state(program) == before
    for step, outputs in enumerate(predicted):
        program.set_input(rows[(2 + step) % len(rows)])
        program.forward()
        assert bits(program.outputs) == bits(outputs)


def test_a_program_without_inputs(engine):
    p = Value(3.0)
    program = engine.compile((p - 1.0) ** 2, inputs=[], parameters=[p], outputs=[p * 2.0])
    assert list(map(list, program.predict(steps=2))) == [[6.0], [6.0]]
    assert list(program.accumulate(steps=3)) == [4.0] * 3
    assert list(program.gradients) == [12.0]
    program.zero_grad()
    for rows in (None, (), []):
        program.train(rows, rate=lambda update: 0.25, steps=1)
    assert list(program.parameters) == [1.25]
    with pytest.raises(ValueError, match=r"the program has no outputs\n  Name them"):
        engine.compile(p * p, inputs=[], parameters=[p]).predict(steps=1)


@pytest.fixture
def model(engine):
    """Outputs of two features and a parameter; the loss also reads a target."""
    x, y, t, p = (Value(n) for n in (1.0, 2.0, 3.0, 0.5))
    outputs = [x * p, x + y]
    return engine.compile((outputs[0] * y - t) ** 2, inputs=[x, y, t], parameters=[p], outputs=outputs)


def test_rows_of_features(model):
    wanted = [[1.0, 6.0], [4.0, 9.0]]
    features = memoryview(doubles(2.0, 4.0, 8.0, 1.0)).cast("B").cast("d", (2, 2))
    columns = [Column(doubles(2.0, 8.0), 1), Column(b"\x04\x01", 1)]
    targets = Column(doubles(NAN, 5.0), 1)
    for rows in ([[2, 4], [8, 1]], features, [features], columns, (features, targets), [[2, 4, NAN], [8, 1, NAN]]):
        assert list(map(list, model.predict(rows))) == wanted
        assert list(map(list, model.predict(rows, 1, 3))) == [wanted[1], wanted[0], wanted[1]]
    with pytest.raises(
        ValueError, match="each row has 1 number in its columns, and the program takes 3 or the first 2"
    ):
        model.predict(columns[0])
    with pytest.raises(ValueError, match="row 1 has 3 numbers, not 2"):
        model.predict([[1, 2], [1, 2, 3]])
    with pytest.raises((MemoryError, OverflowError)):
        model.predict([[1, 2]], steps=2**53)
    for use in (model.accumulate, model.set_input):
        with pytest.raises(ValueError, match="each row has 2 numbers in its columns, and the program takes 3"):
            use(features)


def test_predictions_use_no_other_input(engine):
    """An input that an output depends on can't be left out, even if it comes last."""
    x, t, p = Value(1.0), Value(2.0), Value(0.5)
    program = engine.compile(x * t * p, inputs=[x, t], parameters=[p], outputs=[t * p])
    with pytest.raises(ValueError, match="row 0 has 1 number, not 2"):
        program.predict([[1.0]])
    assert list(map(list, program.predict([[1.0, 4.0]]))) == [[2.0]]


# --- NumPy -----------------------------------------------------------------------------------------------------------


def test_rows_of_numpy(model):
    np = pytest.importorskip("numpy")
    rows = np.arange(12.0).reshape(4, 3)
    features, targets = rows[:, :2].copy(), rows[:, 2:].copy()
    losses = model.accumulate(doubles(*rows.ravel()))
    sums = list(model.gradients)
    read_only = rows.copy()
    read_only.flags.writeable = False
    for same in (rows, (features, targets), [features, targets[:, 0].copy()], list(rows), read_only):
        model.zero_grad()
        assert model.accumulate(same) == losses
        assert list(model.gradients) == sums
        assert np.array_equal(model.predict(same), model.predict(features))
    refused = {
        "float32": rows.astype(np.float32),
        "Fortran's order": np.asfortranarray(rows),
        "a pair with float32": (features, targets.astype(np.float32)),
    }
    for wrong in refused.values():
        for use in (model.accumulate, model.predict, lambda rows: model.train(rows, rate=0.1)):
            with pytest.raises(TypeError, match=r"\n  Convert it: `np.ascontiguousarray\(X, dtype=np.float64\)`"):
                use(wrong)
    for wrong in (np.zeros((0, 3)), np.zeros((3, 0)), (features, targets[:3].copy()), np.zeros((2, 4))):
        with pytest.raises(ValueError, match=r"at least one|each row has 4 numbers"):
            model.accumulate(wrong)
