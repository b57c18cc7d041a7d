"""Value as a C extension type: its source, its build, and the engine `native`.

The graphs that it records are also linearized here. Later stages are in other folders.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Load the class when pickle looks for `engines.native.Value`."""
    if name == "Value":
        from zoomgrad.engines.native import build

        return build.load()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
