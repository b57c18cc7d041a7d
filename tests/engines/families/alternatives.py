"""Time other forms of microgpt beside a family of graphs: `python -m tests.engines.families.alternatives ENGINE…`.

- *family*: a graph for each number of positions, as the workload has it.
- *padded*: one graph of all positions. A mask of 0.0 and 1.0 leaves the padding out of the loss. It has the same bits.
- *gathered*: a family whose tokens are not one-hot inputs. Each position has its own 16 parameters, as if an index had
  fetched them. Nothing fetches them or adds up their gradients, so this is a bound on what indices could save.

Each form trains on the same names with Adam. A row is a form's seconds to compile, its C, and its best step.
"""

from __future__ import annotations

import argparse
import random
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import engines
from datasets import names
from datasets.names import TOKENS
from engines.api import Shape
from engines.columns import Column
from engines.kernel import object_cache
from harness import workloads
from harness.workloads import Workload, microgpt

STEPS, ROUNDS = 1000, 15


@dataclass(frozen=True)
class Padded(Workload):
    """One graph. A row has the tokens and targets of all positions, then the mask, then 1 / the number of positions."""

    @property
    def varies(self) -> bool:
        return False

    @property
    def context(self) -> int:
        return int(self.data().context)

    def row(self, step: int) -> array[float]:
        labels, most = self.data().labels(step % STEPS), self.context
        count = len(labels) // 2
        padding = bytes([names.BOUNDARY]) * (most - count)
        found = names.one_hot(labels[:count] + padding + labels[count:] + padding)
        found.extend([1.0] * count + [0.0] * (most - count) + [1 / count])
        return found

    def shapes(self) -> tuple[Shape, ...]:
        rows = array("d")
        for step in range(STEPS):
            rows.extend(self.row(step))
        return (Shape((Column(rows, len(rows) // STEPS),), range(STEPS)),)

    def outputs(self, model: Any, inputs: Sequence[Any]) -> list[Any]:
        return list(model(inputs[: self.context * TOKENS]))

    def loss(self, model: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        most = self.context
        targets, mask, share = inputs[most * TOKENS : -most - 1], inputs[-most - 1 : -1], inputs[-1]
        starts = range(0, most * TOKENS, TOKENS)
        losses = [-microgpt._dot(targets[at : at + TOKENS], outputs[at : at + TOKENS]).log() for at in starts]
        return share * sum(a * b for a, b in zip(mask, losses))


class Gathered(microgpt.MicroGpt):
    """Its tokens' embeddings are parameters of each position."""

    def __init__(self, value: Any, rng: random.Random, sizes: microgpt.Sizes) -> None:
        super().__init__(value, rng, sizes)
        del self._parameters[: TOKENS * sizes.width]
        self._own = [[value(rng.gauss(0, 0.08)) for _ in range(sizes.width)] for _ in range(sizes.context)]
        self._parameters += [p for row in self._own for p in row]

    def _next(self, token: Sequence[Any], position: int, past: Any) -> list[Any]:
        one = type(token[0])(1.0)
        self.of_token = [self._own[position]]
        return super()._next([one], position, past)


@dataclass(frozen=True)
class GatheredSizes(microgpt.Sizes):
    def __call__(self, nn: Any, rng: random.Random) -> Gathered:
        return Gathered(nn.Neuron.Value, rng, self)


def forms(name: str) -> dict[str, Workload]:
    """Form -> the workload of that name in this form."""
    family = workloads.load(name)
    assert isinstance(family.build, microgpt.Sizes)
    facts = {each: getattr(family, each) for each in family.__dataclass_fields__}
    sizes = GatheredSizes(**vars(family.build))
    return {"family": family, "padded": Padded(**facts), "gathered": replace(family, build=sizes)}


def main() -> None:
    """Print a row for each engine and form."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="+")
    parser.add_argument("--workload", default="microgpt")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    for name in given.engines:
        engine, parameters = engines.load(name), {}
        engine.check()
        for form, workload in forms(given.workload).items():
            trainer: Any = engine.prepare(workload, objects=object_cache.of_user())
            best = float("inf")
            for _ in range(given.rounds):
                trainer.restart(batch=1, rows=STEPS)
                start = perf_counter()
                trainer.train(STEPS)
                best = min(best, (perf_counter() - start) / STEPS)
            parameters[form] = trainer.parameters()
            print(
                f"{name:15} {form:9} {len(trainer.shape_seconds):2} graphs  {sum(trainer.phases.values()):7.2f} s  "
                f"{trainer.sizes['source_bytes'] / 1e6:5.2f} MB of C  {best * 1e6:8.1f} µs per step",
                flush=True,
            )
        print(f"{name:15} padded has the family's bits: {parameters['padded'] == parameters['family']}")


if __name__ == "__main__":
    main()
