"""Printed pages: nothing is cut off or hidden in a scrolling area."""

import re

import pytest

from tests.reports.browser import framed, in_browser, printed

WIDTH, HEIGHT = 710, 971
"""The smaller width and height of A4 and US letter in pixels, without the margins of `@page`."""

ANSWER = """
<script>
const shown = one => one.checkVisibility();
const label = one => one.closest("figure, .scroll")?.getAttribute("aria-label") ?? one.tagName;
const name = one => `${label(one)}: ${one.textContent.slice(0, 40)}`;
document.body.dataset.answer = JSON.stringify({
  page: document.documentElement.scrollWidth,
  wide: [...document.querySelectorAll("svg, th, td, pre, p, dd")].filter(shown)
    .filter(one => one.getBoundingClientRect().right > innerWidth + 1).map(name),
  scrolling: [...document.querySelectorAll(".scroll, pre")].filter(shown)
    .filter(one => ["auto", "scroll"].includes(getComputedStyle(one).overflowX) && one.scrollWidth > one.clientWidth)
    .map(name),
  tall: [...document.querySelectorAll("figure")].filter(one => one.getBoundingClientRect().height > HEIGHT)
    .map(one => one.id),
  charts: document.querySelectorAll("figure svg").length,
  controls: [...document.querySelectorAll(".controls")].filter(shown).length,
  folded: [...document.querySelectorAll("details:not([open]) > summary")].filter(shown)
    .map(one => getComputedStyle(one, "::after").content.includes("open it on the page")),
});
</script>
""".replace("HEIGHT", str(HEIGHT))


@in_browser
@pytest.mark.parametrize("which", ["whole_page", "crowded_page", "profiled_page"])
def test_print_hides_nothing(which, request, tmp_path):
    page = request.getfixturevalue(which)
    # Apply the print rules to all media, and drop the policy so that a script may answer.
    assert page.count("@media print {") == 1
    page = re.sub(r"<meta http-equiv[^>]*>", "", page.replace("@media print {", "@media all {"), count=1)
    found = framed(page.replace("</body>", f"{ANSWER}</body>"), tmp_path, WIDTH)
    assert found["charts"] > 0
    assert found["wide"] == []
    assert found["scrolling"] == []
    assert found["tall"] == []
    assert found["page"] <= WIDTH
    assert found["controls"] == 0
    assert found["folded"]
    assert all(found["folded"]), "a folded part has no hint that it is left out in print"


@in_browser
@pytest.mark.parametrize("which", ["whole_page", "profiled_page"])
def test_a_page_prints(which, request, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(request.getfixturevalue(which), encoding="utf-8")
    pdf = printed(file)
    assert pdf.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type /Page\b", pdf)) > 3
    assert len(pdf) < 10_000_000
