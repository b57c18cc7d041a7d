"""The interface of Program: accepted arguments, refusals and their messages, and what training does to the buffers."""

from __future__ import annotations

import subprocess
import sys
from array import array

import pytest

from tests.engines.compiled.compiling import ONE_OF_EACH_KIND, usable
from zoomgrad.engines.api import NonFiniteLoss
from zoomgrad.engines.columns import Column
from zoomgrad.engines.graph.value import Value


@pytest.fixture(params=ONE_OF_EACH_KIND)
def engine(request):
    return usable(request.param)


@pytest.fixture
def program(engine):
    """A program with the squared distance between a weighted sum of two inputs and the third. Its numbers are exact."""
    x, y, t, v, w = (Value(n) for n in (1.0, 2.0, 3.0, 0.5, -1.0))
    out = x * v + y * w
    return engine.compile((out - t) ** 2, inputs=[x, y, t], parameters=[v, w], outputs=[out])


def doubles(*numbers):
    return array("d", numbers)


def state(program):
    return list(program.parameters), list(program.gradients)


# --- a step ------------------------------------------------------------------------------------------------------


BOUND = """
import gc, sys, engines
engine = engines.load(sys.argv[1])
x, p = engine.Value(2.0), engine.Value(3.0)
bound = engine.compile(x * p, inputs=[x], parameters=[p]).bound()
forward, backward, gradients, parameters = bound.forward, bound.backward, bound.gradients, bound.parameters
del bound
gc.collect()
parameters[0] = 5.0
loss = forward()
backward()
print(loss, *gradients)
"""


def test_bound_passes_outlive_the_program(engine):
    """They call into a library. If it were unloaded, the process would crash, so it is another one."""
    ended = subprocess.run([sys.executable, "-c", BOUND, engine.name], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "10.0 2.0\n"), ended.stderr


def test_two_programs_do_not_share_numbers(engine):
    """Two objects in one process export the same names, but must not see each other's functions or values."""
    programs = []
    for scale in (2.0, 3.0):
        x, p = Value(1.0), Value(1.0)
        programs.append(engine.compile((x * p).tanh() * scale * p, inputs=[x], parameters=[p]))
    first, second = programs
    alone = [program.forward() for program in programs]
    for program in programs:
        program.backward()
    assert alone[0] / 2.0 == alone[1] / 3.0
    assert first.gradients[0] / 2.0 == pytest.approx(second.gradients[0] / 3.0)
    second.set_input([5.0])
    assert second.forward() != alone[1]
    assert first.forward() == alone[0]


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
    "unequal columns": ([Column(bytes(4), 2), Column(bytes(1), 1)], ValueError, r"at least one; they hold \[1, 2\]"),
    "labels that are doubles": (Column(doubles(1.0), 3, one_hot=True), TypeError, "class labels must be bytes"),
}


@pytest.mark.parametrize("why", REFUSED_ROWS)
def test_rows_that_do_not_fit_are_refused(program, why):
    rows, kind, message = REFUSED_ROWS[why]
    training = lambda rows: program.train(rows, rate=0.1)  # noqa: E731
    for use in (program.set_input, program.predict, program.accumulate, training):
        with pytest.raises(kind, match=message):
            use(rows)
    assert list(program.inputs) == [1.0, 2.0, 3.0]
    assert state(program) == ([0.5, -1.0], [0.0, 0.0])


def test_backward_needs_a_forward_over_the_same_numbers(program):
    message = r"backward before forward\n  Call `forward\(\)` after each `set_input` or new buffer"
    changes = [
        lambda: None,
        lambda: program.set_input([1.0, 1.0, 1.0]),
        lambda: program.update(0.1),
        lambda: program.train(doubles(1.0, 1.0, 1.0), rate=0.1),
        lambda: setattr(program, "parameters", doubles(1.0, 2.0)),
        lambda: setattr(program, "gradients", doubles(1.0, 2.0)),
    ]
    for change in changes:
        change()
        with pytest.raises(RuntimeError, match=message):
            program.backward()
        program.forward()
        program.backward()


# --- the caller's own buffers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["array", "memoryview of a bytearray"])
def test_the_callers_buffers_are_written_in_place(program, kind):
    raw = bytearray(doubles(0.5, -1.0, 0.0, 0.0).tobytes())
    view = memoryview(raw)
    parameters, gradients = (
        (view[:16].cast("d"), view[16:].cast("d")) if kind != "array" else (doubles(0.5, -1.0), doubles(0.0, 0.0))
    )
    program.parameters, program.gradients = parameters, gradients
    assert program.parameters is parameters
    program.forward()
    program.backward()
    assert list(gradients) == [-9.0, -18.0]
    program.update(0.5)
    assert (list(parameters), list(gradients)) == ([5.0, 8.0], [0.0, 0.0])
    program.train(doubles(2.0, 4.0, 1.0), rate=0.125)
    assert list(parameters) == [-15.5, -33.0], "the loss should be (42 - 1) ** 2"
    if kind != "array":
        assert raw == doubles(-15.5, -33.0, 0.0, 0.0).tobytes()
    parameters[0] = 1.0
    program.set_input([1.0, 0.0, 0.0])
    assert program.forward() == 1.0, "the caller's writes have no effect"


