"""Matrices that are copied with their lanes side by side: when, how often, and what then reads the copy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.engines.compiled.compiling import tape_of
from tests.engines.graphs import Graph, classifier
from tests.engines.rerolled.rolling import form, share_all_weights, step_of
from zoomgrad.engines.rerolled.rearrange import in_rounds, together, transposed


def runs_of(rows, layers):
    """Gradients of several layers over the same 4 weights of 4 units each, for some rows of one graph."""

    def build(Value, leaves):
        weights, x = leaves[:16], [leaves[at : at + 4] for at in range(16, 16 + 4 * rows, 4)]
        for _ in range(layers):
            x = [[sum(w * v for w, v in zip(weights[at : at + 4], row)).relu() for at in range(0, 16, 4)] for row in x]
        return [sum(sum(row) for row in x)]

    graph = Graph("layers", tuple(0.1 + at % 7 / 13 for at in range(16 + 4 * rows)), build)
    tape = tape_of(graph, ["parameter"] * 16 + ["input"] * 4 * rows, [0])
    step = step_of(tape, replace(form(width=4), rearrangements=("in place", "transposed", "in rounds")))
    lines = [f"{run}: {step.line(run)}" for run in step.routines["gradients"]]
    return [line for line in lines if "sum" in line or "transposed:" in line]


def test_eight_sums_of_a_lane_are_worth_a_copy():
    assert runs_of(7, 2) == ["loop 7: for i<7 j<4: g[32 + 4*i + j] = sum(t<4: p[3 + 4*j - t] * g[67 + 4*i - t])"]
    assert runs_of(8, 2) == [
        "loop 7 transposed: for i<4 j<4: transposed[8*i + j] = p[3 - i + 4*j]",
        "loop 7: for i<8 j<4: g[32 + 4*i + j] = sum(t<4: transposed[j + 8*t] * g[67 + 4*i - t])",
    ]


def test_loops_share_a_copy():
    assert runs_of(4, 3) == [
        "loop 9 transposed: for i<4 j<4: transposed[8*i + j] = p[3 - i + 4*j]",
        "loop 9: for i<4 j<4: g[48 + 4*i + j] = sum(t<4: transposed[j + 8*t] * g[67 + 4*i - t])",
        "loop 11: for i<4 j<4: g[16 + 4*i + j] = sum(t<4: transposed[j + 8*t] * g[35 + 4*i - t])",
    ]


def test_a_series_reads_the_copy(monkeypatch):
    monkeypatch.setattr(in_rounds, "MANY", 1)
    *_, series = runs_of(4, 8)
    assert "rounds" in series
    assert "transposed[l + 8*t]" in series


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_share_no_copy(threads, monkeypatch):
    share_all_weights(monkeypatch)
    monkeypatch.setattr(together, "LEAST_WORK", 0)
    monkeypatch.setattr(transposed, "MANY", 1)
    graph, kinds = classifier(3, 8, 8)
    step = step_of(tape_of(graph, kinds, [0, 1, 2]), replace(form(4, width=4), threads=threads))
    assert step.is_divided == (threads > 1)
    assert any(run.transposes for runs in step.routines.values() for run in runs) == (threads == 1)
