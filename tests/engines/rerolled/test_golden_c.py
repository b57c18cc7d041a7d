"""The C of recovered loops, whole, in each of its forms: what a reader of the generated code sees."""

from __future__ import annotations

import pytest

from engines.rerolled.emit.c_loops import c_source
from engines.rerolled.emit.c_nest import Form
from engines.rerolled.engine import reroll
from engines.rerolled.rearrange import weight_reuse as pairs
from tests.engines.graphs import classifier
from tests.engines.rerolled.rolling import tape_of

pytestmark = pytest.mark.host

FORMS = {
    "scalars": Form(rows=0),
    "deferred": Form(width=4),
    "rows": Form(width=4, rows=2),
    "zeros": Form(width=4, rows=2, sparse=True),
}


@pytest.mark.parametrize("form", FORMS)
def test_c(golden, monkeypatch, form):
    """A network of 3, 4 and 3 neurons. Its weights are few: they are rearranged because the test says so."""
    monkeypatch.setattr(pairs, "MANY", 1)
    graph, kinds = classifier()
    source = c_source(reroll(tape_of(graph, kinds, [0, 1, 2])), FORMS[form])
    golden(f"rerolled-{form}.c", "\n".join(source.units))
