"""The short report in Markdown."""

from itertools import pairwise

import pytest

from zoomgrad.reports.pages.markdown import page
from zoomgrad.reports.story import story
from zoomgrad.reports.text.markdown import escape


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a | b", r"a \| b"),
        ("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"),
        ("[a](http://x)", r"\[a\](http://x)"),
        ("two\nlines", "two lines"),
        ("local-grads", "local-grads"),
    ],
)
def test_escape(text, escaped):
    assert escape(text) == escaped


def test_every_row_has_as_many_cells_as_its_header(full_story):
    lines = page(full_story).splitlines()
    for above, line in pairwise(lines):
        if above.startswith("|") and line.startswith("|"):
            assert above.replace(r"\|", "").count("|") == line.replace(r"\|", "").count("|")


def test_the_whole_text(example, golden):
    """Of the example, with its failures."""
    golden("report.md", page(story(example.run, example.records)))
