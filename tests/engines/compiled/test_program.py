"""The interface of Program: accepted arguments, refusals, and what training does to the buffers."""

from __future__ import annotations

import math
import subprocess
import sys
from array import array
from dataclasses import replace

import pytest

from tests.engines.compiled.compiling import ONE_OF_EACH_KIND, doubles, usable
from zoomgrad.engines.api import NonFiniteLoss
from zoomgrad.engines.columns import MOST_COLUMNS, Column
from zoomgrad.engines.graph.value import Value
from zoomgrad.harness import workloads


def squared_distance(engine):
    """Compile the squared distance between a weighted sum of two inputs and the third. Its numbers are exact."""
    x, y, t, v, w = (Value(n) for n in (1.0, 2.0, 3.0, 0.5, -1.0))
    out = x * v + y * w
    return engine.compile((out - t) ** 2, inputs=[x, y, t], parameters=[v, w], outputs=[out])


def product(engine, scale=1.0):
    """Compile the loss x * p * scale. Over a row of 1 it equals p * scale."""
    x, p = Value(1.0), Value(1.0)
    return engine.compile(x * p * scale, inputs=[x], parameters=[p])


def state(program):
    return list(program.parameters), list(program.gradients)


# --- a step ------------------------------------------------------------------------------------------------------


BOUND = """
import gc, sys
from zoomgrad import engines
engine = engines.load(sys.argv[1])
x, p = engine.Value(2.0), engine.Value(3.0)
_, parameters, gradients, forward, backward = engine.compile(x * p, inputs=[x], parameters=[p]).bound()
gc.collect()
parameters[0] = 5.0
loss = forward()
backward()
print(loss, *gradients)
"""


@pytest.mark.parametrize("name", ["bytecode", "tcc", "tcc-extension", "rerolled-machine"])
def test_bound_passes_outlive_the_program(name):
    """They call into a library. If it were unloaded, the process would crash, so it is another one."""
    ended = subprocess.run([sys.executable, "-c", BOUND, usable(name).name], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "10.0 2.0\n"), ended.stderr


def test_two_programs_do_not_share_numbers(engine):
    """Two objects in one process export the same names, but must not see each other's functions or values."""
    first, second = product(engine, 2.0), product(engine, 3.0)
    second.set_input([5.0])
    assert (first.forward(), second.forward()) == (2.0, 15.0)
    first.backward()
    second.backward()
    assert (list(first.gradients), list(second.gradients)) == ([2.0], [15.0])


def test_a_parameter_as_the_loss(engine):
    """`backward` sets the gradient of the loss to 1, also where the loss is a parameter: nothing adds up."""
    for outputs in (lambda w, x: [], lambda w, x: [w * x]):
        x, w, unused = Value(1.0), Value(2.0), Value(3.0)
        program = engine.compile(w, inputs=[x], parameters=[unused, w], outputs=outputs(w, x))
        for _ in range(2):
            program.forward()
            program.backward()
        assert list(program.gradients) == [0.0, 1.0]
        program.zero_grad()
        assert list(program.train(doubles(1.0, 1.0, 1.0), rate=0.125, batch=2)) == [2.0, 2.0, 1.9375]
        assert state(program) == ([3.0, 1.9375], [0.0, 1.0])
        program.zero_grad()
        program.train(doubles(1.0, 1.0, 1.0), rate=0.125)
        assert state(program) == ([3.0, 1.5625], [0.0, 0.0])


# --- refusals ----------------------------------------------------------------------------------------------------

