"""A Program under hostile calls: each call works or raises, and none writes outside its buffers.

Hypothesis draws sequences of calls with wrong shapes and types, in any order, and resizes or releases the buffers in
between. The caller's buffers are slices of larger arrays, whose other doubles are canaries. At the end the program must
still compute the bits that it computed at the start.
"""

from __future__ import annotations

import gc
import math
import mmap
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engines
from engines.columns import Column
from engines.graph.value import Value
from engines.kernel.buffers import EXPORTS_PIN, FixedArray
from harness import workloads
from tests.engines.compiled.compiling import usable
from tests.engines.graphs import bits
from tests.examples import examples

try:
    import numpy as np
except ImportError:  # on PyPy
    np = None

CANARY = -1.2345e67
GUARD = 8
"""Canaries on either side of a buffer."""
REFUSALS = (TypeError, ValueError, RuntimeError, BufferError, IndexError, engines.api.NonFiniteLoss)
OTHERS = ["python-source", "rerolled-tcc", "rerolled-clang-sparse", "handwritten"]
ENGINES = [
    *("bytecode", "tcc", "tcc-extension", "rerolled-numpy"),
    *(pytest.param(name, marks=pytest.mark.host) for name in OTHERS),
]
ROWS = array("d", [0.5, -1.0, 1.0, 0.0, 2.0, 0.0, -0.25, 0.75, 1.0])


def fresh(name):
    """Return an unused program with three inputs."""
    engine = usable(name)
    if engine.Value is None:
        return engine.prepare(workloads.load("xor"))._program
    leaves = [Value(0.1 * (n + 1)) for n in range(3 + 9)]
    (x, y, target), weights = leaves[:3], leaves[3:]
    hidden = [(x * weights[n] + y * weights[n + 1] + weights[n + 2]).tanh() for n in (0, 3)]
    out = hidden[0] * weights[6] + hidden[1] * weights[7] + weights[8]
    return engine.compile((out - target) * (out - target), inputs=leaves[:3], parameters=weights, outputs=[out])


def guarded(length):
    """Return an array with canaries at both ends, and the slice between them."""
    whole = array("d", [CANARY] * (length + 2 * GUARD))
    part = memoryview(whole)[GUARD : GUARD + length]
    part[:] = array("d", [0.25] * length)
    return whole, part


def is_intact(whole):
    return set(whole[:GUARD]) == set(whole[-GUARD:]) == {CANARY}


def trained(program, parameters):
    """Train over guarded buffers, check the canaries, and return the bits of all results."""
    (theirs, parameters), (sums, gradients) = guarded(parameters), guarded(parameters)
    program.parameters, program.gradients = parameters, gradients
    program.reset()
    losses = program.train(ROWS, rate=lambda update: 0.1 / (update + 1), batch=2, steps=7)
    program.set_input(ROWS[:3])
    loss = program.forward()
    program.backward()
    assert is_intact(theirs)
    assert is_intact(sums)
    return bits(losses), bits([loss]), bits(parameters), bits(gradients), bits(program.outputs)


# --- arguments ---------------------------------------------------------------------------------------------------


class Busy:
    """A number that runs `act` when it is converted."""

    def __init__(self, act, number):
        self._act = act
        self._number = number

    def __index__(self):
        self._act()
        return int(self._number)

    def __float__(self):
        self._act()
        return float(self._number)


class Exporter:
    """An object that exports a different buffer each time (Python 3.12 and newer)."""

    def __init__(self, *buffers):
        self._buffers = list(buffers)

    def __buffer__(self, flags):
        self._buffers.append(self._buffers.pop(0))
        return memoryview(self._buffers[-1])


USUAL = st.sampled_from([1, 1, 1, 2, 3, 4])
STEPS = USUAL | st.sampled_from([0, 5, 9, 17, -1, 2**53, 2**53 + 1, 2**61, 2**63 - 1, 2**63, -(2**63), 10**30])
COUNTS = STEPS | st.sampled_from([2**31 - 1, 2**40])  # valid as steps too, but C would run for too long
oddities = st.sampled_from([None, "1", b"1", 1.0, 2.5, math.nan, math.inf, True, 1j, [], (), {}, object()])


