"""Engines beside the engine that they change by a suffix, and their exclusion from what can win."""

import pytest

from zoomgrad.reports.measured.findings import findings
from zoomgrad.reports.measured.table import cells, contenders, without_choices
from zoomgrad.reports.pages import markdown
from zoomgrad.reports.sections.compiling.variants import variants
from zoomgrad.reports.view import view
from zoomgrad.results.record import Cell, EngineFacts

GCC = ("-O1", "-march=native", "-I/somewhere")


def with_variants(example, **seconds):
    """Return the example with `rerolled-gcc` and engines of that name with these suffixes, on mnist."""
    home = Cell(engine="clang-O1", interpreter="cpython-3.13", workload="mnist")
    twin = home.model_copy(update={"engine": "rerolled-gcc"})
    plan = [home, twin, *(home.model_copy(update={"engine": f"rerolled-gcc-{suffix}"}) for suffix in seconds)]
    facts = {"rerolled-gcc": EngineFacts(idea="loops", builds_on="clang-O1", strict=True)}
    facts |= {cell.engine: EngineFacts(idea="changed", builds_on="rerolled-gcc", strict=True) for cell in plan[2:]}
    flags = {"O3": ("-O3", "-march=native", "-I/elsewhere"), "generic": ("-O1",)}
    times = {"rerolled-gcc": 4e-6, **{f"rerolled-gcc-{suffix}": each for suffix, each in seconds.items()}}
    records = [example.measured(home, block) for block in range(3)]
    for cell in plan[1:]:
        for block in range(3):
            made = example.measured(home, block, phases={"compile": 0.3}, vector_doubles=8, compiler="gcc 12")
            suffix = cell.engine.removeprefix("rerolled-gcc-")
            record = {"cell": cell, "compiler_flags": flags.get(suffix, GCC)}
            record["step_seconds"] = tuple(times[cell.engine] * (1 + 0.01 * block + 0.001 * n) for n in range(3))
            records.append(made.model_copy(update=record))
    run = example.run.model_copy(
        update={"cells": tuple(plan), "engines": {**example.run.engines, **facts}, "blocks": 3}
    )
    return type(example)(run, tuple(records))


def lines(section):
    return [[figure.text for figure in row] for sheet in section.sheets for row in sheet.rows]


def test_a_line_compares_an_engine_with_the_one_that_it_changes(example):
    pair = with_variants(example, O3=2e-6, generic=8e-6, v2=4e-6)
    section = variants(view(pair.run, pair.records))
    assert [sheet.title for sheet in section.sheets] == ["mnist"]
    faster, slower, narrow = lines(section)
    assert faster[:3] == ["rerolled-gcc-O3", "identical", "-O3 instead of -O1"]
    assert slower[:3] == ["rerolled-gcc-generic", "identical", "without -march=native"]
    assert narrow[2:] == ["–", "8", "–", "300 ms", "300 ms", "4.04 µs", "1.00×"]
    assert [line[-1] for line in (faster, slower)] == ["2.00×", "0.500×"]
    assert len(section.sheets[0].headings) == len(faster)


def test_an_engine_whose_twin_was_not_measured_has_no_line(example):
    pair = with_variants(example, O3=2e-6)
    alone = pair.only(lambda cell: cell.engine != "rerolled-gcc")
    assert variants(view(alone.run, alone.records)) is None
    assert variants(view(example.run, example.records)) is None, "`rerolled-clang-fast` is listed without its twin"
    assert "One choice changed" in markdown.render(pair.run, pair.records)


@pytest.mark.parametrize("suffix", ["O3", "generic", "O2-generic", "threads4"])
def test_an_engine_with_one_choice_changed_cannot_win(example, suffix):
    pair = with_variants(example, **{suffix: 1e-6})
    table = cells(pair.run, pair.records)
    assert f"rerolled-gcc-{suffix}" not in set(contenders(table)["engine"])
    assert set(without_choices(table)["engine"]) == {"clang-O1", "rerolled-gcc"}
    other = with_variants(example, sparse=1e-6)
    assert "rerolled-gcc-sparse" in set(contenders(cells(other.run, other.records))["engine"])


def test_an_engine_whose_twin_has_no_result_there_is_one_of_the_ladder(example):
    """Its twin was planned, or was measured on another workload or interpreter."""
    pair = with_variants(example, O3=2e-6)
    alone = type(example)(pair.run, tuple(each for each in pair.records if each.cell.engine != "rerolled-gcc"))
    table = cells(alone.run, alone.records)
    assert "rerolled-gcc" in set(table["engine"])
    for rows in (table, table[table["status"] == "measured"]):
        assert "rerolled-gcc-O3" in set(contenders(rows)["engine"])
    assert "rerolled-gcc-O3" in set(view(alone.run, alone.records).ladder["engine"])
    for key, other in (("workload", "digits"), ("interpreter", "pypy-3.11")):
        table = cells(pair.run, pair.records).astype({key: object})
        assert "rerolled-gcc-O3" not in set(without_choices(table)["engine"])
        table.loc[table["engine"] == "rerolled-gcc", key] = other
        assert "rerolled-gcc-O3" in set(without_choices(table)["engine"])


def test_one_thread_is_not_several(example):
    """The fastest row that promises the reference's bits and can't win is named only if it uses threads."""
    pair = with_variants(example, O3=1e-6, threads2=2e-6)
    text = " ".join(findings(cells(pair.run, pair.records), "mnist"))
    assert "rerolled-gcc-threads2 (on several threads)" in text
    assert "rerolled-gcc-O3" not in text
