"""Screenshots of the pages in light, dark and phone width, saved to `.zoomgrad/screenshots/` for people to look at."""

from pathlib import Path

import pytest
from matplotlib.image import imread

from tests.reports.browser import DARK, in_browser, photographed

FOLDER = Path(__file__).parents[2] / ".zoomgrad" / "screenshots"
"""CI uploads this folder as an artefact."""
OTHERS = ("crowded_page", "profiled_page")
LOOKS = {"light": (1280, ()), "dark": (1280, (DARK,)), "phone": (390, ())}


LATER = pytest.mark.exhaustive
PAGES = [
    *(pytest.param("whole_page", look) for look in LOOKS),
    # axe and test_html check the colours and widths of these.
    *(pytest.param(which, look, marks=[LATER] * (look != "light")) for which in OTHERS for look in LOOKS),
]


@in_browser
@pytest.mark.parametrize(("which", "look"), PAGES)
def test_a_screenshot_shows_the_whole_page(which, look, request, tmp_path):
    width, flags = LOOKS[look]
    png = FOLDER / f"{which.removesuffix('_page')}-{look}.png"
    height = photographed(request.getfixturevalue(which), tmp_path, png, width, *flags)
    picture = imread(png)[:, :width, :3]
    assert picture.shape[0] == height > 2000
    background = picture[2, 2].mean()
    assert background < 0.2 if look == "dark" else background > 0.9
    # Every part of the page must have content, so that no part is an empty frame.
    for part in range(0, height - 1000, 1000):
        assert picture[part : part + 1000].std() > 0.02, f"the picture is empty from pixel {part} on"
