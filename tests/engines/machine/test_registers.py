"""What registers know: values at fixed places, until a store, a label, a call or another use of the register."""

import pytest

from zoomgrad.engines.machine.encode import RAX, Assembler, Mem
from zoomgrad.engines.machine.registers import Known, Registers
from zoomgrad.engines.machine.target import Target, W

pytestmark = pytest.mark.host

VALUE = Known(Mem(W, 64), 32)


@pytest.fixture
def code():
    return Assembler()


@pytest.fixture
def registers(code):
    """Registers of which one holds VALUE and is free."""
    registers = Registers(Target(4), code)
    register = registers.vector(4)
    registers.hold(register, VALUE)
    registers.release(register)
    return registers


def test_a_value_is_held_with_its_users(registers):
    first, second = registers.held(VALUE), registers.held(VALUE)
    assert first == second
    registers.release(first)
    taken = [registers.vector(4) for _ in range(15)]
    assert first not in taken
    registers.release(second)
    assert registers.vector(4) == first
    assert registers.held(VALUE) is None


@pytest.mark.parametrize(
    ("place", "size", "is_known"),
    [
        (Mem(W, 56), 8, True),
        (Mem(W, 56), 16, False),
        (Mem(W, 88), 8, False),
        (Mem(W, 96), 32, True),
        (Mem(W, 64, RAX), 8, False),
        (Mem(RAX), 8, False),
    ],
    ids=str,
)
def test_a_store_ends_what_it_may_change(registers, place, size, is_known):
    registers.stored(place, size)
    assert (registers.held(VALUE) is not None) == is_known


def test_nothing_is_known_where_paths_join_or_after_a_call(code, registers):
    registers.release(registers.held(VALUE))
    code.label("join")
    assert registers.held(VALUE) is None
    register = registers.vector(4)
    registers.hold(register, VALUE)
    code.call("join")
    assert registers.held(VALUE) is None
