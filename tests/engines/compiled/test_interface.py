"""Files of C: the parsed form of kernel.h, which spares every process 40 ms, and that none is left over."""

import hashlib
from pathlib import Path

import cffi
import pytest

from zoomgrad.engines.kernel import generated, library
from zoomgrad.engines.kernel.c_tree import FOLDER, read

FILE = Path(generated.__file__).parent / "kernel_ffi.py"


def parsed(header, folder):
    """Return the module that cffi generates from a header, with the header's hash."""
    ffi = cffi.FFI()
    ffi.cdef(header)
    ffi.set_source(FILE.stem, None)
    made = folder / FILE.name
    ffi.emit_python_code(str(made))
    return f'{made.read_text()}HEADER_SHA256 = "{hashlib.sha256(header.encode()).hexdigest()}"\n'


@pytest.mark.host
def test_the_generated_module_is_that_of_the_header(tmp_path, request):
    text = parsed(read("kernel/kernel.h"), tmp_path)
    if request.config.getoption("--update-golden"):
        FILE.write_text(text)
    assert FILE.read_text() == text, "kernel.h was edited: run this test with --update-golden"


def test_an_edited_header_is_refused(monkeypatch):
    """C that was compiled with the new header must not read beyond a structure of the old size."""
    monkeypatch.setattr(library, "read", lambda name: "struct buffers;")
    with pytest.raises(RuntimeError, match=r"kernel\.h was edited\n  Run `pytest"):
        library.interface.__wrapped__()


@pytest.mark.host
def test_every_c_file_is_part_of_some_unit():
    files = sorted(file for file in FOLDER.rglob("*.[ch]"))
    assert len(files) > 20
    code = "".join(file.read_text(encoding="utf-8") for file in [*files, *FOLDER.rglob("*.py")])
    for file in files:
        assert file.read_bytes().isascii()
        assert file.name in code, file
