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
        ours, expected = (
            {
                "parameters": len(one.parameters),
                "gradients": len(one.gradients),
                "optimiser": one.optimiser,
                "numbers of the optimiser": {name: len(state) for name, state in one.states.items()},
                "batch": one.batch,
            }
            for one in (self, like)
        )
        for what, value in ours.items():
            if value != expected[what]:
                raise ValueError(
                    f"the checkpoint's {what}: {value!r}; this training's: {expected[what]!r}\n"
                    "  Continue with the model, optimiser and batch that it was saved with."
                )


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
    try:
        for name, (size,) in shapes.items():
            start, end = end, end + size
            parts[name] = numbers[start:end]
        p, q, losses = (parts.pop(name) for name in TENSORS)
        states = {name[len(STATE) :]: part for name, part in parts.items()}
        return Checkpoint(p, q, losses, states, settings["optimiser"], whole(int(settings["batch"]), "batch", 1))
    except (ValueError, KeyError):
        raise BadFile(path, "it does not hold a training", "Name a file that `save_checkpoint` wrote.") from None
