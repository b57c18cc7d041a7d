"""The gate's limits, from `[tool.zoomgrad.gate]` in pyproject.toml.

[tool.zoomgrad.gate]
slowdown = 0.10                      # a speedup may fall to 1 / 1.10 of the baseline run's

[[tool.zoomgrad.gate.cells]]
match = "clang-*/pypy-*/*"           # engine/interpreter/workload; of several matches the last counts
slowdown = 0.25
"""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, ValidationError

from results.files import Unreadable, first_of
from results.record import Cell

Share = Annotated[float, Field(gt=0, le=100)]


class _Table(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_by_name=True, alias_generator=lambda name: name.replace("_", "-")
    )


class Exemption(_Table):
    """Different limits for the cells whose key matches a pattern."""

    match: str
    """A key with shell wildcards: `clang-*/pypy-*/*`."""
    slowdown: Share | None = None
    compile_growth: Share | None = None


class Limits(_Table):
    """Limits on regressions, as shares: 0.10 lets a time grow by a tenth relative to the baseline's."""

    slowdown: Share = 0.10
    compile_growth: Share = 0.50
    elsewhere: PositiveFloat = 5.0
    """Factor on `slowdown` and `compile_growth` if the baseline run is another machine's: processors differ."""
    reruns: NonNegativeInt = 3
    """How often suspects are measured again before they fail the gate, each time with twice the blocks."""
    cells: tuple[Exemption, ...] = ()

    def slowdown_of(self, cell: Cell) -> float:
        return self._of(cell, "slowdown")

    def compile_growth_of(self, cell: Cell) -> float:
        return self._of(cell, "compile_growth")

    def _of(self, cell: Cell, name: str) -> float:
        own = [getattr(one, name) for one in self.cells if fnmatchcase(cell.key, one.match)]
        return float(next((limit for limit in reversed(own) if limit is not None), getattr(self, name)))


def read_limits(pyproject: Path) -> Limits:
    """Return the limits set in that file, with this module's defaults for the rest.

    Raises Unreadable, which names the invalid field.
    """
    try:
        table = tomllib.loads(pyproject.read_text(encoding="utf-8"))
        return Limits.model_validate(table.get("tool", {}).get("zoomgrad", {}).get("gate", {}))
    except FileNotFoundError:
        return Limits()
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(f"{pyproject}: not valid TOML: {error}\n  Correct the file.") from error
    except ValidationError as error:
        raise Unreadable(
            f"{pyproject}: [tool.zoomgrad.gate] {first_of(error)}\n  docs/compare.md lists the settings."
        ) from error
