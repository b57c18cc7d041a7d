"""Cells -> records through a fake worker: what runs, in which order, and what is on disk when."""

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyperf
import pytest

from tests.harness.runs import cell, run
from tests.harness.test_planning import interpreter
from tests.harness.workers import Workers
from zoomgrad.harness.machine.environments import NoEnvironment
from zoomgrad.harness.procedure import MOST_STEPS, REPEAT_SECONDS
from zoomgrad.harness.run import schedule
from zoomgrad.harness.run.schedule import Plan, Schedule
from zoomgrad.results.record import InterpreterFacts, Settings
from zoomgrad.results.store import Store

ENGINES = ("baseline", "tuple", "slots", "hoisted")
CELLS = tuple(cell(engine) for engine in ENGINES)
REMEDY = "Install it: `uv python install pypy-3.11`."


def plan(*, cells=CELLS, missing=(), **fields):
    interpreters = {name: InterpreterFacts(version="") for name in dict.fromkeys(one.interpreter for one in cells)}
    planned = run("a-run", cells=cells, interpreters=interpreters, **{"seed": 7, "engines": {}, **fields})
    present = {"cpython-3.13", *interpreters} - set(missing)
    return Plan(planned, {name: interpreter(name) for name in present})


class Observer(schedule.Observer):
    def __init__(self):
        self.records = []

    def finished(self, record, seconds_left):
        self.records.append(record)


def python_of(interpreter, *, lock=None):
    return Path("/environments") / interpreter.name / "bin" / "python"


def execute(the_plan, workers, tmp_path, *, environment=python_of):
    folder = tmp_path / "runs" / the_plan.run.id
    store = Store(folder) if folder.exists() else Store.create(the_plan.run, under=tmp_path / "runs")
    observer = Observer()
    Schedule(the_plan, store, workers, environment, observer).execute()
    return store, observer


def statuses(store):
    return {(record.cell.engine, record.block): record.status for record in store.records()}


def measures(workers):
    return [job for job in workers.jobs if job["task"] == "measure"]


def test_every_cell_is_measured_once_per_block_and_one_block_after_another(tmp_path):
    workers, on_disk = Workers(tmp_path), []
    records = tmp_path / "runs" / "a-run" / "records"
    workers.before_each = lambda: on_disk.append(len(list(records.glob("[!.]*.json"))))
    store, observer = execute(plan(), workers, tmp_path)
    assert [block for _, block in workers.measured] == [0] * 4 + [1] * 4 + [2] * 4
    assert Counter(workers.measured) == {(engine, block): 1 for engine in ENGINES for block in range(3)}
    assert workers.measured == [(c.engine, block) for block, c in plan().order()]
    assert set(statuses(store).values()) == {"measured"}
    assert on_disk == [0, 0, 0, *range(12)], "a record was not on disk when the next worker started"
    assert len(observer.records) == 12


def test_each_block_has_its_own_order_which_the_seed_determines():
    orders = [[c.engine for block, c in plan(blocks=20).order() if block == wanted] for wanted in range(20)]
    assert all(sorted(order) == sorted(ENGINES) for order in orders)
    assert len({tuple(order) for order in orders}) > 5
    assert list(plan(blocks=20).order()) == list(plan(blocks=20).order())
    assert list(plan(blocks=20).order()) != list(plan(blocks=20, seed=8).order())


# Jobs of workers and contents of records


def test_a_job_has_the_settings_of_the_run(tmp_path):
    settings = Settings(values=4, warmups=2, jit_warmups=9, value_seconds=0.5, timeout_seconds=33, vouch_seconds=5)
    cells = (cell("slots"), cell("slots").model_copy(update={"interpreter": "pypy-3.9"}))
    workers = Workers(tmp_path)
    workers.seconds = lambda engine, block: [0.1] * 4
    execute(plan(cells=cells, blocks=1, settings=settings), workers, tmp_path)
    trusted, first, second, *measured = workers.jobs
    assert [job["task"] for job in workers.jobs] == ["vouch"] * 3 + ["measure"] * 2
    assert [job["engine"] for job in (trusted, first, second)] == ["tuple", "tcc", "clang-O0"]
    assert {job["reference_folder"] for job in measured} == {first["folder"]}
    assert {job["reference_cell"] for job in measured} == {"tcc/cpython-3.13/xor"}
    assert {(job["reference_steps"], *job["reference_drills"]) for job in measured} == {(64, "short")}
    pythons = {name: Path("/environments") / name / "bin" / "python" for name in ("cpython-3.13", "pypy-3.9")}
    warmups = {job["python"]: job["warmups"] for job in measured}
    assert warmups == {pythons["cpython-3.13"]: 2, pythons["pypy-3.9"]: 9}
    for job in measured:
        assert (job["values"], job["value_seconds"], job["settings"].timeout_seconds) == (4, 0.5, 33)


