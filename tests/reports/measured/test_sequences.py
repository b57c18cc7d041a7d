"""Sequences within processes: losses against seconds, and values in the order in which they were taken."""

import math

import pytest

from reports.charts import charts
from reports.charts.drawing.svg import drawing
from reports.measured.sequences import POINTS_A_MEAN, first_to_halve, losses, settling, values
from reports.measured.table import cells, each
from results.record import LossPoint

STEPS = 400


def falling(steps, start=4.0, every=1):
    """Return losses that halve every hundred steps, with one point per `every` steps."""
    return tuple(LossPoint(step=step, loss=start * 0.5 ** (step / 100)) for step in range(0, steps, every))


def trained(example, steps=STEPS, every=1, **fields):
    """Return the run with complete loss curves. fields: changes to its measured records."""
    return example.mapped(
        lambda record: (
            record.model_copy(update={"losses": falling(steps, every=every), **fields})
            if record.status == "measured"
            else record
        )
    )


def changed(example, engine, **fields):
    return example.mapped(
        lambda record: (
            record.model_copy(update=fields) if record.cell.engine == engine and record.status == "measured" else record
        )
    )


def mnist(example):
    table = cells(example.run, example.records)
    return table[table["workload"] == "mnist"]


def curves(example):
    return losses(mnist(example), example.records)


def runs(example):
    return values(mnist(example), example.records)


def of(found, engine, interpreter="cpython-3.13"):
    return found[(found["engine"] == engine) & (found["interpreter"] == interpreter)]


def drawn(name, found):
    return drawing(name, charts()[name], found)


def jit(example):
    """Return the run with a working PyPy, and warm-up values: four on PyPy and one on CPython."""

    def change(record):
        if record.cell.interpreter != "pypy-3.9":
            warm = record.step_seconds[:1]
            return record.model_copy(update={"warmup_step_seconds": warm}) if warm else record
        return example.measured(record.cell, record.block, warmup_step_seconds=(2.5, 1.5, 0.9, 0.6))

    return example.mapped(change)


def test_a_curve_starts_when_its_engine_has_compiled(example):
    found = curves(trained(example))
    first = of(found, "clang-O1").iloc[0]
    assert first["seconds"] > 16.3  # 1.1 s to trace and 15.2 s to compile
    assert first["seconds"] == pytest.approx(16.3 + (first["step"] + 1) * 1.6e-4 * 1.02, rel=1e-3)
    assert of(found, "tuple").iloc[0]["seconds"] < 60


def test_each_mark_is_the_mean_of_enough_losses(example):
    found = of(curves(trained(example)), "tuple")
    assert len(found) > 2
    assert (found["points"] >= POINTS_A_MEAN).all()
    assert found["points"].sum() == STEPS
    assert found["loss"].is_monotonic_decreasing


def test_a_short_curve_has_one_mark(example):
    found = of(curves(example), "tuple")
    assert list(found["points"]) == [2]
    assert found["loss"].iloc[0] == pytest.approx((2.31 + 0.412) / 2)


def test_identical_engines_share_losses_up_to_their_own_last_step(example):
    """A fast engine keeps every hundredth loss of many steps; a slow one has those it left out."""
    mixed = changed(trained(example, 4000, every=100), "tuple", losses=falling(200))
    mixed = changed(mixed, "local-grads", losses=falling(500, every=2))
    found = curves(mixed)
    assert of(found, "clang-O1")["points"].sum() == len({*range(0, 4000, 100), *range(200), *range(0, 500, 2)})
    assert of(found, "tuple")["points"].sum() == 200
    assert of(found, "rerolled-clang-fast")["points"].sum() == 40  # does not promise identical bits


def test_a_curve_uses_the_reference_or_the_fastest_interpreter(example):
    at_home = curves(trained(example))
    assert set(at_home["interpreter"]) == {"cpython-3.13"}
    away = curves(trained(example.only(lambda cell: cell.interpreter != "cpython-3.13")))
    assert set(away["interpreter"]) == {"cpython-3.11"}


def test_the_time_to_halve_the_loss_includes_compiling(example):
    found = curves(trained(example))
    first = first_to_halve(found)
    # A hundred steps take 4.1 µs each, after 0.21 s to compile; the steps of the next best take 40 s.
    assert first.engine == "rerolled-clang-fast"
    assert first.seconds == pytest.approx(0.21, abs=0.01)
    assert first_to_halve(found[found["step"] < 100]) is None
    assert first_to_halve(found.iloc[:0]) is None


