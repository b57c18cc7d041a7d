"""Engines refuse to compute while the processor's floating-point state differs from IEEE 754's defaults."""

import contextlib
import platform

import cffi
import pytest

from zoomgrad import engines
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.graph.arithmetic import ChangedArithmetic, check_arithmetic
from zoomgrad.engines.kernel import building, toolchains
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
    "results flushed": (1 << 15, "flushes subnormal numbers"),
    "operands flushed": (1 << 6, "flushes subnormal numbers"),
    "down": (1 << 13, "does not round to nearest"),
    "up": (2 << 13, "does not round to nearest"),
    "towards zero": (3 << 13, "does not round to nearest"),
}


@pytest.fixture(scope="module")
def processor():
    """Functions that read and set this thread's MXCSR."""
    for name in ("gcc", "clang"):
        with contextlib.suppress(Unavailable):
            tool = toolchains.find(name)
            break
    else:
        pytest.skip("neither gcc nor Clang is installed: apt install gcc")
    ffi = cffi.FFI()
    ffi.cdef("unsigned state(void); void set_state(unsigned state);")
    with building.build(tool, [STATE], ("-O1",)) as built:
        yield ffi.dlopen(str(built.path))


@pytest.fixture(params=STATES)
def changed(request, processor):
    """`with changed() as message:` runs its block with the processor in another state."""
    bits, message = STATES[request.param]

    @contextlib.contextmanager
    def change():
        before = processor.state()
        processor.set_state(before | bits)
        try:
            yield message
        finally:
            processor.set_state(before)

    return change


def test_every_other_state_is_refused(changed):
    with changed() as message, pytest.raises(ChangedArithmetic, match=message):
        check_arithmetic()
    check_arithmetic()


@pytest.mark.parametrize(
    "engine",
    ["baseline", "replay", "bytecode", "tcc", "rerolled-numpy"],
)
def test_no_engine_trains_in_another_state(changed, engine):
    engine, workload = engines.load(engine), workloads.load("xor")
    with contextlib.suppress(Unavailable):
        engine.check()
        trainer = engine.prepare(workload)
        with changed() as message, pytest.raises(ChangedArithmetic, match=message):
            trainer.train(1)
        assert not trainer.losses
        trainer.train(1)


@pytest.mark.parametrize("call", ["set_input", "forward", "backward", "update", "train"])
def test_no_call_of_a_program_computes_in_another_state(changed, call):
    bytecode = engines.load("bytecode")
    x, p = bytecode.Value(1.5), bytecode.Value(2.0)
    program = bytecode.compile(x * p, inputs=[x], parameters=[p])
    program.forward()
    arguments = {"set_input": ([1.0],), "update": (0.1,), "train": (b"\1",)}.get(call, ())
    options = {"rate": 0.1} if call == "train" else {}
    with changed() as message, pytest.raises(ChangedArithmetic, match=message):
        getattr(program, call)(*arguments, **options)
