"""The short report in Markdown."""

from itertools import pairwise

import pytest

from zoomgrad.reports.pages.markdown import page
from zoomgrad.reports.story import story
from zoomgrad.reports.text.markdown import escape
from zoomgrad.results.record import Cell, PassedOver, Voucher, Vouching


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


def voucher(engine):
    return Voucher(cell=Cell(engine=engine, interpreter="cpython-3.13", workload="xor"), steps=8, worker_seconds=2.0)


def test_the_whole_text(example, golden):
    """Of the example, with its failures, on a busy machine, where one engine could not vouch."""
    busy = example.mapped(lambda record: record.model_copy(update={"other_load": 1.5}))
    passed = (PassedOver(engine="clang-O0", status="skipped", reason="there is no clang on PATH"),)
    vouching = Vouching(workload="xor", vouchers=tuple(map(voucher, ("tuple", "tcc", "gcc-O0"))), passed_over=passed)
    golden("report.md", page(story(busy.run, busy.records, None, [vouching])))
