"""The suffix `-frozen`: weights are constants of the generated C, and only the forward pass is compiled.

Such an engine runs workloads that do not learn, such as `digits-forward`. The engine without the suffix runs them too,
with its ordinary program, so the two differ in nothing else. `zoomgrad build --frozen` makes the same C for a user.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Optional

from engines.api import Unavailable, Workload
from engines.graph.tape import Tape
from engines.graph.value import Value
from engines.kernel.c_engine import CEngine

IDEA = "weights are constants, and only the forward pass is compiled"


class Frozen(CEngine):
    """A C engine with that suffix. As a base class, list it before the family's class, and define `lower_workload`."""

    def supports(self, workload: Workload) -> Optional[str]:
        return "its weights are constants, so it can't train" if workload.learns else super().supports(workload)

    def lower_workload(self, tape: Tape, parameters: Sequence[float]) -> Any:
        raise NotImplementedError

    def lower(self, tape: Tape) -> NoReturn:
        """Raise Unavailable, because a tape has no weights."""
        raise Unavailable(
            f"{self.name} runs workloads only",
            "Leave out the suffix, and name no parameters: all other leaves are constants.",
        )

    def compile(
        self, loss: Value, *, inputs: Sequence[Value], parameters: Sequence[Value], outputs: Sequence[Value] = ()
    ) -> NoReturn:
        """Raise Unavailable, because the parameters of a Program can change."""
        self.lower(self.tape(loss, inputs=inputs, parameters=parameters, outputs=outputs))
