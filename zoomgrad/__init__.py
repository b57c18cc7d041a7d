"""zoomgrad as a library."""

from typing import Any

from zoomgrad.decorator import compiled

__all__ = ["compiled"]


def __getattr__(name: str) -> Any:
    if name == "Value":
        from engines.native.recorder import recorder

        return recorder()
    raise AttributeError(name)
