"""Rules by which `zoomgrad train` stops before its last epoch. A workload names its rule, as it names its loss."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import NamedTuple


class Stopping(NamedTuple):
    """What an epoch is judged by, and where in the epoch training stops."""

    figure: str
    """Name of what is compared with the tolerance."""
    measure: Callable[[float, int], float]
    """(mean loss of the epoch's steps, samples of a step) -> that figure."""
    reached: Callable[[float, float], bool]
    """(figure, tolerance) -> whether to stop."""
    before_update: bool = False
    """Whether the last epoch computes its loss but does not change the parameters. For whole-set workloads only.

    An epoch's accuracy is then that of the parameters that gave its loss.
    """


MEAN_LOSS = Stopping("mean loss", lambda loss, samples: loss, operator.lt)

TOUR = Stopping("metric", lambda loss, samples: math.sqrt(loss) / samples, operator.le, before_update=True)
"""As "Tour de micrograd" stops: after a forward pass over all samples, before the update. Needs the squared error."""
