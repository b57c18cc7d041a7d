"""Parsing of perf's output, and perf itself where it is allowed to profile."""

import sys

import pytest

from zoomgrad.harness.profile import perf
from zoomgrad.harness.run.replies import NoResult
from zoomgrad.results.profile import SymbolProfile
from zoomgrad.results.stats.stacks import Frame, group_of

SCRIPT = """\

\t          25c732 gc_collect_main (/usr/lib/libpython3.13.so.1.0)
\t          266df3 _Py_HandlePending (/usr/lib/libpython3.13.so.1.0)
\t          2329e4 _PyEval_EvalFrameDefault (/usr/lib/libpython3.13.so.1.0)
\t            1080 _start (/usr/bin/python3.13)

\tffffffff817aacc8 exc_page_fault ([kernel.kallsyms])

\t    7f0000000001 [unknown] (/tmp/zoomgrad-build-1/program.so (deleted))
\t          2329e4 operator new(unsigned long) (/usr/lib/libstdc++.so.6)
"""


def stacks():
    return list(perf.samples(SCRIPT.splitlines()))


def test_each_sample_is_a_stack_with_the_innermost_frame_first():
    first, second, third = stacks()
    assert [frame.symbol for frame in first][:2] == ["gc_collect_main", "_Py_HandlePending"]
    assert second == [Frame("exc_page_fault", "[kernel.kallsyms]")]
    assert third == [Frame("[unknown]", "program.so"), Frame("operator new(unsigned long)", "libstdc++.so.6")]
    assert list(perf.samples([])) == []


CASES = {
    ("gc_collect_main",): "garbage collector",
    ("collect.constprop.0",): "garbage collector",  # 3.9 and 3.10
    ("visit_decref",): "garbage collector",
    ("_PyEval_EvalFrameDefault",): "evaluation loop",
    ("_PyObject_Malloc", "_PyEval_EvalFrameDefault"): "others",
    # everything below a collection counts for the collector
    ("set_dealloc", "_PyObject_ClearInstanceAttributes", "gc_collect_main", "_PyObject_GC_Link"): "garbage collector",
}
"""Functions on a stack, innermost first -> their group."""


def test_the_group_of_a_stack():
    python = "libpython3.13.so.1.0"
    assert {symbols: group_of([Frame(symbol, python) for symbol in symbols]) for symbols in CASES} == CASES


def test_without_perf_there_is_a_remedy(monkeypatch):
    monkeypatch.setattr(perf, "which", lambda _: None)
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(NoResult, match="not installed") as none:
        perf.find()
    assert none.value.why["status"] == "skipped"
    assert "linux-perf" in none.value.remedy


@pytest.fixture
def usable():
    try:
        perf.find()
    except NoResult as none:
        pytest.skip(none.reason)


@pytest.mark.alone
def test_a_real_perf(session, usable):
    fields = perf.profile(session("perf", "tuple", "digits", seconds=2.0))
    profile = SymbolProfile.model_validate({**session.common, **fields})
    assert profile.samples >= perf.FEWEST
    assert sum(profile.groups.values()) == pytest.approx(1)
    assert profile.tool.startswith("perf")
    if session.has_symbols:
        assert profile.groups["evaluation loop"] > 0.05
        assert profile.groups["garbage collector"] > 0
