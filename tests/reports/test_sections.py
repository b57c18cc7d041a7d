"""What sections conclude from runs that differ from the example, whose whole text is tests/golden/report.md."""

import pandas as pd
import pytest

from zoomgrad.reports.charts.growth import growth
from zoomgrad.reports.charts.trade_off import front
from zoomgrad.reports.measured.headline import headline_workload, leader
from zoomgrad.reports.measured.table import cells
from zoomgrad.reports.sections.certainty import cautions
from zoomgrad.reports.sections.compiling import exponent, points
from zoomgrad.reports.sections.ideas import gains
from zoomgrad.reports.sections.peers import peers
from zoomgrad.reports.story import story
from zoomgrad.reports.view import view
from zoomgrad.results.record import Cell, EngineFacts, PassedOver, Voucher, Vouching, WorkloadFacts

HOME = "cpython-3.13"


def told(example, **facts):
    """The story of a run, whose facts may be changed."""
    return story(example.run.model_copy(update=facts), example.records)


def section(example, name, **facts):
    return next((one for one in told(example, **facts).sections if one.name == name), None)


def texts(sheet):
    return [tuple(figure.text for figure in row) for row in sheet.rows]


# The first screen


@pytest.mark.parametrize(
    ("change", "title"),
    [
        (
            lambda example: example.only(lambda cell: cell.engine == "baseline"),
            "No engine with identical bits was measured.",
        ),
        (
            lambda example: slower(example.only(lambda cell: cell.engine in ("baseline", "tuple"))),
            "An epoch of mnist in ≈ 33.6 h, not measurably faster than baseline, with identical bits.",
        ),
    ],
)
def test_the_headline_says_only_what_was_measured(example, change, title):
    assert told(change(example)).title == title


def slower(example):
    """Return the run in which `tuple` takes longer, and varies much."""

    def change(record):
        seconds = (1.0 + record.block, 1.015 + record.block, 1.03 + record.block)
        return record.model_copy(update={"step_seconds": seconds}) if record.cell.engine == "tuple" else record

    return example.mapped(lambda record: change(record) if record.status == "measured" else record)


def test_a_row_keeps_all_its_values_in_order(example):
    """Nine timed values in three processes; the third process is the slowest."""
    values = told(example).panels[0].lines[1].values
    assert values.text == "3 processes, 160 µs to 166 µs a step"
    places = [float(part.split("h")[0].split()[1]) for part in values.timed.split("M")[1:]]
    assert len(places) == 9
    assert places[0] == max(places)
    assert places[-1] == min(places)
    assert values.warm_up == ""


def row(engine, step, promise="identical bits", peer="", workload="xor"):
    figures = {"step_seconds": step, "epoch_seconds": 4 * step, "compile_seconds": 0.5, "speedup": 1 / step}
    facts = {"workload": workload, "interpreter": HOME, "peer": peer, "twin": "", "on_reference": True}
    return {"engine": engine, "status": "measured", "promise": promise, **facts, **figures}


OUTSIDERS = {
    "handwritten-sparse": {},
    "jax": {"peer": "engines/peers/models/with_jax.py", "promise": "within 1e-09"},
    "rerolled-gcc+threads=4": {},
    "rerolled-clang-fast": {"promise": "within 1e-06"},
}


@pytest.mark.parametrize("name", OUTSIDERS)
def test_only_an_untouched_graph_with_identical_bits_on_one_thread_leads(name):
    rows = [row("baseline", 1.0, "within 1e-09"), row("tcc", 0.1), row(name, 0.001, **OUTSIDERS[name])]
    assert leader(pd.DataFrame(rows)).engine == "tcc"


@pytest.mark.parametrize(
    ("workloads", "headline"),
    [
        (["xor", "digits", "mnist-b1000", "mnist"], "mnist"),
        (["xor", "mnist-b1000"], "mnist-b1000"),
        (["xor", "digits"], "digits"),
    ],
)
def test_the_headline_workload_is_mnist_else_the_longest_epoch(workloads, headline):
    seconds = {"xor": 0.001, "digits": 10.0, "mnist": 5.0, "mnist-b1000": 1.0}
    rows = [row(engine, seconds[name], workload=name) for name in workloads for engine in ("tcc", "gcc-O1")]
    table = pd.DataFrame(rows).astype({"workload": pd.CategoricalDtype(list(seconds))})
    assert headline_workload(table) == headline


def test_the_front_holds_the_engines_that_no_other_beats():
    race = {"none": (0.0, 100.0), "slower": (0.0, 120.0), "tcc": (1.0, 5.0), "late": (2.0, 5.0), "clang": (30.0, 1.0)}
    rows = pd.DataFrame(
        [(name, *seconds) for name, seconds in race.items()], columns=["engine", "compile_seconds", "epoch_seconds"]
    )
    for some in (rows, rows.iloc[::-1]):
        assert list(front(some)["engine"]) == ["none", "tcc", "clang"]


# Epochs, ideas, interpreters


def test_a_gain_within_the_noise_is_grey(example):
    shaky = slower(example)
    (gain, *_) = gains(view(shaky.run, shaky.records))
    assert not gain.is_sure
    assert section(shaky, "ideas").sheets[0].rows[0][2].mark == "unsure"
    assert "tuple" not in section(shaky, "ideas").answer.split(" over ")[0]


# Compiling


