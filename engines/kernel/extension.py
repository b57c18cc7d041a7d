"""A kernel's C -> a CPython extension module, to compare the cost of calls and of compiling Python.h with cffi's."""

from __future__ import annotations

import importlib.util
import sys
import sysconfig
from array import array
from pathlib import Path
from typing import Any

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.kernel.program import Buffers, Stretch
from zoomgrad.engines.kernel.python_kernel import PythonKernel

MODULE = "zoomgrad_program"
"""Name of a module that is not kept."""

LIMITED_API = "#define Py_LIMITED_API 0x030b0000\n" if sys.version_info >= (3, 11) else ""
"""TCC compiles Python.h of 3.13 only with the limited API, which includes buffers since 3.11."""


def load_module(name: str, path: str) -> Any:
    """Load an extension module of that name from a file. Raises ImportError or OSError if the system refuses it."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # because the path ends in `.so`
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Extension(PythonKernel):
    """Kernel over a loaded extension module. What takes no time in training is in Python."""

    forward: Any
    backward: Any

    def __init__(self, path: str, workspace: int) -> None:
        """Load the module. Raises ImportError or OSError if the system refuses it."""
        super().__init__(workspace)
        self._module = load_module(MODULE, path)
        self.forward, self.backward = self._module.forward, self._module.backward

    def workspace(self) -> array[float]:
        return array("d", [0.0]) * self._workspace

    def train(self, buffers: Buffers, stretch: Stretch) -> int:
        return int(self._module.train(*buffers, tuple(stretch.columns), *stretch[1:]))


def check_python(instead: str) -> None:
    """Raise Unavailable if this interpreter can't load such a module, or lacks its header. instead: another engine."""
    if sys.implementation.name != "cpython":
        raise Unavailable(
            "extension modules are for CPython; other interpreters only emulate its C API", f"Use `{instead}`."
        )
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise Unavailable(
            "the module needs the limited API or the global interpreter lock, which free-threaded Python lacks",
            f"Use `{instead}`, or a Python with the lock.",
        )
    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").is_file():
        raise Unavailable(f"there is no Python.h in {include}", "Install Python's headers, as in `python3-dev`.")


def abi() -> str:
    """Identify the interpreter's ABI, on which such an object depends."""
    return f"{sys.version} {sysconfig.get_config_var('SOABI')}"


def include_flags() -> tuple[str, ...]:
    """Search paths for Python.h and the platform headers that it includes."""
    platform = Path("/usr/include") / (sysconfig.get_config_var("MULTIARCH") or "")
    return (f"-I{sysconfig.get_path('include')}", *([f"-I{platform}"] if platform.is_dir() else []))
