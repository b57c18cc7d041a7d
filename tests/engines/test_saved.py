"""Files of parameters: what is written is read back; whatever else a file holds is one clear error."""

import json
import math
import os
import stat
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.compiled.compiling import usable
from zoomgrad.engines.saving.parameters import BadFile, load_parameters, save_parameters

pytestmark = pytest.mark.host


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.safetensors"


def raw(header, numbers=b""):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(header).to_bytes(8, "little") + header + numbers


def tensor(shape, begin, end, dtype="F64"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_what_is_saved_is_loaded(file):
    """The file is one of safetensors: JSON in a whole number of words, then the numbers."""
    numbers = [0.1, -0.0, math.inf, 5e-324, 1.0, 2.0, 3.0]
    save_parameters(file, numbers, shapes={"w": (2, 3), "b": ()}, settings={"note": "é\n"})
    found = load_parameters(file)
    assert found.parameters.tobytes() == array("d", numbers).tobytes()
    assert found[1:] == ({"w": (2, 3), "b": ()}, {"note": "é\n"})
    content = file.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    assert (start % 8, content[start:]) == (0, array("d", numbers).tobytes())
    header = json.loads(content[8:start])
    assert header.pop("__metadata__") == {"note": "é\n"}
    assert header == {"w": tensor([2, 3], 0, 48), "b": tensor([], 48, 56)}


def test_a_file_of_another_program_is_read_in_the_order_of_its_numbers(file):
    """Writers may sort names otherwise, and metadata are optional."""
    file.write_bytes(raw({"b": tensor([1], 8, 16), "a": tensor([], 0, 8)}, array("d", [1.0, 2.0]).tobytes()))
    assert load_parameters(file) == (array("d", [1.0, 2.0]), {"a": (), "b": (1,)}, {})


BAD = {
    "a header beyond the end": (1 << 40).to_bytes(8, "little") + b"{}",
    "not JSON": raw(b"{]"),
    "a long number": raw(b'{"a": {"dtype": "F64", "shape": [' + b"9" * 5000 + b'], "data_offsets": [0, 8]}}', bytes(8)),
    "float32": raw({"a": tensor([1], 0, 8, "F32")}, bytes(8)),
    "a shape that lies": raw({"a": tensor([1 << 18, 1 << 18], 0, 8)}, bytes(8)),
    "overlapping": raw({"a": tensor([1], 0, 8), "b": tensor([1], 0, 8)}, bytes(8)),
    "cut": raw({"a": tensor([2], 0, 16)}, bytes(15)),
    "metadata that are no texts": raw({"__metadata__": {"note": 9}}),
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_anything_else_is_one_clear_error(content, file):
    file.write_bytes(content)
    with pytest.raises(BadFile, match=r"model\.safetensors: not a file of parameters: .*\n  Name a file") as caught:
        load_parameters(file)
    assert str(caught.value).count("\n") == 1


@given(st.binary(max_size=80), st.integers(0, 200), st.integers(0, 200))
def test_a_damaged_file_loads_or_is_refused(tmp_path_factory, patch, start, stop):
    folder = tmp_path_factory.getbasetemp() / "damaged"
    folder.mkdir(exist_ok=True)
    file = folder / "model"
    save_parameters(file, [1.0, 2.0, 3.0], shapes={"a": (1, 2), "b": (1,)})
    content = file.read_bytes()
    file.write_bytes(content[:start] + patch + content[max(start, stop) :])
    try:
        found = load_parameters(file)
    except BadFile:
        return
    assert sum(map(math.prod, found.shapes.values())) == len(found.parameters)


@pytest.mark.skipif(os.name != "posix", reason="the system has no sparse files or FIFOs")
def test_what_is_not_a_file_is_neither_read_nor_replaced(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    link = tmp_path / "link"
    save_parameters(tmp_path / "file", [1.0])
    link.symlink_to(tmp_path / "file")
    with pytest.raises(BadFile, match="not a regular file"):
        save_parameters(link, [2.0])
    assert load_parameters(link).parameters[0] == 1.0
    for path in (fifo, tmp_path, *(["/dev/null"] if os.access("/dev", os.W_OK) else [])):
        with pytest.raises((BadFile, IsADirectoryError)):
            load_parameters(path)
        with pytest.raises(BadFile, match="not a regular file, so it is not replaced"):
            save_parameters(path, [1.0])
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_file_is_replaced(file):
    save_parameters(file, [1.0])
    file.chmod(0o600)
    save_parameters(file, [2.0])
    assert load_parameters(file).parameters[0] == 2.0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]


# --- programs --------------------------------------------------------------------------------------------------------

ROWS = array("d", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])


def program_of(name):
    engine = usable(name)
    x, y = engine.Value(0.5), engine.Value(0.25)
    model = engine.nn.MLP(1, [3, 1], activation="tanh")
    return engine.compile((model([x]) - y) ** 2, inputs=[x, y], parameters=model.parameters())


@pytest.mark.parametrize("name", ["bytecode", "tcc"])
def test_a_program_continues_from_what_it_loaded(name, file):
    program, other = program_of(name), program_of(name)
    program.train(ROWS, rate=0.1, batch=2)
    program.save(file)
    other.train(ROWS, rate=0.5, batch=2)
    other.forward()
    other.load(file)
    with pytest.raises(RuntimeError, match="backward before forward"):
        other.backward()
    assert list(other.gradients) == [0.0] * 10
    program.zero_grad()
    assert other.train(ROWS, rate=0.1, batch=2) == program.train(ROWS, rate=0.1, batch=2)


def test_parameters_of_another_model_change_nothing(file):
    program = program_of("bytecode")
    before = list(program.parameters)
    save_parameters(file, [1.0])
    with pytest.raises(BadFile, match="it holds 1 parameters, not 10\n"):
        program.load(file)
    assert list(program.parameters) == before