def test_each_block_has_a_draw_of_its_own_and_the_first_block_chooses_the_stretch(tmp_path):
    workers = Workers(tmp_path)
    execute(plan(cells=CELLS[:2]), workers, tmp_path)
    assert [job["draw"] for job in measures(workers)] == [1, 1, 2, 2, 3, 3]
    steps = [(job["stretch_steps"], job["steps_per_value"]) for job in measures(workers)]
    assert steps == [(0, 0)] * 2 + [(25, 50)] * 4


def test_a_record_holds_what_the_worker_and_pyperf_found(tmp_path):
    store, observer = execute(plan(cells=CELLS[:1], blocks=2), Workers(tmp_path), tmp_path)
    first, second = store.records()
    assert (first.step_seconds, second.step_seconds) == ((0.1, 0.2), (1.1, 1.2))
    assert first.warmup_step_seconds == (0.2,)
    assert (first.phases, first.steps_per_value, first.peak_bytes) == ({"trace": 0.25}, 50, 1000)
    assert (first.worker_seconds, first.proof.reference) == (2.0, "tcc/cpython-3.13/xor")
    assert observer.records == [first, second]
    (benchmark,) = pyperf.BenchmarkSuite.load(str(store.pyperf_file(CELLS[0]))).get_benchmarks()
    assert [list(run.values) for run in benchmark.get_runs()] == [[0.1, 0.2], [1.1, 1.2]]


# Cells without a result


@pytest.mark.parametrize("status", ["failed", "timed-out", "skipped"])
def test_a_cell_without_a_result_is_one_record_and_does_not_stop_other_cells(tmp_path, status):
    """A resumed run tries it again only if no worker ran for it."""
    why = {"status": status, "reason": "it says why", "remedy": "and what to do", "limit": "output"}
    store, _ = execute(plan(), Workers(tmp_path, {"slots": why}), tmp_path)
    (record,) = [record for record in store.records() if record.cell.engine == "slots"]
    assert (record.status, record.reason, record.remedy, record.limit) == tuple(why.values())
    assert (record.block, record.worker_seconds) == (0, 1.5)
    assert sum(status == "measured" for status in statuses(store).values()) == 9
    assert not store.pyperf_file(record.cell).exists()
    again = Workers(tmp_path)
    execute(plan(), again, tmp_path)
    assert sorted(again.measured) == ([("slots", block) for block in range(3)] if status == "skipped" else [])


def test_a_cell_whose_worker_takes_minutes_is_measured_in_one_block(tmp_path):
    class Slow(Workers):
        def __call__(self, task, python, job, **rest):
            answer = super().__call__(task, python, job, **rest)
            return replace(answer, seconds=REPEAT_SECONDS + 1) if job["engine"] == "slots" else answer

    for _ in range(2):  # the second time, resumed
        store, _ = execute(plan(blocks=3), Slow(tmp_path), tmp_path)
        assert [block for engine, block in statuses(store) if engine == "slots"] == [0]
        assert len(statuses(store)) == 10


def test_a_missing_interpreter_is_skipped_with_the_remedy(tmp_path):
    absent = cell("tuple").model_copy(update={"interpreter": "pypy-3.11"})
    workers = Workers(tmp_path)
    store, _ = execute(plan(cells=(*CELLS, absent), missing=["pypy-3.11"]), workers, tmp_path)
    (record,) = [record for record in store.records() if record.cell == absent]
    assert (record.status, record.remedy) == ("skipped", REMEDY)
    assert {job["python"].parts[-3] for job in measures(workers)} == {"cpython-3.13"}


