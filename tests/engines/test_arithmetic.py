"""Engines refuse to compute while the processor's floating-point state differs from IEEE 754's defaults."""

import contextlib
import platform

import cffi
import pytest

from tests.engines.compiled.compiling import usable
from tests.engines.test_threads import CALLS, square
from zoomgrad.engines.graph.arithmetic import ChangedArithmetic, check_arithmetic
from zoomgrad.engines.kernel import building
from zoomgrad.harness import workloads

pytestmark = [
    pytest.mark.host,
    pytest.mark.skipif(
        platform.machine() not in ("x86_64", "AMD64"), reason="the tests set MXCSR, which only x86-64 has"
    ),
]

STATE = """
unsigned state(void) { return __builtin_ia32_stmxcsr(); }
void set_state(unsigned state) { __builtin_ia32_ldmxcsr(state); }
"""
STATES = {
    1 << 15: "flushes subnormal numbers",  # results
    1 << 6: "flushes subnormal numbers",  # operands
    **dict.fromkeys((1 << 13, 2 << 13, 3 << 13), "does not round to nearest"),
}


@pytest.fixture(scope="module")
def refused():
    """`with refused(bits):` expects its block to raise ChangedArithmetic while these bits of MXCSR are set."""
    ffi = cffi.FFI()
    ffi.cdef("unsigned state(void); void set_state(unsigned state);")
    with building.build(usable("gcc-O1").toolchain(), [STATE], ("-O1",)) as path:
        processor = ffi.dlopen(str(path))

        @contextlib.contextmanager
        def refused(bits):
            before = processor.state()
            processor.set_state(before | bits)
            try:
                with pytest.raises(ChangedArithmetic, match=STATES[bits]):
                    yield
            finally:
                processor.set_state(before)

        yield refused


@pytest.mark.parametrize("bits", STATES)
def test_every_other_state_is_refused(refused, bits):
    with refused(bits):
        check_arithmetic()
    check_arithmetic()


@pytest.mark.parametrize("engine", ["baseline", "replay", "bytecode", "tcc", "rerolled-numpy"])
def test_no_engine_trains_in_another_state(refused, engine):
    trainer = usable(engine).prepare(workloads.load("xor"))
    with refused(1 << 15):
        trainer.train(1)
    assert not trainer.losses
    trainer.train(1)


def test_no_call_of_a_program_computes_in_another_state(refused):
    program = square(usable("bytecode"))
    program.forward()
    for call in CALLS.values():
        with refused(1 << 15):
            call(program)
