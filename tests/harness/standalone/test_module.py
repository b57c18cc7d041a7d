"""A built module without zoomgrad: its README, wrong calls, threads, a different processor, compiler warnings."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from engines.asking import which
from engines.kernel import extension, toolchains
from engines.standalone.source import module_source
from harness import workloads
from harness.machine import interpreters
from harness.standalone import graphs
from tests.harness.standalone.building import build, run_alone, usable


@pytest.fixture(scope="module")
def xor(tmp_path_factory):
    folder = tmp_path_factory.mktemp("xor")
    build(folder, "xor", "tcc")
    return folder


@pytest.mark.parametrize("frozen", [False, True])
def test_the_readme_runs(tmp_path, frozen):
    build(tmp_path, "xor", "rerolled-tcc", frozen=frozen)
    example = re.search(r"```python\n(.*?)```", (tmp_path / "README.md").read_text(), re.DOTALL)[1]
    program = f"printed = []\nexec({example!r}, {{'print': lambda *found: printed.append(found)}})\nprint(len(printed))"
    assert run_alone(tmp_path, "xor", program) == (1 if frozen else 2)


WRONG = {
    "module.forward(array('d', [1.0]))": "ValueError: a column must hold a whole number of rows",
    "module.forward(array('f', [1.0] * 3))": "TypeError: a column must hold doubles or bytes",
    "module.forward(array('d', [1.0] * 6))": "ValueError: this takes one row of 3 inputs, not 2",
    "module.forward(type('E', (__import__('ctypes').Structure,), {'_fields_': []})())": "a column must hold doubles",
    "module.forward([1.0, 2.0, 3.0])": "TypeError: a bytes-like object is required",
    "module.forward(memoryview(bytearray(25))[1:].cast('d'))": "ValueError: a column of doubles must begin",
    "module.forward(((b'12', 2, 0.0, False), (b'1', 1, 1.0, False)))": "ValueError: a column's divisor must be finite",
    "module.forward(((b'12', 2, 1.0, False), (b'9', 1, 1.0, True)))": "ValueError: row 0 has the class label 57",
    "module.forward(((b'12', 2**62, 1.0, False),))": "ValueError: a column must hold a whole number",
    "module.forward(((b'', 2, 1.0, False), (b'', 1, 1.0, False)))": "hold a row; they have 3 and hold 0",
    "module.backward()": "RuntimeError: backward before forward",
    "module.predict(bytes(3)), module.backward()": "RuntimeError: backward before forward",
    "module.update(float('nan'))": "ValueError: rate must be finite",
    "module.update(0.1, 0)": "ValueError: batch must be at least 1",
    "module.set_parameters(array('d', [1.0] * 16))": "ValueError: parameters must hold 17 doubles; it holds 16",
    "module.set_parameters(array('d', [1.0] * 18))": "ValueError: parameters must hold 17 doubles, not more",
    "module.train(bytes(6))": "missing required argument 'rate'",
    "module.train(bytes(6), 0.1, batch=0)": "ValueError: batch must be at least 1",
    "module.train(bytes(6), 0.1, steps=2**62)": "ValueError: batch must be at least 1, steps",
    "module.train(bytes(6), 0.1, steps=2**58)": "MemoryError",
    "module.train(bytes(6), 0.1, first_row=2)": "first_row one of 2 rows",
    "module.train(bytes(6), array('d', [0.1]))": "ValueError: rate must be a number, or hold one double for each of 2",
    "module.train(bytes(6), array('d', [0.1, float('inf')]))": "ValueError: rate must be finite",
    "module.train(bytes(6), 'fast')": "TypeError: must be real number, not str",
    "module.train(array('d', [1e300] * 3), 0.1)": "NonFiniteLoss: the loss of step 0 is not a finite number: inf",
}


def test_wrong_calls_are_refused(xor):
    """In one process, after which the module still trains."""
    program = f"""
import traceback
found = []
for call in {[*WRONG]}:
    try:
        eval(call)
    except Exception as error:
        found.append(''.join(traceback.format_exception_only(error)))
    else:
        found.append('nothing')
module.restart()
module.train(bytes(6), 0.1)
print(json.dumps(found))
"""
    found = run_alone(xor, "xor", program)
    unexpected = {call: text for (call, message), text in zip(WRONG.items(), found, strict=True) if message not in text}
    assert not unexpected


def test_a_rate_that_trains_while_it_is_converted_overruns_nothing(xor):
    program = """
class Rate:
    def __float__(self):
        module.train(bytes(9), 0.1, batch=4)
        return 0.5
for _ in range(50):
    module.train(bytes(9), Rate(), batch=4)
