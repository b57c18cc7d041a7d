"""Engines that misbehave; after `plant()`, `engines` finds them. The checks of their runs are in `faults.kinds`."""

from __future__ import annotations

from pathlib import Path

import engines


def plant() -> None:
    """Add this folder's families to `engines`. Call it before `engines` discovers its own."""
    engines.__path__.append(str(Path(__file__).parent))
