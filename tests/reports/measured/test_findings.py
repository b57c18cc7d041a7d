"""Findings say "the fastest" only of what is apart from everything else."""

import math

import pandas as pd
import pytest

from reports.measured.findings import findings

FEW = (math.nan, math.nan)


def row(engine, step, bounds, speedup, around, promise="identical bits"):
    return {
        "engine": engine,
        "interpreter": "cpython-3.13",
        "workload": "xor",
        "peer": "",
        "status": "measured",
        "bits": "identical",
        "on_reference": True,
        "promise": promise,
        "step_seconds": step,
        "step_seconds_low": bounds[0],
        "step_seconds_high": bounds[1],
        "speedup": speedup,
        "speedup_low": around[0],
        "speedup_high": around[1],
    }


BASE = row("baseline", 1.0, (0.9, 1.1), 1.0, (1.0, 1.0), "within 1e-09")
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


def test_the_fastest_cell_is_named_only_if_it_is_apart():
    other = {**BEST, "interpreter": "pypy-3.9", "on_reference": False, "engine": "bytecode"}
    apart = {**other, "step_seconds": 0.01, "step_seconds_low": 0.009, "step_seconds_high": 0.011}
    assert "The fastest cell is bytecode on pypy-3.9: 10.0 ms a step." in said(BEST, apart)
    near = {**other, "step_seconds": 0.099}
    assert (
        "The least time was measured in bytecode on pypy-3.9: 99.0 ms a step; tcc on cpython-3.13 may be as fast."
    ) in said(BEST, near)
    few = {**apart, "step_seconds_low": math.nan, "step_seconds_high": math.nan}
    assert "The least time was measured in bytecode" in said(BEST, few)
    assert "tcc on cpython-3.13 may be as fast." in said(few, {**BEST, "step_seconds_low": math.nan})


def test_a_strict_winner_is_compared_with_strict_engines():
    loose = row("fast", 0.01, (0.009, 0.011), 100.0, (90.0, 110.0), "within 1e-06")
    text = said(BEST, loose, row("gcc-O1", 0.1, (0.09, 0.11), 9.9, (9.0, 11.0)))
    assert "Of the engines that do, tcc is 10 times as fast" in text
    assert "gcc-O1 may be as fast." in text
    assert "fast is 100 times as fast as baseline on cpython-3.13 (95 % interval 90.0× to 110×)." in text
