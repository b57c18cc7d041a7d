"""Curves of trainings: their median, and the picture that `zoomgrad train --plot` draws."""

import math
import os
import xml.etree.ElementTree as ET

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.training_plots import Curves, curves_of, draw, plot_file
from reports.charts.drawing import style
from results.stats.curves import height_at, median

END = {
    "steps": 8,
    "epochs": 4,
    "curve": [[2, 3.0], [4, 2.0], [6, 1.5], [8, 1.0]],
    "evaluated_on": "6 held out",
    "accuracies": [[1, 0.5], [4, 1.0]],
}
ONE = curves_of(END)
OTHER = Curves([(1.0, 5.0), (2.0, 4.0)], [(1.0, 0.1), (2.0, 0.3)], "6 held out")


def test_a_median_keeps_the_last_value_of_a_training_that_stopped():
    assert median([[(1.0, 1.0)], [(1.0, 2.0), (2.0, 4.0), (3.0, 8.0)], [(3.0, 9.0)]]) == [
        (1.0, 2.0),
        (2.0, 4.0),
        (3.0, 8.0),
    ]
    assert median([[(1.0, 1.0)]]) == [(1.0, 1.0)]
    long = [[(float(x), float(x * k)) for x in range(1000)] for k in (1, 2, 3)]
    assert len(median(long)) == 256
    assert all(y == pytest.approx(2 * x) for x, y in median(long))


def test_between_points_a_curve_is_straight():
    curve = [(1.0, 0.0), (3.0, 4.0)]
    assert [height_at(curve, x) for x in (0.0, 1.0, 2.0, 2.5, 3.0, 9.0)] == [0.0, 0.0, 2.0, 3.0, 4.0, 4.0]


@pytest.mark.parametrize(
    "change",
    [
        {"curve": []},
        {"curve": [[1, math.nan]]},
        {"curve": [[1, None]]},
        {"curve": 3},
        {"accuracies": [["x", 1.0]]},
        {"accuracies": []},
        {"epochs": 0},
    ],
    ids=str,
)
def test_words_of_an_engine_are_no_curves(change):
    with pytest.raises((TypeError, ValueError, ArithmeticError)):
        curves_of({**END, **change})


# The picture


@pytest.fixture
def picture(tmp_path):
    return tmp_path / "plot.svg"


def drawn(path, trainings, title="xor on <replay> & $co$", description="a_b^2"):
    draw(plot_file(str(path)), trainings, title=title, description=description)
    return path.read_bytes()


def test_a_picture_is_drawn_again_and_always_the_same(picture):
    first = drawn(picture, [ONE, OTHER])
    assert drawn(picture, [ONE, OTHER]) == first
    assert drawn(picture, [ONE]) != first


def test_a_vector_picture_has_a_line_for_each_training_and_their_median(tmp_path):
    texts, paths = [], []
    for count in (1, 3, 4):
        root = ET.fromstring(drawn(tmp_path / f"{count}.svg", [ONE, OTHER, ONE, OTHER][:count]))
        texts.append([element.text or "" for element in root.iter() if element.tag.endswith("text")])
        paths.append(sum(element.tag.endswith("path") for element in root.iter()))
    assert "xor on <replay> & $co$" in texts[0]
    assert {"training loss", "accuracy on 6 held out", "epochs"} <= set(texts[0])
    assert not any("median" in text for text in texts[0])
    assert any(text.startswith("median; ") for text in texts[1])
    assert "3 trainings, each from its own seed" in texts[1]
    assert paths[0] < paths[1]


@given(st.floats(1e-300, 1e290), st.floats(30.0, 1e10))
def test_any_wide_range_has_ticks(low, ratio):
    assert 2 <= len(ticks := style.log_ticks(low, low * ratio)) <= 7
    assert ticks == sorted(set(ticks))


@pytest.mark.parametrize("losses", [(7e-31, 0.19), (5e-324, 1e300), (1e-3, 1e20)], ids=str)
def test_a_picture_of_any_losses(losses, picture):
    curve = [(float(x), y) for x, y in enumerate(reversed(losses), 1)]
    assert drawn(picture, [ONE._replace(loss=curve)])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<svg> <!-- zoomgrad train -->\n<svg ",
        b"<!-- zoomgrad train --> <svg ",
        b"<!-- zoomgrad train -->\n<svgs>",
    ],
)
def test_a_file_of_somebody_else_is_never_replaced(content, picture):
    picture.write_bytes(content)
    with pytest.raises(typer.BadParameter, match=r"already exists and is not a plot made by `zoomgrad train`; name "):
        plot_file(str(picture))
    with pytest.raises(FileExistsError, match="is not a plot made by"):
        draw(picture, [ONE], title="put there during the training", description="")
    assert picture.read_bytes() == content


def test_nothing_but_a_plain_file_is_replaced(tmp_path):
    drawn(tmp_path / "own.svg", [ONE])
    (tmp_path / "link.svg").symlink_to(tmp_path / "own.svg")
    (tmp_path / "folder.svg").mkdir()
    os.mkfifo(tmp_path / "fifo.svg")
    for name, problem in (("link", "is a link"), ("folder", "already exists"), ("fifo", "already exists")):
        with pytest.raises(typer.BadParameter, match=f"{problem}.*; name "):
            plot_file(str(tmp_path / f"{name}.svg"))


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("plot.pdf", "must end in .svg"),
        ("absent/plot.svg", "can't be written: No such file or directory"),
        ("file.svg/plot.svg", "can't be written: Not a directory"),
        (f"{'x' * 300}.svg", "can't be written: File name too long"),
        ("/proc/plot.svg", "can't be written: "),
    ],
    ids=lambda text: text[:20],
)
def test_where_no_picture_can_go_is_told_before_the_training(name, problem, tmp_path):
    (tmp_path / "file.svg").touch()
    with pytest.raises(typer.BadParameter) as error:
        plot_file(name if name.startswith("/") or not name else str(tmp_path / name))
    assert problem in str(error.value)
    assert "; name " in str(error.value)
    assert "\n" not in str(error.value)