def test_a_slice_of_a_cast_is_written_or_refused(program):
    """PyPy's cffi can't take the address of such a slice, and would silently pass a copy to C."""
    raw = bytearray(doubles(0.5, -1.0, 0.0, 0.0).tobytes())
    program.gradients = memoryview(raw).cast("d")[2:]
    program.forward()
    try:
        program.backward()
    except TypeError as error:
        assert sys.implementation.name == "pypy"
        assert "Slice a memoryview before its cast, not after" in str(error)
    else:
        assert raw == doubles(0.5, -1.0, -9.0, -18.0).tobytes()


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
    columns = [
        Column(doubles(0.25, -1.5), 1),
        Column(bytes([255, 51, 0, 102]), 2, 255.0),
        Column(bytes([2, 0]), 3, one_hot=True),
    ]
    rows = [[0.25, 1.0, 51 / 255.0, 0.0, 0.0, 1.0], [-1.5, 0.0, 102 / 255.0, 1.0, 0.0, 0.0]]
    for index, row in enumerate(rows):
        assert [x for column in columns for x in column.values(index)] == row
    losses = echo.train(columns, rate=0.1)
    assert list(echo.outputs) == list(echo.inputs) == rows[1]
    for row, loss in zip(rows, losses):
        echo.set_input(row)
        assert echo.forward() == loss


def test_bytes_are_divided_and_not_multiplied_by_a_reciprocal(echo):
    """The two differ in the last bit."""
    assert any(byte / 255.0 != byte * (1 / 255.0) for byte in range(256))
    for start in range(0, 252, 6):
        row = bytes(range(start, start + 6))
        echo.set_input(Column(row, 6, 255.0))
        assert list(echo.inputs) == [byte / 255.0 for byte in row]


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


def sum_of(engine):
    """Compile the loss x * p. Its gradient is the row's only number, and over a row of 1 the loss equals p."""
    x, p = Value(1.0), Value(1.0)
    return engine.compile(x * p, inputs=[x], parameters=[p])


def test_a_partial_batch_waits_for_the_rest(engine):
    program = sum_of(engine)
    rows = doubles(1.0, 2.0, 4.0)
    program.train(rows, rate=0.5, batch=4)
    assert state(program) == ([1.0], [7.0])
    program.train(rows, rate=0.5, batch=4, steps=2)
    assert state(program) == ([1.0 - 0.5 * 8.0 / 4], [2.0])
    program.zero_grad()
    assert state(program) == ([0.0], [0.0])
    program.train(rows, rate=0.5, batch=4)
    assert state(program) == ([0.0], [7.0]), "zero_grad kept the partial batch"


@pytest.mark.parametrize("read", [False, True], ids=["alone", "read by an output"])
def test_a_parameter_as_the_loss(engine, read):
    """`backward` sets the gradient of the loss to 1, also where the loss is a parameter: nothing adds up."""
    x, w, unused = Value(1.0), Value(2.0), Value(3.0)
    program = engine.compile(w, inputs=[x], parameters=[unused, w], outputs=[w * x] if read else [])
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


def test_a_schedule_is_called_once_per_update(engine):
    program = sum_of(engine)
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
    for batch, left in ((1, ([0.25], [0.0])), (3, ([1.0], [3.0]))):
        program = sum_of(engine)
        with pytest.raises(NonFiniteLoss, match="the loss of step 2 is not a finite number") as error:
            program.train(doubles(1.0, 2.0, bad, 4.0), rate=0.25, batch=batch)
        assert error.value.step == 2
        assert repr(error.value.value) == repr(bad)
        assert state(program) == left


def test_a_domain_error_in_the_forward_pass_ends_training(engine):
    """C continues with infinity and Python raises, but training must end in the same way."""
    x, p = Value(1.0), Value(1.0)
    program = engine.compile((x * p).log() + p, inputs=[x], parameters=[p])
    with pytest.raises(NonFiniteLoss) as error:
        program.train(doubles(1.0, 0.0, 1.0), rate=0.0)
    assert error.value.step == 1
    assert state(program) == ([1.0], [0.0])
