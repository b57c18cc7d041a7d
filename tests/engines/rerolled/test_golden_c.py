"""Golden C of recovered loops in each form. An `#include` replaces each file that is the same for every graph.

Of a form that builds on another one, the golden file is the diff, which shows one idea.
"""

from __future__ import annotations

import difflib

import pytest

from engines.kernel import c_text
from engines.rerolled.emit.c import c_source
from engines.rerolled.rearrange import weight_reuse as pairs
from tests.engines.graphs import classifier
from tests.engines.rerolled.rolling import form, step_of, tape_of

pytestmark = pytest.mark.host

FORMS = {
    "scalars": form(rows=0),
    "deferred": form(width=4),
    "rows": form(width=4, rows=2),
    "zeros": form(width=4, rows=2, sparse=True),
}


BUILDS_ON = {"rows": "deferred", "zeros": "rows"}


def c_of(name):
    """Lines of the C of a network of 3, 4 and 3 neurons in that form."""
    graph, kinds = classifier()
    source = c_source(step_of(tape_of(graph, kinds, [0, 1, 2]), FORMS[name]), FORMS[name])
    return "\n".join(source.units).splitlines(keepends=True)


@pytest.mark.parametrize("name", FORMS)
def test_c(golden, monkeypatch, name):
    """The network has too few weights to be rearranged, so the test lowers the threshold."""
    monkeypatch.setattr(pairs, "MANY", 1)
    monkeypatch.setattr(c_text, "read", '#include "{}"'.format)
    base = BUILDS_ON.get(name)
    if base:
        golden(f"rerolled-{name}.diff", "".join(difflib.unified_diff(c_of(base), c_of(name), base, name, n=0)))
    else:
        golden(f"rerolled-{name}.c", "".join(c_of(name)))
