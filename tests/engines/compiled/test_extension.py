"""The extension module's own checks. The tests call it directly, without Program, and it must never crash."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import threading
from array import array

import pytest

from tests.engines.compiled.compiling import doubles, tape_of, usable
from tests.engines.graphs import classifier
from zoomgrad import engines
from zoomgrad.engines.columns import MOST_COLUMNS, Column
from zoomgrad.engines.compiled.emit import text
from zoomgrad.engines.compiled.lower import lower


@pytest.fixture(scope="module")
def module():
    """The module of x * p."""
    engine = usable("tcc-extension")
    x, p = engine.Value(2.0), engine.Value(3.0)
    return engine.compile(x * p, inputs=[x], parameters=[p])._kernel._module


X, P, W, Y, Q = doubles(2), doubles(3), doubles(*[0] * 8), doubles(), doubles(0)
TRAIN = (X, P, W, Y, Q, (Column(doubles(1, 2), 1),), 0, 2, 1, 0, doubles(0.1, 0.1), doubles(0, 0), True, 0)


def replaced(arguments, index, value):
    return (*arguments[:index], value, *arguments[index + 1 :])


@pytest.mark.parametrize(
    ("method", "arguments", "error", "message"),
    [
        ("forward", (X, P, W), TypeError, "forward takes 4 arguments, not 3"),
        ("forward", (X, b"12345678", W, Y), BufferError, "not writable"),
        ("forward", (doubles(), P, W, Y), ValueError, "x must hold 1 doubles; it holds 0"),
        ("forward", (X, memoryview(doubles(1, 2, 3))[::2], W, Y), BufferError, "contiguous"),
        ("train", replaced(TRAIN, 8, "fast"), TypeError, "integer"),
        ("train", replaced(TRAIN, 5, [Column(doubles(1), 1)]), TypeError, f"a tuple of at most {MOST_COLUMNS + 1}"),
        ("train", replaced(TRAIN, 5, ((doubles(1), "wide", 1.0, False),)), TypeError, "width: int"),
        ("train", replaced(TRAIN, 5, (Column(array("f", [1]), 1),)), TypeError, "doubles or bytes"),
        ("train", replaced(TRAIN, 5, (Column(doubles(1), 1, 1.0, True),)), TypeError, "class labels are bytes"),
        ("train", replaced(TRAIN, 5, (Column(b"123", 2),)), ValueError, "a whole number of rows"),
        ("train", replaced(TRAIN, 6, -1), IndexError, "there is no row -1 among 2"),
        ("train", replaced(TRAIN, 6, 2), IndexError, "there is no row 2 among 2"),
        ("train", replaced(TRAIN, 7, -1), ValueError, "steps must not be negative"),
        ("train", replaced(TRAIN, 8, 0), ValueError, "batch at least 1"),
        ("train", replaced(TRAIN, 9, 1), ValueError, "taken below batch"),
        ("train", replaced(TRAIN, 10, doubles(0.1)), ValueError, "rates must hold 2 doubles; it holds 1"),
        ("train", replaced(TRAIN, 11, doubles(0)), ValueError, "losses must hold 2 doubles; it holds 1"),
        ("train", replaced(TRAIN, 7, 2**70), OverflowError, "too large"),
        # These products and sums would wrap around to small numbers in 64 bits.
        ("train", replaced(TRAIN, 7, 2**61), ValueError, f"rates must hold {2**61} doubles; it holds 2"),
        ("train", replaced(replaced(TRAIN, 7, 2**61), 8, 2**62), ValueError, f"losses must hold {2**61} doubles"),
        ("train", (*TRAIN[:7], 2**63 - 1, 4, 3, *TRAIN[10:]), ValueError, "steps must not be negative"),
        ("train", replaced(TRAIN, 5, (Column(b"12345678", 2**61),)), ValueError, "a whole number of rows"),
        ("train", replaced(TRAIN, 5, (Column(b"1", 2**63 - 1, 1.0, True),) * 3), ValueError, f"one has {2**63 - 1}"),
        (
            "train",
            replaced(TRAIN, 4, memoryview(bytearray(24))[1:9].cast("d")),
            ValueError,
            "q must begin at a multiple of 8 bytes",
        ),
        (
            "train",
            replaced(TRAIN, 5, (Column(memoryview(bytes(24))[1:9].cast("d"), 1),)),
            ValueError,
            "a multiple of 8 bytes",
        ),
    ],
)
def test_a_wrong_argument_raises(module, method, arguments, error, message):
    with pytest.raises(error, match=message):
        getattr(module, method)(*arguments)


def test_a_call_fits_on_the_smallest_stack(module):
    losses, size = [], threading.stack_size(32768)
    thread = threading.Thread(target=lambda: losses.append(module.forward(X, P, W, Y)))
    try:
        thread.start()
    finally:
        threading.stack_size(size)
    thread.join()
    assert losses == [6.0]


def test_the_module_compiles_without_warnings(tmp_path):
    """The test uses gcc, which has more warnings than TCC."""
    engine = usable("tcc-extension")
    tool = usable("gcc-O0").toolchain()
    source = tmp_path / "program.c"
    source.write_text(text(lower(tape_of(*classifier()), engine.options), engine.options), encoding="ascii")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-fPIC", "-c"]
    flags += ["-isystem", sysconfig.get_path("include"), "-o", str(tmp_path / "program.o")]
    command = [*tool.command, *flags, str(source)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]


@pytest.mark.skipif(sys.implementation.name == "cpython", reason="tests interpreters other than CPython")
def test_other_interpreters_refuse_the_engine():
    with pytest.raises(engines.Unavailable, match="extension modules are for CPython"):
        engines.load("tcc-extension").check()