class Hostile:
    """A caller of one program. Drawn values decide each of its actions."""

    def __init__(self, program, parameters, draw):
        self.program = program
        self.parameters = parameters
        self.draw = draw
        self.wholes = []
        self.mine = []
        """Objects that may be resized or released."""

    def act(self):
        """Make one call; a refusal must have a message."""
        try:
            self.draw(st.sampled_from(self.ACTIONS))(self)
        except REFUSALS as error:
            assert str(error)
        except ArithmeticError as error:  # raised by Python's own math functions
            assert str(error) == "math range error"

    def kept(self, found):
        """Return the object, and remember it for a later resize or release."""
        self.mine.append(found)
        return found

    # numbers

    def count(self, counts=COUNTS):
        drawn = self.draw(st.integers(0, 9))
        if drawn == 0:
            return self.draw(oddities)
        if drawn == 1:
            return Busy(self.vandalise, self.draw(counts))
        number = self.draw(counts)
        return np.int64(number) if drawn == 2 and np and abs(number) < 2**63 else number

    def number(self):
        drawn = self.draw(st.integers(0, 9))
        if drawn == 0:
            return self.draw(oddities)
        if drawn == 1:
            return Busy(self.vandalise, 0.125)
        return self.draw(
            st.sampled_from([0.1, 0.1, 0.1, 0.0, -0.5, 1, 255.0, 1e300, math.inf, math.nan, 10**400, 5e-324])
        )

    def steps(self):
        return self.count(STEPS)

    def rate(self):
        drawn = self.draw(st.integers(0, 5))
        if drawn <= 2:
            return self.number()
        if drawn == 3:
            return lambda update: self.number()

        def schedule(update):
            self.act() if drawn == 4 else self.vandalise()
            return 0.1

        return schedule

    # buffers

    def buffer(self, length=None):
        """Return a drawn buffer, which often has the right length."""
        program = self.program
        if length is None or self.draw(st.integers(0, 3)) == 0:
            length = self.draw(st.sampled_from([0, 1, 2, 3, 6, 8, 9, 10, 16, 17, 18]))
        whole, part = guarded(length)
        self.wholes.append(whole)
        raw = bytearray(8 * length + 16)
        kinds = [
            lambda: part,
            lambda: array("d", part),
            lambda: memoryview(raw)[8 : 8 + 8 * length].cast("d"),
            lambda: memoryview(raw)[3 : 3 + 8 * length].cast("d"),
            lambda: memoryview(bytes(8 * length)).cast("d"),
            lambda: part[::-1],
            lambda: part[::2],
            lambda: memoryview(whole).cast("B").cast("d", (1, len(whole))),
            lambda: bytes(length),
            lambda: bytearray(length),
            lambda: array("f", part),
            lambda: array("b", bytes(length)),
            lambda: list(part),
            lambda: program.inputs,
            lambda: program.outputs,
            lambda: program.parameters,
            lambda: program.gradients,
            lambda: memoryview(program.parameters),
            lambda: memoryview(program.gradients)[1:],
            lambda: memoryview(mmap.mmap(-1, mmap.PAGESIZE))[: 8 * length].cast("d"),
            lambda: Exporter(part, array("d", part), array("d", [1.0])),
            lambda: self.draw(oddities),
        ]
        if np:
            kinds += [
                lambda: np.zeros(length),
                lambda: np.zeros(length, ">d"),
                lambda: np.zeros((length, 1)),
                lambda: np.array(1.0),
                lambda: np.zeros(2 * length)[::2],
                lambda: np.asarray(part)[::-1],
            ]
        found = self.draw(st.sampled_from([*kinds[:3] * 5, *kinds]))()
        self.kept(raw)
        return self.kept(found)

    def rows(self):
        drawn = self.draw(st.integers(0, 9))
        if drawn == 0:
            return self.buffer()
        if drawn <= 2:
            return self.buffer(self.draw(st.sampled_from([3, 6, 9])))
        if drawn >= 8:
            return self.kept(array("d", ROWS))
        if drawn == 3:
            return self.draw(st.sampled_from([bytes(range(9)), memoryview(ROWS).cast("B").cast("d", (3, 3)), None]))
        if drawn == 4 and self.draw(st.booleans()):
            row = [0.5, 1, Busy(self.vandalise, 2.0), self.number()]
            return self.kept([row[: self.draw(st.sampled_from([2, 3, 3, 4]))] for _ in range(self.draw(USUAL))])
        columns = [self.column() for _ in range(self.draw(st.integers(0, 3)))]
        if drawn == 4 and columns:
            return columns[0]
        if drawn == 5:
            columns += [Column(b"123", 1)] * self.draw(st.sampled_from([1, 3, 17, 3000]))
        return tuple(columns) if drawn == 6 else columns

    def column(self):
        if self.draw(st.integers(0, 2)):
            return Column(bytes([0, 1, 2]), self.draw(st.sampled_from([1, 2, 3])), one_hot=self.draw(st.booleans()))
        return Column(self.buffer(), self.count(), self.number(), self.draw(st.sampled_from([True, False, None, "x"])))

    # the caller's other actions

    def vandalise(self):
        """Resize or release something of the caller's or of the program's."""
        program = self.program
        victims = [*self.mine, program.inputs, program.outputs, program.parameters, program.gradients]
        victim = victims[self.draw(st.integers(0, len(victims) - 1))]
        ways = [
            lambda: victim.append(1),
            lambda: victim.pop(),
            lambda: victim.extend([1] * 500),
            lambda: victim.clear(),
            lambda: victim.__delitem__(slice(None)),
            lambda: victim.__delitem__(slice(1, 3)),
            lambda: victim.__setitem__(slice(None), array("d", [1.0])),
            lambda: victim.__setitem__(slice(None), [0.5] * len(victim)),
            lambda: victim.__setitem__(0, 0.5),
            lambda: victim.__iadd__(array("d", [1.0])),
            lambda: victim.frombytes(bytes(800)),
            lambda: victim.release(),
            lambda: victim.setflags(write=False),
            lambda: self.mine.clear(),
            gc.collect,
        ]
        if EXPORTS_PIN or not isinstance(victim, FixedArray):  # otherwise the program becomes unusable, and says so
            ways += [lambda: array.append(victim, 1.0), lambda: array.extend(victim, array("d", [1.0] * 999))]
        try:
            self.draw(st.sampled_from(ways))()
        except (AttributeError, *REFUSALS):
            pass

    ACTIONS = (
        lambda self: self.program.forward(),
        lambda self: self.program.forward(),
        lambda self: self.program.backward(),
        lambda self: self.program.backward(),
        lambda self: self.program.zero_grad(),
        lambda self: self.program.reset(),
        lambda self: self.program.update(self.number()),
        lambda self: self.program.update(self.number(), self.count()),
        lambda self: self.program.set_input(self.buffer(3)),
        lambda self: self.program.set_input(self.rows()),
        lambda self: self.program.train(self.rows(), rate=self.rate()),
        lambda self: self.program.train(
            self.rows(), rate=self.rate(), batch=self.count(), steps=self.steps(), first_row=self.count()
        ),
        lambda self: self.program.train(ROWS, rate=self.rate(), batch=self.count(), steps=self.steps()),
        lambda self: self.program.accumulate(self.rows(), self.count(), self.steps()),
        lambda self: self.program.accumulate(self.rows()),
        lambda self: self.program.predict(self.rows(), self.count(), self.steps()),
        lambda self: np.asarray(self.program.predict(self.rows())) if np else None,
        lambda self: setattr(self.program, "parameters", self.buffer(self.parameters)),
        lambda self: setattr(self.program, "gradients", self.buffer(self.parameters)),
        vandalise,
        vandalise,
    )


@pytest.mark.parametrize("name", ENGINES)
def test_every_call_works_or_is_refused(name):
    program = fresh(name)
    count = len(program.parameters)
    expected = trained(program, count)

    @settings(max_examples=examples(100), deadline=None)
    @given(st.data())
    def calls(data):
        hostile = Hostile(program, count, data.draw)
        trained(program, count)  # resets the program, so that draws do not depend on the previous example
        for _ in range(data.draw(st.integers(1, 25))):
            hostile.act()
            assert all(is_intact(whole) for whole in hostile.wholes)
        assert trained(program, count) == expected

    calls()
