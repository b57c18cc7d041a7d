"""The ends of trainings -> curves of loss and accuracy over epochs, for the terminal and for a picture."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from harness.cli import braille
from results.files import NotAsWritten, read_bytes, write_atomically
from results.stats.curves import Curve, median

if TYPE_CHECKING:  # matplotlib takes longer to load than a short training
    from reports.training_plot import Trainings

KINDS = (".png", ".svg")
MADE_BY = "zoomgrad train"
"""A picture says so near its beginning."""
_BEGINNING = 1 << 12

_ROWS = 8
_WIDEST = 76
_BOTH = 100
"""Columns from which two plots stand side by side."""
_GAP = 3
_UNIT = " epochs"


class Curves(NamedTuple):
    """Of one training, over epochs."""

    loss: Curve
    accuracy: Curve
    evaluated_on: str


def curves_of(end: dict[str, Any]) -> Curves:
    """The curves in an `end` event of `harness.worker.train`. Raises LookupError, TypeError and ValueError."""
    steps_per_epoch = end["steps"] / end["epochs"]
    loss = [(steps / steps_per_epoch, float(loss)) for steps, loss in end["curve"]]
    accuracy = [(float(epoch), float(accuracy)) for epoch, accuracy in end["accuracies"]]
    if not loss or not accuracy or not all(map(math.isfinite, (x for point in loss + accuracy for x in point))):
        raise ValueError("a curve has no points, or a point that is not finite")
    return Curves(loss, accuracy, str(end["evaluated_on"]))


def lines(trainings: Sequence[Curves], columns: int) -> list[str]:
    """Plots of the loss and the accuracy, side by side where both fit; of several trainings, the medians."""
    of_several = f", median of {len(trainings)}" if len(trainings) > 1 else ""
    loss = median([curves.loss for curves in trainings])
    accuracy = median([curves.accuracy for curves in trainings])
    side_by_side = columns >= _BOTH
    width = min((columns - _GAP) // 2 if side_by_side else columns, _WIDEST)
    plot = partial(braille.plot, columns=width, rows=_ROWS, unit=_UNIT)
    above = plot(f"loss{of_several}", loss, text="{:.3g}".format)
    if len(accuracy) < 2:
        return above
    title = f"accuracy on {trainings[0].evaluated_on}{of_several}"
    limits = min(math.floor(10 * min(share for _, share in accuracy)) / 10, 0.9), 1.0
    below = plot(title, accuracy, text="{:.0%}".format, limits=limits)
    return braille.beside(above, below, width + _GAP) if side_by_side else above + below


def plot_file(name: str) -> Path:
    """The file that a user names for the picture, which can be written. Raises typer.BadParameter."""
    path = Path(name)
    if path.suffix.lower() not in KINDS:
        raise typer.BadParameter(f"{name!r} ends neither in .png nor in .svg; name FILE.png or FILE.svg")
    try:
        if not _is_free(path):
            raise typer.BadParameter(f"{name!r} is there and no plot of `{MADE_BY}`; name another file, or remove it")
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise typer.BadParameter(
            f"{name!r} can't be written: {error.strerror}; name a file in a folder that you can write to"
        ) from None
    return path


def _is_free(path: Path) -> bool:
    """Whether nothing is there, or an earlier picture of this module. Raises OSError."""
    try:
        return MADE_BY.encode() in read_bytes(path, follow_links=False)[:_BEGINNING]
    except FileNotFoundError:
        return True
    except NotAsWritten:
        return False


def draw(path: Path, trainings: Sequence[Curves], *, title: str, description: str) -> None:
    """Write the picture of all trainings. Raises OSError, which names the file."""
    from reports import training_plot

    drawn: Trainings = training_plot.Trainings(
        title,
        description,
        [curves.loss for curves in trainings],
        [curves.accuracy for curves in trainings],
        trainings[0].evaluated_on,
        MADE_BY,
    )
    as_file = training_plot.as_svg if path.suffix.lower() == ".svg" else training_plot.as_png
    write_atomically(path, as_file(drawn))
