"""The width of vectors is the widest, or what the user says."""

import pytest

from tests.engines.compiled.compiling import usable
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.compiled.machine import VECTORS
from zoomgrad.engines.rerolled.fitted import fitted

pytestmark = pytest.mark.host


@pytest.mark.parametrize(("name", "setting", "width"), [("rerolled-gcc", "2", 2), ("rerolled-clang+generic", "8", 2)])
def test_the_user_sets_the_width(name, setting, width, monkeypatch):
    """No processor and no flags get wider vectors than they have."""
    monkeypatch.setenv(VECTORS, setting)
    assert fitted(usable(name).options).width == width


def test_a_width_that_does_not_exist_is_refused(monkeypatch):
    engine = usable("rerolled-gcc")
    monkeypatch.setenv(VECTORS, "16")
    with pytest.raises(Unavailable, match=r"ZOOMGRAD_VECTORS is '16', but .*\n  Unset ZOOMGRAD_VECTORS"):
        engine.check()