def test_a_loss_chart_states_its_finding(example):
    title = drawn("loss_against_seconds", curves(trained(example))).title
    assert title.startswith("rerolled-clang-fast on cpython-3.13 is the first to halve the loss, 211 ms in")
    assert drawn("loss_against_seconds", curves(trained(example, 120))).title == (
        "No engine halved the loss while it was timed"
    )
    assert drawn("loss_against_seconds", curves(example)).title == "No training was long enough to see its loss fall"


def test_every_curve_is_labelled(example):
    svg = drawn("loss_against_seconds", curves(trained(example))).svg
    assert all(svg.count(f">{engine}<") == 1 for engine in example.run.engines)


def test_a_negative_loss_is_never_halved(example):
    below = trained(example).mapped(
        lambda record: record.model_copy(
            update={"losses": tuple(LossPoint(step=point.step, loss=-point.loss) for point in record.losses)}
        )
    )
    assert first_to_halve(curves(below)) is None
    assert "</svg>" in drawn("loss_against_seconds", curves(below)).svg


def test_infinities_of_both_signs_leave_a_gap(example):
    points = (*falling(200), LossPoint(step=200, loss=math.inf), LossPoint(step=201, loss=-math.inf))
    found = of(curves(changed(example, "baseline", losses=points)), "baseline")
    assert found["loss"].isna().sum() == 1


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_leaves_a_gap(example, loss):
    points = (*falling(200), LossPoint(step=200, loss=loss), *falling(STEPS)[201:])
    broken = changed(trained(example), "baseline", losses=points)
    found = of(curves(broken), "baseline")
    assert 0 < found["loss"].isna().sum() < len(found)
    assert "</svg>" in drawn("loss_against_seconds", curves(broken)).svg


def test_a_loss_that_was_never_finite_has_no_curve(example):
    lost = trained(example).mapped(lambda record: record.model_copy(update={"losses": ()}))
    assert curves(lost).empty
    found = curves(changed(example, "tuple", losses=(LossPoint(step=0, loss=math.nan),)))
    assert drawn("loss_against_seconds", found[found["engine"] == "tuple"]).title == "No loss was recorded"


def test_an_engine_with_an_unknown_compile_time_has_no_curve(example):
    loaded = changed(trained(example), "clang-O1", phases={}, tape_rows=9)
    assert of(curves(loaded), "clang-O1").empty


def test_a_sequence_is_relative_to_the_time_of_a_step(example):
    found = of(runs(jit(example)), "tuple")
    assert list(found["number"]) == [1, 2, 3, 4]
    assert list(found["warm_up"]) == [True, False, False, False]
    assert list(found["relative"]) == pytest.approx([1 / 1.01, 1 / 1.01, 1.0, 1.02 / 1.01])


def test_only_one_interpreter_without_a_jit_is_shown(example):
    assert set(runs(jit(example))["interpreter"]) == {"cpython-3.13", "pypy-3.9"}
    away = jit(example.only(lambda cell: cell.interpreter != "cpython-3.13"))
    assert set(runs(away)["interpreter"]) == {"cpython-3.11", "pypy-3.9"}


def test_processes_with_fewer_values_are_left_out(example):
    slow = jit(example).mapped(
        lambda record: (
            record.model_copy(update={"warmup_step_seconds": (), "step_seconds": record.step_seconds[:1]})
            if record.block == 2 and record.status == "measured"
            else record
        )
    )
    assert len(of(runs(slow), "tuple")) == 4
    single = slow.mapped(lambda record: record if record.block == 2 else None)
    assert runs(single).empty
    assert "No sequence of values was recorded." in drawn("warm_up", runs(single)).svg


def test_a_warm_up_chart_names_the_slowest_start(example):
    title = drawn("warm_up", runs(jit(example))).title
    # All engines have the same four warm-up values, so they are worst relative to the fastest engine.
    assert title.startswith("rerolled-clang-fast on pypy-3.9 starts slowest: its first value takes ")
    assert drawn("warm_up", runs(example)).title == (
        "No cell starts slowly: values are 0.990× to 1.01× the cell's time of a step"
    )


def test_warm_up_is_marked_and_steady_cells_have_no_label(example):
    svg = drawn("warm_up", runs(jit(example))).svg
    assert ">warm-up<" in svg
    assert ">tuple<" in svg
    steady = drawn("warm_up", runs(example)).svg
    assert ">warm-up<" not in steady
    assert ">tuple<" not in steady


