"""accumulate and predict: the bits of one row after the other, and nothing else of the program changes."""

from __future__ import annotations

import itertools
import math
from array import array

import pytest

from tests.engines.compiled.compiling import (
    CLASSIFIER_ROWS,
    COMPILED,
    ONE_OF_EACH_KIND,
    by_kernel,
    compiled,
    usable,
)
from tests.engines.graphs import bits, classifier
from zoomgrad.engines.api import NonFiniteLoss
from zoomgrad.engines.columns import Column
from zoomgrad.engines.graph.value import Value

NAN = math.nan


@pytest.fixture(params=ONE_OF_EACH_KIND)
def engine(request):
    return usable(request.param)


def doubles(*numbers):
    return array("d", numbers)


def state(program):
    """Everything that a caller sees."""
    return [bits(buffer) for buffer in (program.inputs, program.outputs, program.parameters, program.gradients)]


# --- the same bits as row by row -------------------------------------------------------------------------------------


def check_minibatches(program, rows, batch, steps):
    """Compare minibatches, and their predictions, with rows one by one and with `train`. The losses must be finite."""
    start = doubles(*program.parameters)
    flat = doubles(*itertools.chain(*rows))
    order = [step % len(rows) for step in range(steps)]
    parts = [order[at : at + batch] for at in range(0, steps, batch)]
    rates = [0.1 / (update + 1) for update in range(len(parts))]
    results = {}
    for how in ("one by one", "accumulate", "train"):
        program.parameters[:] = start
        program.zero_grad()
        losses, outputs = doubles(), []
        for rate, part in zip(rates, parts):
            if how == "one by one":
                for row in part:
                    program.set_input(rows[row])
                    losses.append(program.forward())
                    outputs.append(bits(program.outputs))
                    program.backward()
            elif how == "accumulate":
                seen = state(program)
                outputs += (
                    map(bits, program.predict(rows, part[0], len(part))) if program.outputs else [b""] * len(part)
                )
                assert state(program) == seen
                losses += program.accumulate(flat, part[0], len(part))
            else:
                losses += program.train(flat, rate=rate, batch=batch, steps=len(part), first_row=part[0])
            if how != "train" and len(part) == batch:
                program.update(rate, batch)
        results[how] = bits(losses), bits(program.parameters), bits(program.gradients), outputs
    assert results["accumulate"] == results["one by one"]
    assert results["train"][:3] == results["one by one"][:3]


@pytest.mark.parametrize("name", by_kernel(COMPILED))
def test_a_network_in_minibatches(name):
    graph, kinds = classifier()
    found = compiled(usable(name), graph, kinds, graph.numbers, [0, 1, -1])
    for batch, steps in ((1, 3), (3, 7), (9, 20)):
        check_minibatches(found.program, CLASSIFIER_ROWS, batch, steps)


# --- accumulate ------------------------------------------------------------------------------------------------------


def test_a_partial_batch_survives_minibatches(engine):
    """`accumulate` and `predict` neither continue it nor discard it; the gradients add up, as after `backward`."""
    x, p = Value(1.0), Value(1.0)
    program = engine.compile(x * p, inputs=[x], parameters=[p], outputs=[x])
    program.train(doubles(1.0, 2.0), rate=1.0, batch=3)
    program.accumulate(doubles(4.0, 8.0, 16.0, 32.0))
    program.predict(doubles(4.0))
    assert (list(program.parameters), list(program.gradients)) == ([1.0], [63.0])
    program.train(doubles(3.0), rate=1.0, batch=3)
    assert (list(program.parameters), list(program.gradients)) == ([1.0 - 66.0 / 3], [0.0])


def test_a_loss_that_is_not_finite_ends_a_minibatch(engine):
    x, p = Value(1.0), Value(1.0)
    program = engine.compile(x * p, inputs=[x], parameters=[p], outputs=[x])
    with pytest.raises(NonFiniteLoss) as error:
        program.accumulate(doubles(1.0, 2.0, NAN, 4.0))
    assert error.value.step == 2
    assert (list(program.parameters), list(program.gradients)) == ([1.0], [3.0])


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


# --- predict ---------------------------------------------------------------------------------------------------------


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
