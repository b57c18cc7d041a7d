"""Golden C of recovered loops in vectors. An `#include` replaces each file that is the same for every graph."""

from __future__ import annotations

import pytest

from engines.kernel import c_text
from engines.rerolled.emit.c import c_source
from engines.rerolled.rearrange import weight_reuse as pairs
from tests.engines.graphs import classifier
from tests.engines.rerolled.rolling import form, step_of, tape_of

pytestmark = pytest.mark.host


def test_c(golden, monkeypatch):
    """The network has too few weights to be rearranged, so the test lowers the threshold."""
    monkeypatch.setattr(pairs, "MANY", 1)
    monkeypatch.setattr(c_text, "read", '#include "{}"'.format)
    graph, kinds = classifier()
    chosen = form(width=4)
    source = c_source(step_of(tape_of(graph, kinds, [0, 1, 2]), chosen), chosen)
    golden("rerolled-deferred.c", "\n".join(source.units))