def test_a_peer_without_its_environment_is_skipped_and_the_others_run(tmp_path):
    def environment(interpreter, *, lock=""):
        if lock == "peers-jax-worker":
            raise NoEnvironment("no wheel for this interpreter")
        return python_of(interpreter)

    the_plan = plan(cells=(*CELLS[:1], cell("jax"), cell("numpy")), blocks=2)
    store, _ = execute(the_plan, Workers(tmp_path), tmp_path, environment=environment)
    by_engine = {record.cell.engine: record.status for record in store.records()}
    assert by_engine == {"baseline": "measured", "jax": "skipped", "numpy": "measured"}


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [("phases", {"compile": float("nan")}, "phases.compile"), ("pace_seconds", [0.1], "pace_seconds")],
)
def test_invalid_figures_are_a_failed_record_that_names_them(tmp_path, field, value, said):
    """The process boundary checks figures first; this check catches what it may have missed."""

    class Lying(Workers):
        def __call__(self, task, python, job, **rest):
            answer = super().__call__(task, python, job, **rest)
            lies = task == "measure" and job["engine"] == "slots"
            return replace(answer, reply={**answer.reply, field: value}) if lies else answer

    store, _ = execute(plan(blocks=1), Lying(tmp_path), tmp_path)
    (failed,) = [record for record in store.records() if record.status != "measured"]
    assert (failed.cell, failed.status) == (cell("slots"), "failed")
    assert said in failed.reason


@pytest.mark.parametrize("text", ["", '{"version": "1.0", "benchmarks": [{}]}'])
def test_a_damaged_suite_is_started_again(tmp_path, text):
    store, _ = execute(plan(cells=CELLS[:1], blocks=1), Workers(tmp_path), tmp_path)
    store.pyperf_file(CELLS[0]).write_text(text)
    execute(plan(cells=CELLS[:1], blocks=2), Workers(tmp_path), tmp_path)
    assert statuses(store) == {("baseline", 0): "measured", ("baseline", 1): "measured"}
    (process,) = pyperf.Benchmark.load(str(store.pyperf_file(CELLS[0]))).get_runs()
    assert list(process.values) == [1.1, 1.2]


# Vouching


def vouched(tmp_path, answers=None):
    workers = Workers(tmp_path, answers)
    store, _ = execute(plan(cells=CELLS[:1], blocks=1), workers, tmp_path)
    return workers, store


def test_the_reference_vouches_for_two_engines_that_vouch_for_all_others(tmp_path):
    workers, store = vouched(tmp_path)
    trusted, first, second = workers.jobs[:3]
    assert trusted["witnesses"] == {}
    assert first["witnesses"] == {"tuple/cpython-3.13/xor": trusted["folder"]}
    assert second["witnesses"] == {**first["witnesses"], "tcc/cpython-3.13/xor": first["folder"]}
    assert (first["steps"], second["steps"]) == (MOST_STEPS, 64)  # as many steps as the first one took
    (vouching,) = store.vouchings()
    assert vouching.reference == cell("tcc")
    assert [(one.cell.engine, one.steps) for one in vouching.vouchers] == [("tuple", 64), ("tcc", 64), ("clang-O0", 64)]


def test_without_a_compiler_python_engines_vouch(tmp_path):
    no_compiler = {"status": "skipped", "reason": "there is no such compiler on PATH", "remedy": "install one"}
    lacking = ("tcc", "clang-O0", "gcc-O0")
    _, store = vouched(tmp_path, {("vouch", name): no_compiler for name in lacking})
    (vouching,) = store.vouchings()
    assert [one.cell.engine for one in vouching.vouchers] == ["tuple", "python-source", "bytecode"]
    assert {one.engine: one.reason for one in vouching.passed_over} == dict.fromkeys(lacking, no_compiler["reason"])
    assert store.records()[0].proof.reference == "python-source/cpython-3.13/xor"


