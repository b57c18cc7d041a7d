"""Several runs side by side: runs of one machine are checked for agreement, and only speedups are compared."""

import re

import pandas as pd
import pytest
from typer.testing import CliRunner

from harness.cli import command_line
from reports.build import build, tell, write
from reports.charts import charts
from reports.charts.drawing.svg import drawing
from reports.measured.races import machines, names, race, same_run
from reports.pages import html, markdown
from reports.sections.across import across, apart
from reports.story import story
from reports.view import view
from results.store import Store
from tests.reports.another import SLOW_MACHINE, another, stored
from tests.reports.browser import framed, in_browser
from tests.reports.test_html import ANSWER, PROBE, visible

CELL = ("mnist", "tuple", "cpython-3.13")


def side_by_side(first, *others):
    return across(view(first.run, first.records), [race(one.run, one.records) for one in others])


def rows_of(*examples):
    """Return `(workload, engine, interpreter)` -> heading -> text."""
    return {
        (sheet.title, row[0].text, row[1].text): dict(
            zip(sheet.headings, [(one.text, one.below) for one in row], strict=True)
        )
        for sheet in side_by_side(*examples).section.sheets[1:]
        for row in sheet.rows
    }


def story_of(first, *others):
    return story(first.run, first.records, None, None, [(one.run, one.records) for one in others])


@pytest.fixture
def small(example):
    """A run whose report is quick to make."""
    return example.only(lambda cell: cell.engine in ("baseline", "tuple") and cell.interpreter == "cpython-3.13")


def test_each_run_has_a_column_of_its_own_speedups(example):
    one, other = another(example, 1), another(example, 2, tuple=0.5)
    row = rows_of(one, other)[CELL]
    assert row[one.run.id][0] == "1.27×"
    assert row[other.run.id][0] == "2.55×"
    assert row["largest / smallest"][0] == "2.00×"
    assert row["on one machine"] == ("differ", "")


NONE = (float("nan"), float("nan"))


@pytest.mark.parametrize(
    ("bounds", "different"),
    [
        ([(1.0, 1.2), (1.1, 1.3), (1.15, 1.4)], []),
        ([(1.0, 1.2), (1.1, 1.3), (1.25, 1.4)], ["machine 1"]),
        ([(1.0, 1.2), NONE], []),
        ([NONE, (3.0, 4.0), (1.0, 1.2)], ["machine 1"]),
    ],
)
def test_runs_of_one_machine_agree_if_their_intervals_overlap(bounds, different):
    rows = pd.DataFrame(bounds, columns=["speedup_low", "speedup_high"]).assign(machine="machine 1")
    assert apart(rows) == different


def test_the_lead_begins_with_how_many_speedups_agree(example):
    one, other = another(example, 1), another(example, 2, tuple=0.5)
    assert side_by_side(one, other).section.lead.startswith("Runs of one machine agree on 10 of 13 speedups. ")


def test_seconds_of_another_machine_do_not_matter(example):
    """Everything takes ten times as long on the other machine, but every speedup is the same."""
    rows = rows_of(another(example, 1), another(example, 2, SLOW_MACHINE, seconds=10.0))
    assert {row["largest / smallest"][0] for row in rows.values()} == {"1.00×"}


def test_runs_of_two_machines_are_never_said_to_disagree(example):
    row = rows_of(another(example, 1), another(example, 2, SLOW_MACHINE, tuple=0.5))[CELL]
    assert row["on one machine"][0] == "–"


def test_a_disagreement_names_its_machine_among_several(example):
    there = [another(example, day, SLOW_MACHINE, tuple=day) for day in (2, 3)]
    assert rows_of(another(example, 1), *there)[CELL]["on one machine"] == ("differ", "machine 2")


def test_a_cell_that_failed_in_one_run_is_shown(example):
    one, other = another(example, 1), another(example, 2)
    failed = next(record.cell for record in other.records if record.cell.key == "tuple/cpython-3.13/mnist")
    other = other.with_records(failed, *(other.stopped(failed, block, "failed", "why not") for block in range(3)))
    row = rows_of(one, other, another(example, 3))[CELL]
    assert row[other.run.id] == ("failed", "")
    assert row[one.run.id][0] == row["2025-11-24T104500"][0] == "1.27×"


def test_cells_in_one_run_only_are_counted(example):
    few = another(example, 2).only(lambda cell: cell.engine in ("baseline", "tuple"))
    mnist = side_by_side(another(example, 1), few).section.sheets[1]
    assert {row[0].text for row in mnist.rows} == {"tuple"}
    assert mnist.notes == ("5 more cells in one run only.",)


def test_a_run_without_baseline_is_named(example):
    bare = another(example, 3).only(lambda cell: cell.engine != "baseline")
    section = side_by_side(another(example, 1), another(example, 2), bare).section
    assert section.sheets[0].notes[0].startswith(f"{bare.run.id} has no speedup. A speedup needs baseline")
    assert bare.run.id not in section.sheets[1].headings


