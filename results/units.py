"""Figure -> text for people: three significant digits and a unit. No other module rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence

ABSENT = "–"
"""Text in place of a missing figure: NaN, or a figure that was not recorded."""

_TIMES = ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s"), (60.0, "min"), (3600.0, "h"))
_TIME_STARTS = (0.0, 1e-6, 1e-3, 1.0, 300.0, 7200.0)
"""Smallest number of seconds for each unit: 107 s stays in seconds, a day is 24.0 h."""
_SIZES = ((1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"))


def significant(value: float, digits: int = 3) -> str:
    """Round `value` to significant digits, never in scientific notation: 9.81, 310, 145,000."""
    if not math.isfinite(value):
        return ABSENT if math.isnan(value) else ("∞" if value > 0 else "-∞")
    if value == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    # Rounding may carry into one more digit: 9.996 is 10.0, not 10.00.
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(decimals, 0)}f}"


def duration(seconds: float) -> str:
    """Seconds as 1.42 s, 310 ms or 9.81 µs; minutes from 300 s on, hours from 7,200 s on."""
    return _scaled(seconds, _TIMES, _TIME_STARTS)


def size(count: float) -> str:
    """Bytes in decimal units, as disks and most tools print them: 5.90 GB."""
    return f"{count:.0f} B" if 0 < count < 1000 else _scaled(count, _SIZES, [unit for unit, _ in _SIZES])


def ratio(value: float) -> str:
    """A ratio as 3.41×."""
    return ABSENT if math.isnan(value) else f"{significant(value)}×"


def times(value: float) -> str:
    """A ratio for prose, with two digits: 3.4 times."""
    return f"{significant(value, 2)} times"


def duration_interval(low: float, high: float) -> str:
    """1.38 s to 1.47 s, or ABSENT if a bound is NaN."""
    return ABSENT if math.isnan(low) or math.isnan(high) else f"{duration(low)} to {duration(high)}"


def error(value: float) -> str:
    """A relative error as 0 or 1.2e-11."""
    return ABSENT if math.isnan(value) else "0" if value == 0 else "∞" if math.isinf(value) else f"{value:.1e}"


def count(number: int, noun: str) -> str:
    """A number and its noun: 1 cell, 60,000 cells."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def by_name(column: str, value: float) -> str:
    """Text of a figure with the unit that its column's suffix names: step_seconds, peak_bytes, looped_share."""
    if column.endswith("_seconds"):
        return duration(value)
    if column.endswith("_bytes"):
        return size(value)
    if column.endswith("_share"):
        return f"{100 * value:.2f} %"
    return f"{value:,.0f}" if float(value).is_integer() else significant(value)


def _scaled(value: float, units: Sequence[tuple[float, str]], starts: Sequence[float]) -> str:
    if not math.isfinite(value):
        return significant(value)
    # Rounded first, so that 999.7 µs is 1.00 ms and not 1,000 µs.
    rounded = float(f"{value:.2e}")
    unit, name = next(
        (pair for pair, start in zip(reversed(units), reversed(starts), strict=True) if abs(rounded) >= start), units[0]
    )
    return "0 s" if value == 0 and name == "ns" else f"{significant(rounded / unit)} {name}"
