"""Golden C of recovered loops in vectors. An `#include` replaces each file that is the same for every graph."""

from __future__ import annotations

import pytest

from tests.engines.rerolled.rolling import form, step_of, tape_of_workload
from zoomgrad.engines.kernel import c_text
from zoomgrad.engines.rerolled.emit.c import c_source
from zoomgrad.harness import workloads

pytestmark = pytest.mark.host


def test_c(golden, monkeypatch):
    monkeypatch.setattr(c_text, "read", '#include "{}"'.format)
    chosen = form(rows=0, width=4)
    source = c_source(step_of(tape_of_workload(workloads.load("mlp-2x2x1")), chosen), chosen)
    golden("rerolled-mlp-2x2x1.c", "\n".join(source.units))