@pytest.mark.parametrize(
    "others",
    [
        lambda example: [],
        lambda example: [example.only(lambda cell: cell.engine == "baseline")],
        lambda example: [example.interrupted(0)],
    ],
)
def test_runs_without_common_cells_have_no_section(example, others):
    assert side_by_side(example, *others(example)) is None


def test_a_run_is_recognised_in_another_folder(example):
    assert same_run(example.run, example.run.model_copy(update={"commit": "x"}))
    assert not same_run(example.run, example.run.model_copy(update={"seed": 2}))


def test_runs_that_began_in_the_same_second_have_different_names(example):
    twin = example.run.model_copy(update={"seed": 2})
    assert names([example.run, twin]) == [example.run.id, f"{example.run.id} (2)"]


def test_processor_cores_and_system_identify_a_machine(example):
    first, again, other = (another(example, 1).run, another(example, 2).run, another(example, 3, SLOW_MACHINE).run)
    busy = again.model_copy(update={"machine": {**again.machine, "load at start": "9, 9, 9"}})
    silent = first.model_copy(update={"machine": {}})
    assert machines([first, other, busy]) == ["machine 1", "machine 2", "machine 1"]
    assert machines([silent, silent]) == ["machine 1", "machine 2"]


def test_the_chart_shows_a_workload_that_another_run_also_has(example):
    runs = another(example, 1), another(example, 2).only(lambda cell: cell.workload == "xor")
    rows = side_by_side(*runs).rows
    assert set(rows["workload"]) == {"xor"}
    assert set(rows[rows["run"] == runs[0].run.id]["relative"]) == {1.0}


def test_the_chart_states_the_difference_and_is_byte_identical_each_time(example):
    rows = side_by_side(another(example, 1), another(example, 2, SLOW_MACHINE, local_grads=0.25)).rows
    first, second = (drawing("across", charts()["across"], rows) for _ in range(2))
    assert first.title == "Speedups on mnist on cpython-3.13 differ by up to 4.0 times between runs (local-grads)"
    assert first.svg == second.svg
    assert ">2025-11-23T104500, machine 2<" in first.svg


def test_the_section_is_in_the_report_of_the_first_run(small, tmp_path):
    first, second = (Store.create(another(small, day).run, under=tmp_path) for day in (1, 2))
    for store in (first, second):
        for record in small.records:
            store.write(record)
    page = write(first, tell(first, others=[second]))
    assert page == first.folder / "report.html"
    assert '<h2 id="across-runs">Across 2 runs</h2>' in page.read_text(encoding="utf-8")
    assert "Across 2 runs: mnist" in (first.folder / "report.md").read_text(encoding="utf-8")
    assert (first.folder / "charts" / "across.svg").is_file()
    assert 'id="across' not in build(second).read_text(encoding="utf-8")


def test_hostile_names_and_facts_are_escaped(example, small):
    nasty = another(small, 2, {**SLOW_MACHINE, "processor": example.nasty})
    story_ = story_of(another(small, 1), nasty)
    page = html.page(story_, html.drawings(story_))
    assert example.nasty in visible(page)
    assert page.count("<script") == 1
    assert "<script" not in markdown.page(story_)


@in_browser
def test_a_browser_shows_runs_side_by_side(small, tmp_path):
    story_ = story_of(*(another(small, day, machine) for day, machine in ((1, SLOW_MACHINE), (2, {}), (3, {}))))
    page = html.page(story_, html.drawings(story_))
    page = re.sub(r"<meta http-equiv[^>]*>", lambda _: PROBE, page, count=1).replace("</body>", f"{ANSWER}</body>")
    answer = framed(page, tmp_path, 390)
    assert answer["problems"] == []
    assert all(answer["charts"])
    assert answer["page"] <= 390


# The command


@pytest.fixture
def report(monkeypatch):
    """`report(*arguments)` runs the command in a wide terminal and returns its result."""
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: CliRunner().invoke(command_line, ["report", *map(str, arguments)])


def test_several_runs_make_the_first_ones_report(small, tmp_path, report):
    folders = [stored(another(small, day, machine), tmp_path) for day, machine in ((1, SLOW_MACHINE), (2, {}))]
    result = report(*folders)
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1].endswith(f"{folders[0].name}/report.html")
    assert "Across 2 runs" in (folders[0] / "report.html").read_text(encoding="utf-8")
    assert not (folders[1] / "report.html").exists()


@pytest.mark.parametrize("before", [[], ["--compare"]])
def test_comparing_a_run_with_itself_is_refused(small, tmp_path, report, before):
    folder = stored(small, tmp_path)
    copy = stored(small, tmp_path / "elsewhere", "copy")
    result = report(folder, *before, copy)
    assert result.exit_code == 2
    assert "are the same run" in result.output
    assert "copy" in result.output


def test_runs_with_nothing_in_common_give_a_message(small, tmp_path, report):
    bare = another(small, 2).only(lambda cell: cell.engine != "baseline")
    result = report(*(stored(one, tmp_path) for one in (another(small, 1), bare, another(bare, 2))))
    assert result.exit_code == 0
    assert "no two of these 3 runs have a speedup in common" in result.output
