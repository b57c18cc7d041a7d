"""A training in a file, so that it can be continued with the same bits, by the same engine or by another one.

The format is that of parameters (`parameters.py`), with further tensors.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from engines.arguments import whole
from engines.saving.parameters import BadFile, FilePath, load_parameters, save_parameters

TENSORS = ("parameters", "gradients", "losses")
STATE = "optimiser."
"""Begins the name of a tensor that an optimiser keeps."""


class Checkpoint(NamedTuple):
    """What the next steps depend on besides the workload and the rows that `restart` chose.

    Parameters are in the model's order.
    """

    parameters: array[float]
    gradients: array[float]
    """Of a partial batch; else 0."""
    losses: array[float]
    """Of every step so far."""
    states: dict[str, array[float]]
    """What the optimiser keeps."""
    optimiser: str
    batch: int

    def check(self, like: Checkpoint) -> None:
        """Raise ValueError unless it fits a trainer, which would make `like`."""
        for what, ours, theirs in (
            ("parameters", len(self.parameters), len(like.parameters)),
            ("gradients", len(self.gradients), len(like.parameters)),
            ("optimiser", self.optimiser, like.optimiser),
            ("numbers of the optimiser", [*self.states], [*like.states]),
            ("batch", self.batch, like.batch),
        ):
            if ours != theirs:
                raise ValueError(
                    f"the checkpoint's {what}: {ours!r}; this training's: {theirs!r}\n"
                    "  Continue with the model, optimiser and batch that it was saved with."
                )
        if any(len(state) != len(like.parameters) for state in self.states.values()):
            raise ValueError("the checkpoint's optimiser has numbers of another model\n  Continue with its own model.")


def save_checkpoint(path: FilePath, checkpoint: Checkpoint, *, overwrite: bool = False) -> None:
    """Write it to the file, atomically. Raises the errors of `save_parameters`."""
    parts = {name: getattr(checkpoint, name) for name in TENSORS}
    parts.update({STATE + name: state for name, state in checkpoint.states.items()})
    save_parameters(
        path,
        array("d", (number for part in parts.values() for number in part)),
        shapes={name: (len(part),) for name, part in parts.items()},
        settings={"optimiser": checkpoint.optimiser, "batch": str(checkpoint.batch)},
        overwrite=overwrite,
    )


def load_checkpoint(path: FilePath) -> Checkpoint:
    """Read a file that `save_checkpoint` wrote. Raises BadFile and OSError."""
    numbers, shapes, settings = load_parameters(path)
    parts, end = {}, 0
    for name, shape in shapes.items():
        start, end = end, end + (shape[0] if len(shape) == 1 else 0)
        parts[name] = numbers[start:end]
    names = [*parts]
    others = [name for name in names if not name.startswith(STATE)]
    try:
        batch = whole(int(settings.get("batch", "")), "batch", 1)
    except ValueError:
        batch = 0
    if tuple(others) != TENSORS or end != len(numbers) or not batch or "optimiser" not in settings:
        raise BadFile(path, "it does not hold a training", "Name a file that `save_checkpoint` wrote.")
    states = {name[len(STATE) :]: part for name, part in parts.items() if name not in TENSORS}
    p, q, losses = (parts[name] for name in TENSORS)
    return Checkpoint(p, q, losses, states, settings["optimiser"], batch)
