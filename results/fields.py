"""Types of stored fields. Names, texts and numbers have bounds, because a record may come from a stranger.

Every validated value is safe to print, to use in a path and to compute with.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field

from zoomgrad.results.printable import on_one_line, printable

LONGEST_NAME: Final = 72
"""A file name joins three names, a block and a suffix, and common file systems allow 255 bytes."""

_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._+=]*(-[A-Za-z0-9._+=]+)*"

Name = Annotated[str, Field(pattern=f"^{_NAME}$", max_length=LONGEST_NAME)]
"""A key, and a part of paths. No slash, because slashes join names in a cell's key; no double hyphen, because it joins
them in file names. It starts with a letter or a digit, so it can't be `..`, a hidden file or an option."""
CellKey = Annotated[str, Field(pattern=f"^{_NAME}/{_NAME}/{_NAME}$", max_length=3 * LONGEST_NAME + 2)]


Text = Annotated[str, BeforeValidator(lambda value: printable(value) if isinstance(value, str) else value)]
OneLine = Annotated[str, BeforeValidator(lambda value: on_one_line(value) if isinstance(value, str) else value)]

_NANOSECONDS: Final = AfterValidator(lambda seconds: round(seconds, 9))

Seconds = Annotated[float, Field(ge=0.0, le=1e9)]
"""Up to thirty years."""
Elapsed = Annotated[Seconds, _NANOSECONDS]
"""Seconds between two readings of a clock. Clocks count nanoseconds, so further digits would say nothing."""
Limit = Annotated[float, Field(gt=0.0, le=1e7)]
"""Seconds, at most four months, so that system calls accept it as a timeout."""
StepSeconds = Annotated[float, Field(ge=1e-10, le=1e6)]
"""From a fraction of a processor cycle to eleven days. Never 0, because statistics take logarithms of ratios."""
PaceSeconds = Annotated[float, Field(ge=1e-5, le=1e3), _NANOSECONDS]
"""Time of a fixed piece of work that takes about ten milliseconds."""
Bytes = Annotated[int, Field(ge=0, le=2**60)]
Count = Annotated[int, Field(ge=0, le=2**53)]
"""A double represents every value exactly."""
Blocks = Annotated[int, Field(ge=0, le=1_000)]

MOST_VALUES: Final = 200
"""Limit of the values, the points of a curve and the phases of a record, whose report takes quadratic time."""
Values = Annotated[int, Field(ge=0, le=MOST_VALUES)]
MOST_CELLS: Final = 10_000
"""Limit of the cells of a run."""
MOST_NAMES: Final = 200
"""Limit of a run's engines, interpreters and workloads: a chart has a mark for each."""
MOST_RECORDS: Final = 20_000
"""Limit of the records of a run. Their report takes minutes; a run of the preset `full` has 1,100."""
MOST_ERROR: Final = 1e-2
"""Largest error bound that an engine may declare."""
Share = Annotated[float, Field(ge=0.0, le=1.0 + 1e-9)]
"""Share of 1. Rounding may take a sum of shares slightly above it."""
Moment = Annotated[AwareDatetime, Field(ge=datetime(1970, 1, 1, tzinfo=UTC), lt=datetime(2200, 1, 1, tzinfo=UTC))]
"""Time zones and pandas work within these bounds. A machine whose clock was reset starts in 1970."""
