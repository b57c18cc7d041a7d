"""axe-core's rules for names, roles and contrast on the whole page in a real browser, in light and dark."""

from importlib import resources

import pytest

from tests.reports.browser import DARK, answer, dumped, in_browser

AXE = resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
ASK = """
for (const details of document.querySelectorAll("details")) details.open = true;
// Rows that differ only in text and numbers are the same to every rule, and axe would take a minute for hundreds.
const shape = row => row.outerHTML.replace(/>[^<]*</g, "><").replace(/\\d[\\d.,]*/g, "0");
for (const body of document.querySelectorAll("tbody")) {
    const seen = {};
    for (const row of [...body.rows]) {
        seen[shape(row)] = (seen[shape(row)] ?? 0) + 1;
        if (seen[shape(row)] > 2) row.remove();
    }
}
axe.run({resultTypes: ["violations"]}).then(found => {
    document.body.dataset.answer = JSON.stringify({
        dark: matchMedia("(prefers-color-scheme: dark)").matches,
        passes: found.passes.length,
        violations: found.violations.map(one => [one.id, one.help, one.nodes.slice(0, 5).map(node => node.target)]),
    });
});
"""
POLICY = 'http-equiv="Content-Security-Policy"'


@in_browser
@pytest.mark.parametrize(
    ("which", "scheme"),
    [
        ("crowded_page", "light"),
        # The two pages have the same colours.
        pytest.param("crowded_page", "dark", marks=pytest.mark.exhaustive),
        ("profiled_page", "light"),
        ("profiled_page", "dark"),
    ],
)
def test_the_page_is_accessible(which, scheme, request, tmp_path):
    page = request.getfixturevalue(which)
    assert POLICY in page
    # The page's policy would block every script except its own. The body takes the answer.
    page = page.replace(POLICY, "").replace("<body ", '<body data-answer="" ', 1)
    file = tmp_path / "page.html"
    file.write_text(page.replace("</body>", f"<script>{AXE}</script><script>{ASK}</script></body>"), encoding="utf-8")
    flags = (DARK,) if scheme == "dark" else ()
    found = answer(dumped(file, *flags))
    assert found["dark"] == (scheme == "dark")
    assert found["passes"] > 10
    assert found["violations"] == []
