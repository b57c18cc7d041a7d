"""The headline: who leads, with what it is compared, and who never wins."""

import math

import pandas as pd
import pytest

from zoomgrad.reports.measured.findings import best, findings
from zoomgrad.reports.measured.headline import claim, headline_workload

FEW = (math.nan, math.nan)


def row(engine, step, bounds, speedup, around, promise="identical bits", compiling=0.5, peer=""):
    return {
        "engine": engine,
        "interpreter": "cpython-3.13",
        "workload": "xor",
        "peer": peer,
        "twin": "",
        "status": "measured",
        "bits": "identical",
        "on_reference": True,
        "promise": promise,
        "step_seconds": step,
        "step_seconds_low": bounds[0],
        "step_seconds_high": bounds[1],
        "compile_seconds": compiling,
        "epoch_seconds": 4 * step,
        "extrapolated": False,
        "speedup": speedup,
        "speedup_low": around[0],
        "speedup_high": around[1],
    }


BASE = row("baseline", 1.0, (0.9, 1.1), 1.0, (1.0, 1.0), "within 1e-09", 0.0)
BEST = row("tcc", 0.1, (0.09, 0.11), 10.0, (9.0, 11.0))


def said(*rows):
    return " ".join(findings(pd.DataFrame([BASE, *rows]), "xor"))


def test_a_winner_that_is_apart_stands_alone():
    text = said(BEST, row("gcc-O1", 0.2, (0.19, 0.21), 5.0, (4.5, 5.5)))
    assert "tcc is 10 times as fast as baseline on cpython-3.13 (95 % interval 9.00× to 11.0×)." in text
    assert "may be as fast" not in text


@pytest.mark.parametrize("bounds", [((0.1, 0.12), (8.0, 10.0)), (FEW, FEW)])
def test_engines_whose_intervals_overlap_share_the_lead(bounds):
    near = row("gcc-O1", 0.105, bounds[0], 9.5, bounds[1])
    assert "(95 % interval 9.00× to 11.0×); gcc-O1 may be as fast." in said(BEST, near)
    assert "; gcc-O1 and clang-O1 may be as fast." in said(BEST, near, {**near, "engine": "clang-O1"})
    assert "; gcc-O1 and 2 others may" in said(BEST, near, {**near, "engine": "a"}, {**near, "engine": "b"})


CLANG = row("clang-O1", 0.2, (0.19, 0.21), 5.0, (4.5, 5.5))


def test_the_headline_compares_with_clang_else_with_the_next_of_the_list():
    table = pd.DataFrame([BASE, BEST, CLANG])
    first = "The untouched xor graph, same bits: 500 ms to compile, 400 ms per epoch (tcc on cpython-3.13), against "
    assert claim(table, "xor").text == f"{first}500 ms and 800 ms for Clang -O1"
    assert claim(table[:2], "xor").text == f"{first}nothing and 4.00 s for baseline"
    assert claim(table[1:2], "xor").rival is None
    assert claim(table.assign(workload="mnist"), "mnist").text.startswith("The untouched MNIST graph, same bits")


OUTSIDERS = {
    "handwritten-sparse": {},
    "jax": {"peer": "engines/peers/models/with_jax.py", "promise": "within 1e-09"},
    "rerolled-gcc-threads4": {},
    "rerolled-clang-fast": {"promise": "within 1e-06"},
}


@pytest.mark.parametrize("name", OUTSIDERS)
def test_a_reference_line_never_wins(name):
    """However fast: another graph, other bits, more threads, another library."""
    outsider = row(name, 0.001, (0.0009, 0.0011), 1000.0, (900.0, 1100.0), **OUTSIDERS[name])
    table = pd.DataFrame([BASE, BEST, CLANG, outsider])
    assert claim(table, "xor").row.engine == best(table).engine == "tcc"
    text = said(BEST, CLANG, outsider)
    assert "1,000 times" not in text
    assert f"Reference lines, which never win: {name} (" in text
    assert "may be as fast" not in text


@pytest.mark.parametrize(
    ("measured", "headline"),
    [
        (["xor", "digits", "mnist", "mnist-b1000"], "mnist-b1000"),
        (["xor", "digits", "mnist"], "mnist"),
        (["xor", "digits"], "digits"),
    ],
)
def test_the_headline_workload_is_mnist_else_the_largest(measured, headline):
    size = {"xor": 0.001, "digits": 10.0, "mnist": 5.0, "mnist-b1000": 1.0}
    rows = [
        {**one, "workload": name, "epoch_seconds": one["step_seconds"] * size[name]}
        for name in measured
        for one in (BASE, BEST)
    ]
    table = pd.DataFrame(rows).astype({"workload": pd.CategoricalDtype(list(size))})
    assert headline_workload(table) == headline