print(1)
"""
    run_alone(xor, "xor", program)


def test_other_threads_are_refused_while_it_trains(xor):
    program = """
import threading
thread = threading.Thread(target=module.train, args=(bytes(3), 0.0), kwargs={'steps': 1_000_000})
thread.start()
refused = 0
while thread.is_alive():
    try:
        module.parameters()
    except RuntimeError as error:
        refused += 'training in another thread' in str(error)
thread.join()
print(json.dumps([refused > 0, len(module.parameters())]))
"""
    assert run_alone(xor, "xor", program) == [True, 17]


def test_it_is_imported_twice_with_two_states(xor):
    program = """
first = module
first.train(b"abc", 0.001)
del sys.modules['xor']
import xor
print(json.dumps(bits(xor.parameters()) != bits(first.parameters())))
"""
    assert run_alone(xor, "xor", program) is True


def test_a_module_that_was_not_initialised_is_refused(xor):
    program = """
import importlib.util
empty = importlib.util.module_from_spec(importlib.util.find_spec("xor"))
refused = []
for call in (empty.parameters, empty.zero_grad, lambda: empty.forward(array("d", [0.0] * 3))):
    try:
        call()
    except RuntimeError as error:
        refused.append(str(error))
print(json.dumps(refused))
"""
    assert run_alone(xor, "xor", program) == ["the module was not initialised\n  Import it."] * 3


def test_a_row_that_calls_the_module_when_it_is_released_gets_its_own_outputs(xor):
    if sys.version_info < (3, 12):
        pytest.skip("a class has buffers since Python 3.12")
    program = """
class Row:
    def __buffer__(self, flags):
        return memoryview(array("d", [0.25, 0.5, 0.0]))
    def __release_buffer__(self, view):
        module.forward(array("d", [1.0, 1.0, 1.0]))
expected = bits(module.predict(array("d", [0.25, 0.5, 0.0])))
print(json.dumps(bits(module.predict(Row())) == expected))
"""
    assert run_alone(xor, "xor", program) is True


def test_zero_grad_discards_a_partial_batch(xor):
    program = """
rows = array("d", [0.25, 0.5, 1.0] * 4)
before = bits(module.parameters())
module.train(rows, 0.1, batch=4, steps=2)
module.zero_grad()
module.train(rows, 0.1, batch=4, steps=2)
print(json.dumps(bits(module.parameters()) == before))
"""
    assert run_alone(xor, "xor", program) is True


def test_static_variables_are_imported_once(tmp_path):
    build(tmp_path, "xor", "tcc-published")
    error = run_alone(tmp_path, "xor", "del sys.modules['xor']\nimport xor", code=1)
    assert "ImportError: xor keeps its values in static variables: import it once" in error


def test_other_pythons_import_it(xor):
    for found in interpreters.discover(remembered=True):
        if re.fullmatch(r"cpython-3\.1[1-9][.\d]*", found.name):
            assert run_alone(xor, "xor", "print(module.INPUTS)", python=str(found.path)) == 3


def test_a_processor_without_the_instructions_is_refused(tmp_path):
    """FMA4 was made for a few years only, so no machine that runs tests has it."""
    engine = usable("gcc-O1")
    if not toolchains.IS_X86 or "fma4" in Path("/proc/cpuinfo").read_text():
        pytest.skip("needs an x86-64 processor without FMA4")
    engine.flags = (*engine.flags, "-mfma4")
    try:
        build(tmp_path, "xor", "gcc-O1")
    finally:
        engine.flags = engine.flags[:-1]
    error = run_alone(tmp_path, "xor", "", code=1)
    assert "ImportError: xor was compiled for a processor with FMA4, which this one lacks" in error


@pytest.mark.skipif(not which("ld"), reason="there is no ld on PATH")
@pytest.mark.parametrize("compiler", ["gcc", "clang", "tcc"])
def test_no_compiler_warns(tmp_path, compiler):
    names = [f"{compiler}{'' if compiler == 'tcc' else '-O0'}", f"rerolled-{compiler}"]
    warnings = ["-Wall", "-Werror"] if compiler == "tcc" else ["-Wall", "-Wextra", "-Werror"]
    for name in names:
        engine = usable(name)
        graph = graphs.of_workload(engine, workloads.load("xor"))
        for frozen in (False, True):
            (tmp_path / "xor.c").write_text(module_source(engine, graph, frozen=frozen), encoding="ascii")
            command = [*engine.toolchain().command, *engine.flags, *extension.include_flags(), *warnings]
            result = subprocess.run(
                [*command, "-fPIC", "-c", "xor.c"], cwd=tmp_path, capture_output=True, text=True, check=False
            )
            assert (result.returncode, result.stdout + result.stderr) == (0, "")
