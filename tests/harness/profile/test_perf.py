"""Parsing of perf's output, and perf itself where it is allowed to profile."""

import sys
from pathlib import Path

import pytest

from zoomgrad.harness.profile import perf
from zoomgrad.harness.profile.symbols import Frame
from zoomgrad.harness.run.replies import NoResult
from zoomgrad.results.profile import SymbolProfile

SCRIPT = """\

\t          25c732 gc_collect_main (/usr/lib/libpython3.13.so.1.0)
\t          266df3 _Py_HandlePending (/usr/lib/libpython3.13.so.1.0)
\t          2329e4 _PyEval_EvalFrameDefault (/usr/lib/libpython3.13.so.1.0)
\t             80f py::Value.__init__:/home/me/engines/interpreted/baseline.py (/tmp/jitted-7-9.so)
\t          2329e4 _PyEval_EvalFrameDefault (/usr/lib/libpython3.13.so.1.0)
\t             80f py::exercise:/home/me/harness/worker/profile.py (/tmp/jitted-7-1.so)
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
    assert first[3] == Frame("py::Value.__init__", "baseline.py")
    assert second == [Frame("exc_page_fault", "[kernel.kallsyms]")]
    assert third == [Frame("[unknown]", "program.so"), Frame("operator new(unsigned long)", "libstdc++.so.6")]
    assert list(perf.samples([])) == []


def test_folded_stacks_show_pythons_functions_and_what_the_innermost_called(tmp_path):
    file = tmp_path / "perf.folded"
    perf._keep_stacks(stacks(), file)
    assert file.read_text().splitlines() == [
        "Value.__init__ (baseline.py);_PyEval_EvalFrameDefault;_Py_HandlePending;gc_collect_main 1",
        "exc_page_fault 1",
        "operator new(unsigned long);[unknown] 1",
    ]


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
    before = set(Path("/tmp").glob("jit*-*"))
    fields = perf.profile(session("tuple", "digits", seconds=2.0))
    profile = SymbolProfile.model_validate({**session.common, **fields})
    assert profile.samples >= perf.FEWEST
    assert sum(profile.groups.values()) == pytest.approx(1)
    assert profile.tool.startswith("perf")
    if session.has_symbols:
        assert profile.groups["evaluation loop"] > 0.05
        assert profile.groups["garbage collector"] > 0
    text = (session.folder / "perf.folded").read_text()
    assert ";" in text
    if sys.version_info >= (3, 13):
        assert "Value.__init__ (tuple.py)" in text
    assert set(Path("/tmp").glob("jit*-*")) <= before, "files that Python and perf left there must be removed"
