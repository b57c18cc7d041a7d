"""The C of recovered loops has few statements."""

from __future__ import annotations

import pytest

from tests.engines.compiled.compiling import usable
from zoomgrad.engines.compiled.emit import text as text_of
from zoomgrad.engines.compiled.lower import lower
from zoomgrad.engines.compiled.trace import Graph

pytestmark = pytest.mark.host


def test_constants_do_not_add_statements():
    """gcc takes milliseconds for a statement, so many different constants are a table and a loop."""
    engine = usable("rerolled-tcc")

    def statements(number):
        p, x = engine.Value(0.3), engine.Value(0.7)
        loss = sum((p * x - number(i)) ** 2 for i in range(300))
        return text_of(lower(Graph(loss, [x], [p]).tape(), engine.options), engine.options).count(";")

    assert abs(statements(lambda i: 0.01 * i + 0.005) - statements(lambda i: 0.5)) < 20