REFUSED_ROWS = {
    "too short": (doubles(1.0, 2.0), ValueError, "row 0 has 2 numbers, not 3\n  Each row must have one"),
    "nothing": (doubles(), ValueError, "every column must hold the same number of rows, at least one"),
    "a huge int": ([[1.0, 10**400, 1.0]], ValueError, "row 0 has a number that is too large"),
    "a short row": ([[1.0, 2.0, 3.0], [1.0]], ValueError, "row 1 has 1 number, not 3"),
    "a row of text": ([[1.0, 2.0, "3"]], TypeError, "row 0 does not hold numbers: "),
    "a dictionary": ([[1, 2, 3], {1: 1, 2: 2, 3: 3}], TypeError, "row 1 must be a list of numbers, not dict"),
    "flat buffers": ((doubles(1, 2, 3), doubles(1, 2, 3)), TypeError, "a tuple of flat buffers could hold rows or"),
    "a list beside a matrix": ((memoryview(bytes(2)).cast("B", (1, 2)), [1.0]), TypeError, "a column .* not list"),
    "no buffer": (3.5, TypeError, "a column must be a buffer of doubles or bytes, not float\n  Pass `array.array"),
    "floats of 4 bytes": (array("f", [1, 2, 3]), TypeError, "contiguous buffer of doubles or bytes; its format is 'f'"),
    "every second": (memoryview(doubles(*range(6)))[::2], TypeError, "must be a flat or two-dimensional, C-contig"),
    "a cube": (memoryview(bytes(6)).cast("B", (1, 2, 3)), TypeError, "its format is 'B', in 3 dimensions"),
    "a wide matrix": (memoryview(bytes(4)).cast("B", (1, 4)), ValueError, "each row has 4 numbers in its columns"),
    "a column's matrix": (Column(memoryview(bytes(4)).cast("B", (2, 2)), 3), ValueError, "row of its matrix has 2"),
    "no columns' width": ([Column(bytes(4), 0)], ValueError, "a column has 0 inputs per row"),
    "a width that wraps around": (Column(doubles(1.0), 2**63), ValueError, "a column's width must be a whole number"),
    "a wide column of labels": (Column(b"\0", 2**53, one_hot=True), ValueError, "has 9,007,199,254,740,992 numbers"),
    "a divisor of 0": (Column(b"123", 3, 0.0), ValueError, "a column's divisor must not be 0"),
    "a huge divisor": (Column(b"123", 3, 10**400), ValueError, "a column's divisor must be a finite number"),
    "a divisor of text": (Column(b"123", 3, "2"), TypeError, "a column's divisor must be a number, not str"),
    "many columns": ([Column(b"1", 1)] * 5000, ValueError, f"5,000 columns, and the limit is {MOST_COLUMNS}"),
    "unequal columns": ([Column(bytes(4), 2), Column(bytes(1), 1)], ValueError, r"at least one; they hold \[1, 2\]"),
    "labels that are doubles": (Column(doubles(1.0), 3, one_hot=True), TypeError, "class labels must be bytes"),
}


def test_rows_that_do_not_fit_are_refused():
    """Python checks them before any kernel sees them."""
    program = squared_distance(usable("tcc"))
    for rows, kind, message in REFUSED_ROWS.values():
        training = lambda rows: program.train(rows, rate=0.1)  # noqa: E731
        for use in (program.set_input, program.predict, program.accumulate, training):
            with pytest.raises(kind, match=message):
                use(rows)
    assert list(program.inputs) == [1.0, 2.0, 3.0]
    assert state(program) == ([0.5, -1.0], [0.0, 0.0])


def test_backward_needs_a_forward_over_the_same_numbers():
    program = squared_distance(usable("tcc"))
    changes = [
        lambda: None,
        lambda: program.set_input([1.0, 1.0, 1.0]),
        lambda: program.update(0.1),
        lambda: program.train(doubles(1.0, 1.0, 1.0), rate=0.1),
    ]
    for change in changes:
        change()
        with pytest.raises(RuntimeError, match=r"backward before forward\n  Call `forward\(\)` after each `set_input`"):
            program.backward()
        program.forward()
        program.backward()


NOT_FINITE = [math.inf, -math.inf, math.nan, 10**400]
NO_NUMBERS = ["0.1", None, 1j, [0.1]]


def test_a_program_refuses_a_bad_rate_on_any_step(engine):
    program = product(engine)
    for rate in [*NOT_FINITE, *NO_NUMBERS]:
        kind, message = (ValueError, "a finite number, not") if rate in NOT_FINITE else (TypeError, "a number, not")
        for use in (program.update, lambda rate: program.train(doubles(1.0), rate=rate)):
            with pytest.raises(kind, match=f"the rate must be {message}"):
                use(rate)
        for at in range(3):  # no loss shows the last update

            def schedule(update, at=at, rate=rate):
                return rate if update == at else 0.1

            with pytest.raises(kind, match=f"the rate of update {at} must be {message}"):
                program.train(doubles(1.0), rate=schedule, steps=3)
    assert state(program) == ([1.0], [0.0])


@pytest.mark.parametrize("name", ["tuple", "local-grads", "replay", *ONE_OF_EACH_KIND, "handwritten"])
def test_every_trainer_refuses_a_bad_rate(name):
    """This includes the last step, after which no loss would show the update."""
    trainer = usable(name).prepare(replace(workloads.load("xor"), rate=lambda update: math.inf if update == 1 else 0.1))
    trainer.train(4)
    before = list(trainer.parameters())
    trainer.train(3)
    with pytest.raises(ValueError, match=r"the rate of update 1 must be a finite number, not inf"):
        trainer.train(1)
    assert list(trainer.parameters()) == before


# --- columns -----------------------------------------------------------------------------------------------------


@pytest.fixture
def echo(engine):
    """A program whose outputs are its inputs and whose loss identifies the row."""
    xs = [Value(1.0) for _ in range(6)]
    total = xs[0]
    for i, x in enumerate(xs[1:]):
        total = total * 10.0 + x * float(i + 1)
    return engine.compile(total, inputs=xs, parameters=[], outputs=xs)


