"""The ends of trainings -> curves of loss and accuracy over epochs, for a picture."""

from __future__ import annotations

import errno
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from results.files import NotAsWritten, read_bytes, write_atomically
from results.stats.curves import Curve

if TYPE_CHECKING:  # matplotlib takes longer to load than a short training
    from reports.training_plot import Trainings

MADE_BY = "zoomgrad train"
_BEGINNING = f"<!-- {MADE_BY} -->\n<svg ".encode()


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


def plot_file(name: str) -> Path:
    """The file that a user names for the picture, which can be written. Raises typer.BadParameter."""
    path = Path(name)
    if not path.name.lower().endswith(".svg"):
        raise typer.BadParameter(f"{name!r} must end in .svg; name FILE.svg")
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
    if not content.startswith(_BEGINNING):
        raise FileExistsError(errno.EEXIST, f"already exists and is not a plot made by `{MADE_BY}`", str(path))


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
    content = training_plot.as_svg(drawn)
    _check_free(path)  # training takes long enough for somebody to put another file there
    write_atomically(path, content)
