"""`import zoomgrad`: the names that it promises, and how little it imports."""

import subprocess
import sys

import pytest

import zoomgrad

KERNELS = "zoomgrad.engines.kernel.program"
OF_OTHERS = {"numpy", "pandas", "cffi", "pyperf", "torch", "jax", "rich", "pydantic"}


def test_every_name_is_there():
    for name in zoomgrad.__all__:
        assert getattr(zoomgrad, name) is not None
        assert name in dir(zoomgrad)
    with pytest.raises(AttributeError, match="no attribute 'Valeu'"):
        _ = zoomgrad.Valeu


def test_the_import_and_the_list_of_engines_are_light():
    code = f"import sys, zoomgrad; print({KERNELS!r} in sys.modules); zoomgrad.names(); print(*sys.modules)"
    loads_kernels, *modules = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert loads_kernels == "False"
    assert not OF_OTHERS & {*modules}