def test_columns_of_all_kinds_side_by_side(echo):
    """Bytes are divided: a product with the divisor's reciprocal differs in the last bit of some."""
    cells = [byte for byte in range(256) if byte / 255.0 != byte * (1 / 255.0)][:4]
    columns = [Column(doubles(0.25, -1.5), 1), Column(bytes(cells), 2, 255.0), Column(bytes([2, 0]), 3, one_hot=True)]
    quotients = [cell / 255.0 for cell in cells]
    rows = [[0.25, *quotients[:2], 0.0, 0.0, 1.0], [-1.5, *quotients[2:], 1.0, 0.0, 0.0]]
    assert [[x for column in columns for x in column.values(index)] for index in range(2)] == rows
    losses = echo.train(columns, rate=0.1)
    assert list(echo.outputs) == list(echo.inputs) == rows[1]
    for row, loss in zip(rows, losses):
        echo.set_input(row)
        assert echo.forward() == loss
    echo.set_input([column._replace(data=column.data[: len(column.data) // 2]) for column in columns])
    assert list(echo.inputs) == rows[0]


def test_a_label_beyond_the_classes_is_refused(echo):
    message = "row {} has the class label 7; its column has 6 classes, counted from 0\n  Widen the column"
    with pytest.raises(ValueError, match=message.format(0)):
        echo.set_input(Column(b"\x07", 6, one_hot=True))
    labels = Column(bytes([0, 5, 7, 2, 7]), 6, one_hot=True)
    for first_row, steps, row in ((0, None, 2), (1, 2, 2), (3, 2, 4), (3, 3, 2), (0, 50, 2)):
        with pytest.raises(ValueError, match=message.format(row)):
            echo.train(labels, rate=0.1, first_row=first_row, steps=steps)
    assert list(echo.inputs) == [1.0] * 6
    echo.train(labels, rate=0.1, first_row=3, steps=1)
    assert list(echo.inputs) == [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]


# --- training ----------------------------------------------------------------------------------------------------


def test_a_partial_batch_waits_for_the_rest(engine):
    """`accumulate` and `predict` neither continue it nor discard it, and `zero_grad` discards it."""
    x, p = Value(1.0), Value(1.0)
    program = engine.compile(x * p, inputs=[x], parameters=[p], outputs=[x])
    program.train(doubles(1.0, 2.0, 4.0), rate=0.5, batch=4)
    assert state(program) == ([1.0], [7.0])
    program.accumulate(doubles(8.0, 16.0))
    program.predict(doubles(4.0))
    assert state(program) == ([1.0], [31.0])
    program.train(doubles(1.0, 2.0), rate=0.5, batch=4)
    assert state(program) == ([1.0 - 0.5 * 32.0 / 4], [2.0])
    program.zero_grad()
    program.train(doubles(1.0, 2.0, 4.0), rate=0.5, batch=4)
    assert state(program) == ([-3.0], [7.0]), "zero_grad kept the partial batch"


def test_a_schedule_is_called_once_per_update(engine):
    program = product(engine)
    asked = []

    def rate(update):
        asked.append(update)
        return 2.0**-update

    losses = program.train(doubles(1.0), rate=rate, batch=2, steps=7)
    assert asked == [0, 1, 2]
    assert list(losses) == [1.0, 1.0, 0.0, 0.0, -0.5, -0.5, -0.75]
    assert list(program.gradients) == [1.0]
    program.train(doubles(1.0), rate=rate, batch=2, steps=1)
    assert asked == [0, 1, 2, 0], "the second call did not count its own updates"
    assert state(program) == ([-1.75], [0.0])


@pytest.mark.parametrize("bad", [float("-inf"), float("nan")])
def test_training_ends_at_a_non_finite_loss(engine, bad):
    """The failing step adds nothing to its batch."""
    rows = doubles(1.0, 2.0, bad, 4.0)
    for use, left in (
        (lambda program: program.train(rows, rate=0.25), ([0.25], [0.0])),
        (lambda program: program.train(rows, rate=0.25, batch=3), ([1.0], [3.0])),
        (lambda program: program.accumulate(rows), ([1.0], [3.0])),
    ):
        program = product(engine)
        with pytest.raises(NonFiniteLoss, match="the loss of step 2 is not a finite number") as error:
            use(program)
        assert (error.value.step, repr(error.value.value)) == (2, repr(bad))
        assert state(program) == left


def test_a_domain_error_in_the_forward_pass_ends_training(engine):
    """C continues with infinity and Python raises, but training must end in the same way."""
    x, p = Value(1.0), Value(1.0)
    program = engine.compile((x * p).log() + p, inputs=[x], parameters=[p])
    with pytest.raises(NonFiniteLoss) as error:
        program.train(doubles(1.0, 0.0, 1.0), rate=0.0)
    assert error.value.step == 1
    assert state(program) == ([1.0], [0.0])
