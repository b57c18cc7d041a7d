"""The ends of trainings -> curves of loss and accuracy over epochs, for the terminal and for a picture."""

from __future__ import annotations

import errno
import math
import tempfile
import zlib
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

_SVG = f"<!-- {MADE_BY} -->\n<svg ".encode()
_PNG = b"\x89PNG\r\n\x1a\n"
_SOFTWARE = b"tEXtSoftware\0" + MADE_BY.encode()
_CHUNK = b"%b%b%b" % (
    (len(_SOFTWARE) - len(b"tEXt")).to_bytes(4, "big"),
    _SOFTWARE,
    zlib.crc32(_SOFTWARE).to_bytes(4, "big"),
)
"""The chunk with its length and checksum. Metadata in another chunk may quote it without those."""
_BEGINNING = 1 << 12

_ROWS = 8
_WIDEST = 76
_BOTH = 100
"""Columns from which two plots stand side by side."""
_GAP = 3


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
    plot = partial(braille.plot, columns=width, rows=_ROWS, unit=" epoch" if loss[-1][0] == 1 else " epochs")
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
    if not path.name.lower().endswith(KINDS):
        raise typer.BadParameter(f"{name!r} must end in .png or .svg; name FILE.png or FILE.svg")
    try:
        _check_free(path)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except FileExistsError as error:
        raise typer.BadParameter(f"{name!r} {error.strerror}; name another file, or remove it") from None
    except OSError as error:
        raise typer.BadParameter(
            f"{name!r} can't be written: {error.strerror}; name a file in a folder that you can write to"
        ) from None
    return path


def _check_free(path: Path) -> None:
    """Raise FileExistsError if something other than an earlier picture of this module is there; else OSError."""
    try:
        content = read_bytes(path, follow_links=False)
    except FileNotFoundError:
        return
    except NotAsWritten:
        content = b""
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            raise FileExistsError(errno.EEXIST, "is a link", str(path)) from None
        raise
    if not (content.startswith(_SVG) if _is_svg(path) else content.startswith(_PNG) and _CHUNK in content[:_BEGINNING]):
        raise FileExistsError(errno.EEXIST, f"already exists and is not a plot made by `{MADE_BY}`", str(path))


def _is_svg(path: Path) -> bool:
    return path.name.lower().endswith(".svg")


def draw(path: Path, trainings: Sequence[Curves], *, title: str, description: str) -> None:
    """Write the picture of all trainings. Raises FileExistsError for a file of somebody else, and OSError."""
    from reports import training_plot

    drawn: Trainings = training_plot.Trainings(
        title,
        description,
        [curves.loss for curves in trainings],
        [curves.accuracy for curves in trainings],
        trainings[0].evaluated_on,
        MADE_BY,
    )
    content = training_plot.as_svg(drawn) if _is_svg(path) else training_plot.as_png(drawn)
    _check_free(path)  # training takes long enough for somebody to put another file there
    write_atomically(path, content)
