"""Numbers as callers give them -> the numbers that compiled code takes.

C has no exceptions and its integers wrap around, so every count and every factor passes through here first.
"""

from __future__ import annotations

import math
import operator
from array import array
from typing import Any

MOST = 2**53
"""The largest count: as a double it is still exact, and sums of a few of them fit into 64 bits."""


def whole(number: Any, name: str, least: int, most: int = MOST) -> int:
    """The number as an int. Raises ValueError unless it is a whole number from `least` to `most`."""
    try:
        found: int = number if type(number) is int else int(operator.index(number))
    except TypeError:
        found = least - 1
    if not least <= found <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most:,}, not {number!r}")
    return found


def finite(number: Any, name: str) -> float:
    """The number as a float. Raises TypeError for what is not a number, ValueError for one that is not finite."""
    try:
        found: float = number if type(number) is float else array("d", [number])[0]  # float() would read text, too
    except TypeError:
        raise TypeError(f"{name} must be a number, not {type(number).__name__}") from None
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise ValueError(f"{name} must be a finite number, not {number!r}")
    return found


def finite_rate(rate: Any, update: int) -> float:
    """The learning rate of that update as a float. Raises TypeError and ValueError as `finite` does."""
    if type(rate) is float and math.isfinite(rate):  # so that a name is only made where it is needed
        checked: float = rate
        return checked
    return finite(rate, f"the rate of update {update:,}")
