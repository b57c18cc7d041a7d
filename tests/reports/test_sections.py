"""What sections conclude from runs that differ from the example, whose whole text is tests/golden/report.md."""

import pandas as pd
import pytest

from zoomgrad.reports.charts.growth import growth
from zoomgrad.reports.charts.trade_off import front
from zoomgrad.reports.measured.headline import headline_workload, leader
from zoomgrad.reports.sections.certainty import cautions
from zoomgrad.reports.sections.compiling import exponent, points
from zoomgrad.reports.sections.ideas import gains
from zoomgrad.reports.story import story
from zoomgrad.reports.view import view
from zoomgrad.results.record import HostFacts

HOME = "cpython-3.13"


def told(example):
    return story(example.run, example.records)


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
            "tuple runs an epoch of mnist in ≈ 33.6 h, not measurably faster than baseline, with identical bits.",
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
    (ideas,) = (one for one in told(shaky).sections if one.name == "ideas")
    assert ideas.sheets[0].rows[0][2].mark == "unsure"
    assert "tuple" not in ideas.answer.split(" over ")[0]


# Compiling


PEAKS = ("peak_bytes", "peak_compiler_bytes")


def curve(seconds_of, sizes=(10**2, 10**4, 10**5, 10**6)):
    """The points of one engine that compiles larger and larger graphs, in `seconds_of(rows)`."""
    common = {"engine": "clang-O1", "interpreter": HOME, "status": "measured", **dict.fromkeys(PEAKS, 1)}
    rows = [{"workload": f"mlp-{n}x2x1", "tape_rows": n, "compile_seconds": seconds_of(n), **common} for n in sizes]
    return points(pd.DataFrame(rows).astype({"engine": "category"}))


def test_the_exponent_of_growth_and_its_chart():
    points_of_a_power = curve(lambda rows: 1e-6 * rows**0.8)
    assert exponent(points_of_a_power) == pytest.approx(0.8)
    assert growth("growth", "a title", points_of_a_power).svg.count("<circle") == 4
    assert exponent(curve(lambda rows: 1e-6 * rows**0.8, (10**2, 10**3, 10**4))) == pytest.approx(0.8)
    # A small graph's time is all constant. A fit that included it would give an exponent of 0.86.
    assert exponent(curve(lambda rows: max(1e-5 * rows, 0.01))) == pytest.approx(1.0)


# Certainty


@pytest.mark.parametrize(
    ("change", "facts", "caution"),
    [
        (lambda record: {"other_load": 1.5}, {}, "Other programs used 1.5 processors"),
        (lambda record: {"other_load": 1.5 * (record.cell.engine == "tuple")}, {}, ""),
        (lambda record: {}, {"blocks": 2}, "2 blocks is too few"),
        (lambda record: {}, {"machine": {"frequency governor": "powersave"}}, "powersave"),
        (lambda record: {}, {"hosts": {"host-0": HostFacts(identity="0", machine={})}}, "needs 3 hosts"),
        (lambda record: {"pace_seconds": (0.01 * (1 + record.block),) * 3}, {}, "took 3.0 times as long"),
        (lambda record: {"step_seconds": (1.0 + record.block * len(record.cell.engine),) * 3}, {}, "only to ±25 %"),
    ],
)
def test_a_caution_says_what_to_doubt(example, change, facts, caution):
    quiet = example.only(lambda cell: cell.interpreter == HOME and cell.workload == "mnist")
    changed = quiet.mapped(lambda record: record.model_copy(update=change(record)))
    run = quiet.run.model_copy(update={"machine": {}, **facts})
    found = "".join(cautions(view(run, changed.records)))
    assert caution in found if caution else found == ""
    assert cautions(view(run, ())) == []
