"""The caller's numbers -> numbers that are safe to pass to compiled code.

C has no exceptions and its integers wrap around, so every count and every factor is checked here first.
"""

from __future__ import annotations

import math
import operator
from array import array
from typing import Any, Callable, Union

Rate = Union[float, Callable[[int], float]]
"""A learning rate, or a schedule that maps the number of an update, counted from the start of the call, to its rate."""

MOST = 2**53
"""The largest count: it is exact as a double, and the sum of a few of them fits into 64 bits."""


def whole(number: Any, name: str, least: int, most: int = MOST) -> int:
    """Return the number as an int. Raises ValueError unless it is a whole number from `least` to `most`."""
    try:
        value: int = number if type(number) is int else int(operator.index(number))
    except TypeError:
        value = least - 1
    if not least <= value <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most:,}, not {number!r}")
    return value


def finite(number: Any, name: str) -> float:
    """Return the number as a float. Raises TypeError if it is not a number, ValueError if it is not finite."""
    try:
        value: float = number if type(number) is float else array("d", [number])[0]  # float() would also parse text
    except TypeError:
        raise TypeError(f"{name} must be a number, not {type(number).__name__}") from None
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, not {number!r}")
    return value


def finite_rate(rate: Any, update: int) -> float:
    """Return the learning rate of that update as a float. Raises TypeError and ValueError as `finite` does."""
    if type(rate) is float and math.isfinite(rate):  # the common case does not format a name
        return rate
    return finite(rate, f"the rate of update {update:,}")


def finite_rates(rate: Rate, updates: range) -> array[float]:
    """The rates of those updates. Raises TypeError or ValueError for the first that is not a finite number."""
    if not callable(rate):
        return array("d", [finite(rate, "the rate")]) * len(updates)
    rates = [rate(update) for update in updates]
    # One sum instead of a check for each rate: it is finite only if all of them are.
    try:
        are_finite = math.isfinite(sum(rates))
    except (TypeError, OverflowError):
        are_finite = False
    return array("d", rates if are_finite else map(finite_rate, rates, updates))
