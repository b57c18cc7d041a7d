"""The gate's limits, from `[tool.zoomgrad.gate]` in pyproject.toml.

[tool.zoomgrad.gate]
slowdown = 0.10                      # a speedup may fall to 1 / 1.10 of the baseline run's
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, ValidationError

from zoomgrad.results.files import Unreadable, first_of

Share = Annotated[float, Field(gt=0, le=100)]


class Limits(BaseModel):
    """Limits on regressions, as shares: 0.10 lets a time grow by a tenth relative to the baseline's."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_by_name=True, alias_generator=lambda name: name.replace("_", "-")
    )

    slowdown: Share = 0.10
    compile_growth: Share = 0.50
    elsewhere: PositiveFloat = 5.0
    """Factor on `slowdown` and `compile_growth` if the baseline run is another machine's: processors differ."""
    reruns: NonNegativeInt = 3
    """How often suspects are measured again before they fail the gate, each time with twice the blocks."""


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