def grown(example, seconds, sizes=(10**2, 10**4, 10**5, 10**6)):
    """Return the table of one engine on mlp workloads, with compile times `seconds(rows)`."""
    names = {f"mlp-{index + 1}x2x1": rows for index, rows in enumerate(sizes)}
    plan = tuple(Cell(engine="clang-O1", interpreter=HOME, workload=name) for name in names)
    facts = WorkloadFacts(description="synthetic", steps_per_epoch=1_000, samples_per_step=1, batch=1)
    run = example.run.model_copy(update={"cells": plan, "workloads": dict.fromkeys(names, facts)})
    mnist = Cell(engine="clang-O1", interpreter=HOME, workload="mnist")
    made = (
        example.measured(mnist, 0, phases={"compile": seconds(rows)}, tape_rows=rows).model_copy(update={"cell": cell})
        for cell, rows in zip(plan, names.values(), strict=True)
    )
    return cells(run, list(made))


def test_the_exponent_of_growth_and_its_chart(example):
    curve = points(grown(example, lambda rows: 1e-6 * rows**0.8))
    assert exponent(curve) == pytest.approx(0.8)
    assert growth("growth", "a title", curve).svg.count("<circle") == 4
    # A small graph's time is all constant. A fit that included it would give an exponent of 0.86.
    assert exponent(points(grown(example, lambda rows: max(1e-5 * rows, 0.01)))) == pytest.approx(1.0)


# Peers


def test_a_peer_is_compared_with_the_fastest_strict_engine(example):
    facts = EngineFacts(idea="JAX", strict=False, error_bound=1e-9, peer="engines/peers/models/with_jax.py")
    fast = [cell for cell in example.run.cells if cell.engine == "rerolled-clang-fast"]
    plan = [cell.model_copy(update={"engine": "jax"}) for cell in fast]
    run = example.run.model_copy(
        update={"cells": (*example.run.cells, *plan), "engines": {**example.run.engines, "jax": facts}}
    )
    copies = [
        record.model_copy(update={"cell": record.cell.model_copy(update={"engine": "jax"})})
        for record in example.records
        if record.cell.engine == "rerolled-clang-fast" and record.status == "measured"
    ]
    found = peers(view(run, [*example.records, *copies]))
    assert found.answer == "On mnist, over clang-O1: jax 0.0256×, jax 0.0320× as long"
    assert texts(found.sheets[0])[0][:5] == ("mnist", "jax", "4.18 µs", "clang-O1", "0.0256×")
    assert section(example, "peers") is None


# Certainty


def loaded(example, *loads):
    """Return the run with other processes' load set to `loads` in turn, one per record."""
    pairs = zip(example.records, loads * len(example.records), strict=False)
    return type(example)(example.run, tuple(one.model_copy(update={"other_load": load}) for one, load in pairs))


@pytest.fixture
def quiet(example):
    return example.only(lambda cell: cell.interpreter == HOME and cell.workload == "mnist")


def doubts(example, **facts):
    return cautions(view(example.run.model_copy(update={"machine": {}, **facts}), example.records))


@pytest.mark.parametrize(
    ("loads", "facts", "caution"),
    [
        ((1.5,), {}, "Other programs used 1.5 processors"),
        ((1.5, 0.0, 0.0, 0.0, 0.0, 0.0), {}, ""),
        ((0.0,), {"blocks": 2}, "2 blocks is too few"),
        ((0.0,), {"machine": {"frequency governor": "powersave"}}, "powersave"),
    ],
)
def test_a_caution_names_the_load_the_blocks_or_the_governor(quiet, loads, facts, caution):
    found = doubts(loaded(quiet, *loads), **facts)
    assert (len(found) == 1 and caution in found[0]) if caution else found == []


def test_cautions_on_a_machine_of_varying_speed_and_on_wide_intervals(quiet):
    def paced(record, slow):
        paces = tuple(0.01 * (1 + record.block * slow) for _ in record.step_seconds)
        return record.model_copy(update={"pace_seconds": paces})

    def shaken(record):
        factor = 1.0 if record.cell.engine == "baseline" else 1.0 + record.block
        return record.model_copy(update={"step_seconds": tuple(factor * seconds for seconds in record.step_seconds)})

    (varying, *_) = doubts(quiet.mapped(lambda record: paced(record, 1)))
    assert "took 3.0 times as long" in varying
    assert doubts(quiet.mapped(lambda record: paced(record, 0))) == []
    assert any("known only to ±25 % or worse" in one for one in doubts(quiet.mapped(shaken)))
    assert doubts(quiet.interrupted(0), machine={"frequency governor": "powersave"}) == []


def test_certainty_names_intervals_cautions_and_who_vouches(quiet):
    def voucher(engine):
        return Voucher(cell=Cell(engine=engine, interpreter=HOME, workload="xor"), steps=8, worker_seconds=2.0)

    passed = (PassedOver(engine="clang-O0", status="skipped", reason="there is no clang on PATH"),)
    vouching = Vouching(workload="xor", vouchers=tuple(map(voucher, ("tuple", "tcc", "gcc-O0"))), passed_over=passed)
    noisy = loaded(quiet, 1.5)
    told = story(noisy.run, noisy.records, None, [vouching])
    (certainty,) = (one for one in told.sections if one.name == "certainty")
    assert certainty.answer.startswith("3 processes a cell; half of the speedups are known within")
    assert certainty.answer.endswith("; 1 caution")
    assert certainty.notes[0].startswith("Other programs used")
    assert (
        "xor: tuple vouches for tcc and gcc-O0, and these for all others. clang-O0 was passed over: there is no clang "
        "on PATH." in certainty.notes
    )
