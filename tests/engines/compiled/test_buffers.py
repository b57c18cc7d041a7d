"""Buffers that a caller resizes or passes twice: an error, and never a read or write past the end."""

from __future__ import annotations

import sys
import weakref
from array import array

import pytest

from tests.engines.compiled.compiling import doubles
from zoomgrad.engines.columns import MOST_COLUMNS, Column
from zoomgrad.engines.graph.value import Value
from zoomgrad.engines.kernel import library

PINS = sys.implementation.name == "cpython"


@pytest.fixture
def program(engine):
    """A program with the loss x * v + w."""
    x, v, w = Value(2.0), Value(0.5), Value(-1.0)
    return engine.compile(x * v + w, inputs=[x], parameters=[v, w], outputs=[x * v])


def computes(program):
    """Set the parameters and assert that training still gives the right numbers."""
    program.parameters[0], program.parameters[1] = 0.5, -1.0
    program.zero_grad()
    assert list(program.train(doubles(2.0, 4.0), rate=0.5, batch=2)) == [0.0, 1.0]
    assert (list(program.parameters), list(program.gradients)) == ([-1.0, -1.5], [0.0, 0.0])
    return True


# --- the program's own buffers -----------------------------------------------------------------------------------

RESIZES = (
    *(("__setitem__", slice(None), doubles()), ("__setitem__", slice(0, 1), doubles(1.0, 2.0))),
    *(("__delitem__", slice(None)), ("__delitem__", 0), ("append", 1.0), ("extend", [1.0]), ("insert", 0, 1.0)),
    *(("pop",), ("fromlist", [1.0]), ("frombytes", bytes(8)), ("__iadd__", doubles(1.0)), ("__imul__", 2)),
)
"""Methods and arguments that would change a buffer's length."""


@pytest.mark.parametrize("name", ["inputs", "outputs", "parameters", "gradients"])
def test_a_programs_buffer_keeps_its_length(program, name):
    """On PyPy an export does not pin the array against a method of its base class, so the next call raises."""
    buffer = getattr(program, name)
    before = list(buffer)
    for method, *arguments in RESIZES:
        with pytest.raises((ValueError, BufferError), match="a program's buffer"):
            getattr(buffer, method)(*arguments)
        assert list(getattr(program, name)) == before
    assert computes(program)
    if PINS:
        with pytest.raises(BufferError, match="cannot resize an array that is exporting buffers"):
            array.append(buffer, 1.0)
        assert computes(program)
    else:
        array.pop(buffer)
        with pytest.raises(ValueError, match=f"{name} must hold {len(buffer) + 1} doubles; it holds {len(buffer)}"):
            program.train(doubles(1.0), rate=0.1)


@pytest.mark.parametrize("rows", [memoryview, lambda buffer: memoryview(buffer).cast("B").cast("d")])
def test_rows_within_a_programs_buffer_are_refused(program, rows):
    """PyPy's cffi copies a slice of a view that is cast, so the address of the copy would not tell."""
    with pytest.raises(ValueError, match=r"rows must not share memory with the program's parameters\n  Copy them"):
        program.train(rows(program.parameters)[1:], rate=0.1)
    assert computes(program)


# --- columns -----------------------------------------------------------------------------------------------------


@pytest.mark.host
def test_a_column_keeps_its_table_of_quotients():
    """The cache drops one if another thread makes the same at once."""
    _columns, _alive = library.Library(None, 0).described([Column(bytes(2), 2, 7.0)])
    table = weakref.ref(library.quotients(7.0)[0])
    library.quotients.cache_clear()
    assert table()


class Resizing:
    """A number whose conversion resizes a NumPy array, even an exported one."""

    def __init__(self, rows, value):
        self.rows, self.value = rows, value

    def __index__(self):
        self.rows.resize(2, refcheck=False)
        return self.value

    def __float__(self):
        return float(self.__index__())


@pytest.mark.parametrize("which", ["batch", "first_row", "steps", "rate", "schedule"])
def test_rows_that_are_resized_while_arguments_are_read(program, which):
    np = pytest.importorskip("numpy")
    rows = np.zeros(8_000_000)
    asked = {"rate": 0.1, "first_row": 3_999_990, "steps": 20}
    if which == "schedule":
        asked["rate"] = lambda update: float(Resizing(rows, 0))
    else:
        asked[which] = Resizing(rows, 1)
    with pytest.raises((ValueError, BufferError)):
        program.train(rows, **asked)
        if which == "first_row":  # row 1 is one of the two that are left, so the call succeeds
            raise ValueError
    assert computes(program)


def test_the_maximum_number_of_columns(engine):
    """An extension module keeps a table of two kilobytes for each column on its stack."""
    xs = [Value(1.0) for _ in range(MOST_COLUMNS)]
    program = engine.compile(sum(xs[1:], xs[0]), inputs=xs, parameters=[])
    assert list(program.train([Column(bytes([n]), 1) for n in range(MOST_COLUMNS)], rate=0.1)) == [
        sum(range(MOST_COLUMNS))
    ]
