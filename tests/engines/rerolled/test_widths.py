"""The choice of a vector's width."""

import ctypes
from dataclasses import replace
from functools import cache

import pytest

from tests.engines.compiled.compiling import usable
from zoomgrad.engines.answers import MEMORY
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.kernel.building import build
from zoomgrad.engines.rerolled import widths
from zoomgrad.engines.rerolled.fitted import fitted

pytestmark = pytest.mark.host


@pytest.mark.parametrize("name", ["rerolled-gcc", "rerolled-clang"])
def test_products_of_all_widths_are_equal_and_right(name):
    engine = usable(name)
    sizes = (widths.ROWS * widths.TERMS, widths.TERMS * widths.LANES, widths.ROWS * widths.LANES)
    x, w, y = ((ctypes.c_double * size)(*[(7 * n % 11) / 8 for n in range(size)]) for size in sizes)
    right = [
        sum(x[widths.TERMS * i + t] * w[widths.LANES * t + j] for t in range(widths.TERMS))
        for i in range(widths.ROWS)
        for j in range(widths.LANES)
    ]
    for registers in (16, 32):
        form = replace(fitted(engine.options), registers=registers)
        source = widths.source(form, [8, 4, 2])
        with build(engine.toolchain(), [source], [*engine.flags, *toolchains.STRICT]) as built:
            products = ctypes.CDLL(str(built.path))
            for width in (8, 4, 2):
                products[f"product{width}"](x, w, y)
                assert list(y) == right


@pytest.mark.parametrize(
    ("times", "width"),
    [
        ({"8": 1.0, "4": 1.0, "2": 1.0}, 8),
        ({"8": 1.0, "4": 0.96, "2": 2.0}, 8),
        ({"8": 1.0, "4": 0.9, "2": 0.87}, 4),
        ({"8": 1.0, "4": 0.9, "2": 0.8}, 2),
    ],
)
def test_narrower_vectors_must_be_clearly_faster(times, width):
    assert widths.chosen(times) == width


def test_an_engine_uses_and_records_the_remembered_choice(monkeypatch, tmp_path):
    engine = usable("rerolled-gcc")
    if fitted(engine.options).width < 4 or not toolchains.IS_X86:
        pytest.skip("needs a processor with a choice of widths")
    monkeypatch.setenv("ZOOMGRAD_CACHE", str(tmp_path))
    if not MEMORY.keeps(engine.toolchain().command):
        pytest.skip("needs a gcc whose answers can be remembered: a program, not a script")
    asked = []

    def measured(tool, flags, form, candidates):
        asked.append(form.width)
        return {str(width): 0.5 if width == 2 else 0.9 for width in candidates}

    monkeypatch.setattr(widths, "measured", measured)
    monkeypatch.setattr(widths, "fastest", cache(widths.fastest.__wrapped__))
    assert fitted(engine.options).width == 2
    widths.fastest.cache_clear()  # as in another process
    assert fitted(engine.options).width == 2
    assert len(asked) == 1
    widths.fastest.cache_clear()
    monkeypatch.setenv("ZOOMGRAD_CACHE", "off")  # processes that remember nothing must still agree
    assert fitted(engine.options).width == asked[0]


@pytest.mark.parametrize(("name", "setting", "width"), [("rerolled-gcc", "2", 2), ("rerolled-clang+generic", "8", 2)])
def test_the_user_sets_the_width(name, setting, width, monkeypatch):
    """No processor and no flags get wider vectors than they have."""
    monkeypatch.setenv(widths.SETTING, setting)
    assert fitted(usable(name).options).width == width


def test_a_width_that_does_not_exist_is_refused(monkeypatch):
    engine = usable("rerolled-gcc")
    monkeypatch.setenv(widths.SETTING, "16")
    with pytest.raises(Unavailable, match=r"ZOOMGRAD_VECTORS is '16', but .*\n  Unset ZOOMGRAD_VECTORS"):
        engine.check()