@pytest.mark.parametrize("engine", ["tcc", "clang-O0"])
def test_two_engines_that_disagree_do_not_vouch(tmp_path, engine):
    why = {"status": "failed", "reason": f"{engine} and tuple disagree", "remedy": "find out", "disagrees": True}
    workers, store = vouched(tmp_path, {("vouch", engine): why})
    (record,) = store.records()
    assert (record.status, record.reason, record.remedy) == ("failed", f"{engine} and tuple disagree", "find out")
    assert (store.vouchings(), workers.measured) == ([], [])


def test_cells_without_their_data_are_skipped_with_the_remedy_and_tried_again(tmp_path):
    missing = {"status": "skipped", "reason": "mnist: not here", "remedy": "fetch it"}
    workers, store = vouched(tmp_path, {("vouch", "tuple"): missing})
    (record,) = store.records()
    assert (record.status, record.reason, record.remedy) == ("skipped", "mnist: not here", "fetch it")
    assert len(workers.jobs) == 1, "vouching must be tried only once in a session"
    _, store = vouched(tmp_path)
    assert statuses(store) == {("baseline", 0): "measured"}


def changed(path, change):
    path.write_bytes(change(path.read_bytes()))


DAMAGE = {
    "no evidence": lambda store: shutil.rmtree(store.evidence_folder(cell("tcc"))),
    "half a piece": lambda store: changed(store.evidence_folder(cell("tcc")) / "64.doubles", lambda text: text[:40]),
    "a lost piece": lambda store: (store.evidence_folder(cell("tcc")) / "short.doubles").unlink(),
    "no vouching": lambda store: changed(store.folder / "vouching" / "xor.json", lambda _: b"[]"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_evidence_is_made_again(tmp_path, damage):
    _, store = vouched(tmp_path)
    DAMAGE[damage](store)
    next((store.folder / "records").iterdir()).unlink()
    workers, store = vouched(tmp_path)
    assert [job["task"] for job in workers.jobs] == ["vouch"] * 3 + ["measure"]
    assert set(statuses(store).values()) == {"measured"}
    assert store.vouching("xor").reference == cell("tcc")


def test_vouching_again_covers_the_stretch_that_was_timed(tmp_path):
    """Each block of a cell trains the same stretch, whatever the machine's load during the second vouching."""
    store, _ = execute(plan(cells=CELLS[:1], blocks=2), Workers(tmp_path), tmp_path)
    shutil.rmtree(store.evidence_folder(cell("tcc")))
    (store.folder / "records" / "baseline--cpython-3.13--xor--1.json").unlink()
    workers = Workers(tmp_path)

    def slower_at_first():
        workers.vouched_steps = 64 if any(job["engine"] == "tcc" for job in workers.jobs) else 16

    workers.before_each = slower_at_first
    execute(plan(cells=CELLS[:1], blocks=2), workers, tmp_path)
    assert [job["engine"] for job in workers.jobs] == ["tuple", "tcc", "tcc", "clang-O0", "baseline"]
    assert workers.jobs[2]["steps"] == 25  # of the block that was timed
    assert {record.stretch_steps for record in store.records()} == {25}


# Interrupted and resumed, and more blocks


def test_an_interrupt_keeps_the_records_and_resuming_measures_the_rest(tmp_path):
    order = [c.engine for _, c in plan(blocks=1).order()]
    with pytest.raises(KeyboardInterrupt):
        execute(plan(), Workers(tmp_path, {order[2]: KeyboardInterrupt()}), tmp_path)
    store = Store(tmp_path / "runs" / "a-run")
    before = {path: path.read_bytes() for path in (store.folder / "records").iterdir()}
    assert statuses(store) == {(order[0], 0): "measured", (order[1], 0): "measured"}

    resumed = Workers(tmp_path)
    execute(Plan(store.run, plan().interpreters), resumed, tmp_path)
    assert resumed.measured == [(c.engine, block) for block, c in plan().order()][2:]
    assert Counter(statuses(store).values()) == {"measured": 12}
    assert {path: path.read_bytes() for path in before} == before
    assert len(measures(resumed)) == len(resumed.jobs), "it vouched again"
    steps = {job["steps_per_value"] for job in resumed.jobs if job["draw"] == 2}
    assert steps == {50}  # the second session uses the count that the first one found
