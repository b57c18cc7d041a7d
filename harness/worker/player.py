"""One side of a comparison: prepares one engine of one checkout, then trains on command.

`python player.py CHECKOUT JOB` reads commands from standard input, one line of JSON each, and answers each with a line.
`harness/compare/block.py` sends them. The checkout may be many commits old, so this file imports nothing but what has
not changed for long: `engines.load`, `harness.workloads.load`, `building.build`, and an engine's and a trainer's
methods.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Callable

CODE_ALIGNMENT, CODE_PLACES = 16, 256
"""Code begins at multiples of 16 bytes, so these are all its places within a page."""


class Player:
    """An engine and a workload of the checkout."""

    def __init__(self, checkout: Path, job: dict[str, Any]) -> None:
        from zoomgrad import engines
        from zoomgrad.engines.kernel import building
        from zoomgrad.harness import workloads

        if checkout.absolute() not in Path(str(engines.__file__)).absolute().parents:
            raise engines.Unavailable(f"engines was imported from {engines.__file__}, not from the checkout", "")
        # Before the engine is loaded: its modules keep the function that they import.
        building.build = laid_out(building.build, random.Random(job["layout_seed"]))
        self._engine: Any = engines.load(job["engine"])
        self._workload: Any = workloads.load(job["workload"])
        self._trainers: list[Any] = []  # the same program, each with a layout of its own
        self._engine.check()
        refusal = self._engine.supports(self._workload)
        if refusal:
            raise engines.Unavailable(refusal, "")
        self._workload.data()

    def prepare(self, alone: bool) -> dict[str, Any]:
        """Compile with another layout, and return the seconds of all phases. alone: forget the programs before."""
        if alone:
            self._trainers.clear()
        self._trainers.append(self._engine.prepare(self._workload))
        return {"seconds": sum(dict(self._trainers[-1].phases).values())}

    def bits(self, steps: int, processor: int) -> dict[str, Any]:
        """Return a digest of the numbers after these first steps of training.

        From then on the process stays on that processor, unless the engine has threads.
        """
        # The extra step leaves a partial batch's gradients behind, which a restart must clear.
        self.value(steps + 1)
        self.value(steps)
        if hasattr(os, "sched_setaffinity") and "threads" not in self._engine.name:
            os.sched_setaffinity(0, {processor})
        return {"bits": digest(self._trainers[0].losses, self._trainers[0].parameters())}

    def value(self, steps: int, layout: int = 0) -> dict[str, Any]:
        """Return the seconds of these first steps of training."""
        trainer = self._trainers[layout]
        trainer.restart(batch=self._workload.batch)
        start = perf_counter()
        trainer.train(steps)
        return {"seconds": perf_counter() - start}


def laid_out(build: Callable[..., Any], rng: random.Random) -> Callable[..., Any]:
    """`engines.kernel.building.build`, with padding before the code and its units in another order, drawn each time.

    A program's speed depends on the addresses of its code, so one build of each commit would compare two accidents
    (Curtsinger and Berger, "STABILIZER: statistically sound performance evaluation", ASPLOS 2013). The environment's
    size and the hash seed are set before this process starts.
    """

    def another(tool: Any, units: Sequence[str], *rest: Any, **named: Any) -> Any:
        first, *others = rng.sample(units, len(units))
        padding = f'__asm__(".text\\n.skip {CODE_ALIGNMENT * rng.randrange(CODE_PLACES)}");\n'
        return build(tool, [padding + first, *others], *rest, **named)

    return another


def digest(*numbers: Sequence[float]) -> str:
    """Return a hash of doubles in which both zeros are equal, and all NaNs are."""
    hashed = hashlib.sha256()
    for each in numbers:
        hashed.update(array("d", (x + 0.0 if x == x else float("nan") for x in each)).tobytes())
    return hashed.hexdigest()


def main() -> None:
    """Answer commands until standard input ends."""
    checkout, job = Path(sys.argv[1]), json.loads(sys.argv[2])
    sys.path[0] = str(checkout)  # replaces the folder of this file, which belongs to another checkout
    # Whatever an engine prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    player = None
    for line in sys.stdin:
        name, values = json.loads(line)
        try:
            player = player or Player(checkout, job)
            answer = getattr(player, name)(**values)
        except Exception as error:  # a commit may fail in any way, and its reason is the answer
            answer = {"failed": str(getattr(error, "reason", "") or f"{type(error).__name__}: {error}")}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