@pytest.mark.parametrize(("name", "subject"), [("loss_against_seconds", losses), ("warm_up", values)])
@pytest.mark.parametrize("state", ["nothing measured", "one cell", "xor", "all failed"])
def test_a_chart_draws_any_data(example, name, subject, state):
    def failed(record):
        return example.stopped(record.cell, record.block, "failed", "broken")

    states = {
        "nothing measured": example.interrupted(0),
        "one cell": example.only(lambda cell: cell == example.run.cells[1]),
        "xor": example,
        "all failed": example.mapped(failed),
    }
    table = cells(states[state].run, states[state].records)
    found = subject(table[table["workload"] == ("xor" if state == "xor" else "mnist")], states[state].records)
    assert found.empty == (state in ("nothing measured", "all failed"))
    assert "</svg>" in drawn(name, found).svg


@pytest.mark.parametrize("name", ["loss_against_seconds", "warm_up"])
def test_a_chart_is_byte_identical_each_time(example, name):
    found = {"loss_against_seconds": curves, "warm_up": runs}[name](jit(trained(example)))
    assert drawn(name, found).svg == drawn(name, found).svg


def test_a_table_without_rows_has_no_curves(example):
    table = cells(example.run.model_copy(update={"cells": ()}), [])
    assert losses(table, example.records).empty
    assert values(table, example.records).empty


def long(example, warm=(2.5, 1.5, 1.2), **of_engines):
    """Return the run with a working PyPy. of_engines: factors for a process's values, else `warm` and twelve 1s."""

    def change(record):
        if record.cell.interpreter != "pypy-3.9":
            return record
        made = example.measured(record.cell, record.block)
        seconds = made.step_seconds[0]
        factors = of_engines.get(record.cell.engine.replace("-", "_"), (*warm, *(1.0,) * 12))
        values = tuple(seconds * factor for factor in factors)
        return made.model_copy(update={"warmup_step_seconds": values[:-5], "step_seconds": values[-5:]})

    return example.mapped(change)


def test_a_cell_is_steady_once_all_its_processes_are(example):
    found = of(runs(long(example)), "tuple", "pypy-3.9")
    assert set(found["steady"]) == {"warm-up"}
    assert set(found["steady_from"]) == {4.0}

    def later(record):
        if record.block != 1 or not record.warmup_step_seconds:
            return record
        start = record.warmup_step_seconds
        return record.model_copy(update={"warmup_step_seconds": (*(2 * start[-1] for _ in start[:6]), *start[6:])})

    assert set(of(runs(long(example).mapped(later)), "tuple", "pypy-3.9")["steady_from"]) == {7.0}


def test_few_values_show_no_steady_state(example):
    found = runs(jit(example))
    assert set(found["steady"]) == {"too short"}
    assert found["steady_from"].isna().all()
    assert settling(found) == "10 cells with fewer than 12 values: too short to tell."
    assert ">steady from here<" not in drawn("warm_up", found).svg


def test_a_cell_that_never_settles_is_named(example):
    falling = tuple(4 * 0.9**index for index in range(40))
    found = runs(long(example, local_grads=falling, clang_O1=(1.0, 1.5) * 10))
    assert settling(found) == (
        "Of 5 cells with 12 values or more, 3 settled. Not steady in every process: "
        "local-grads on pypy-3.9 (no steady state), clang-O1 on pypy-3.9 (cyclic). "
        "5 cells with fewer than 12 values: too short to tell."
    )
    chart = drawn("warm_up", found)
    assert chart.caption.endswith(settling(found))
    assert ">steady from here<" in chart.svg


def test_a_cell_that_mostly_never_settles_has_a_sequence_but_no_time(example):
    restless = long(example, local_grads=tuple(4 * 0.9**index for index in range(40)))
    table = cells(restless.run, restless.records)
    (row,) = each(table[(table["engine"] == "local-grads") & (table["interpreter"] == "pypy-3.9")][:1])
    assert row.status == "unsteady"
    assert math.isnan(row.step_seconds)
    assert "never settled" in row.reason
    assert not of(runs(restless), "local-grads", "pypy-3.9").empty


def test_without_measurements_nothing_is_said_about_settling(example):
    assert settling(runs(example.interrupted(0))) == ""
