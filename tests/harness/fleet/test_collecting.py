"""The collector on a fake cluster: nothing is lost or doubled, whoever vanishes, and strangers are refused."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.fleet.cluster import Ended, FleetLost, Joined, Left, Said
from harness.fleet.collecting import MOST_LOSSES, Collector
from harness.fleet.fingerprint import Fingerprint
from harness.fleet.host import Answer, Request
from harness.fleet.placing import Place, Waiting, choose
from harness.fleet.unit import Unit, units
from results.record import Cell, HostFacts, LossPoint, Record
from tests.harness.fleet.simulation import NOW, PRINT, Cluster, Home, Scenario, Silence, plan, simulate


def test_sixteen_hosts_are_busy_nine_tenths_of_the_time():
    assert simulate(Scenario(16), seed=1)["efficiency"] > 0.9


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    hosts=st.integers(1, 6),
    slow=st.sampled_from([0.0, 0.5]),
    vanish_seconds=st.sampled_from([120.0, 600.0, 3600.0]),
    forgetful=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_no_record_is_lost_or_doubled_whoever_vanishes(seed, hosts, slow, vanish_seconds, forgetful):
    cluster = Cluster(Scenario(hosts, slow=slow, vanish_seconds=vanish_seconds, forgetful=forgetful), seed)
    the_plan = plan(12)
    home = Home(the_plan.run)  # fails if a record is doubled
    for _ in range(200):  # a run is resumed until it is complete, or nobody is left
        watcher = Silence()
        try:
            Collector(the_plan, home, cluster, watcher, PRINT, patience_seconds=3600.0).collect()
        except FleetLost:
            break
        if len(home.done) == 12:
            break
    there = {(r.cell, r.block, r.step_seconds) for r in (*home.kept_records.values(), *home.aside)}
    assert {(r.cell, r.block, r.step_seconds) for r in cluster.sent} <= there
    for number, (host, attempt) in home.done.items():
        of_unit = [record for (_, block), record in home.kept_records.items() if block == number]
        assert {(record.host, record.attempt) for record in of_unit} == {(host, attempt)}
        assert len(of_unit) == 2


A_WORKER = (Joined("a"),)


class Scripted:
    """A cluster whose every event is a test's. `play(task, request)` answers a task."""

    def __init__(self, play, first):
        self.play, self.events, self.clock, self.asked = play, list(first), 0.0, []

    def now(self):
        return self.clock

    def start(self, task, worker, request):
        asked = Request.model_validate_json(request)
        self.asked.append((task, worker, asked))
        self.events += self.play(task, worker, asked)

    def wait(self, seconds):
        self.clock += seconds
        now, self.events = self.events, []
        return now


def facts(worker, **fields):
    values = {"identity": worker, "machine": {"processor": "a"}, "interpreters": {"cpython-3.13": "3.13.0"}}
    return HostFacts(**{**values, **fields})


def describe(task, worker, fingerprint=PRINT, **fields):
    return [Said(task, Answer(facts=facts(worker, **fields), fingerprint=fingerprint).model_dump_json()), Ended(task)]


def record(cell, block, **fields):
    return Record(cell=cell, block=block, status="measured", started_at=NOW, step_seconds=(1.0,), **fields)


def measure(task, asked):
    lines = [Said(task, Answer(record=record(cell, asked.unit.number)).model_dump_json()) for cell in asked.unit.cells]
    return [*lines, Said(task, Answer(done=True).model_dump_json()), Ended(task)]


class Told(Silence):
    def __init__(self):
        super().__init__()
        self.reasons, self.left, self.total = [], [], 0

    def refused(self, worker, reason):
        self.reasons.append(reason)

    def lost(self, host, block, reason):
        self.reasons.append(f"{host} {block}: {reason}")

    def finished(self, record, seconds_left):
        self.left.append(seconds_left)

    def extended(self, cells):
        self.total += cells


def collect(play, first=A_WORKER, blocks=2, the_plan=None, home=None):
    the_plan = the_plan or plan(blocks)
    home, told, cluster = home or Home(the_plan.run), Told(), Scripted(play, first)
    try:
        Collector(the_plan, home, cluster, told, PRINT, patience_seconds=30.0).collect()
    except FleetLost as lost:
        told.reasons.append(str(lost))
    return home, told, cluster


def ordinary(task, worker, asked):
    return {"describe": describe(task, worker), "forget": [Ended(task)]}.get(asked.task) or measure(task, asked)


def test_a_run_comes_home_and_the_hosts_forget_it():
    home, told, cluster = collect(ordinary)
    assert set(home.done) == {0, 1}
    assert {record.host for record in home.kept_records.values()} == {"host-1"}
    assert told.left[-1] <= told.left[0]
    assert [asked.task for _, _, asked in cluster.asked] == ["describe", "measure", "measure", "forget"]


@pytest.mark.parametrize(
    ("changes", "told_text"),
    [
        ({"fingerprint": Fingerprint(code="other", locks="l", settings="s")}, "its code differs"),
        ({"fingerprint": Fingerprint(code="c", locks="other", settings="s")}, "its lock files differ"),
        (
            {"fingerprint": Fingerprint(code="c", locks="l", settings="other")},
            "understood the run's settings differently",
        ),
        ({"interpreters": {"cpython-3.12": "3.12.0"}}, "it lacks cpython-3.13"),
        ({"interpreters": {"cpython-3.13": "3.13.1"}}, "cpython-3.13 is 3.13.1"),
    ],
)
def test_a_host_that_differs_is_refused_with_the_command_that_fixes_it(changes, told_text):
    def play(task, worker, asked):
        return describe(task, worker, **changes) if asked.task == "describe" else measure(task, asked)

    home, told, _ = collect(play)
    assert not home.kept_records
    refusal, end = told.reasons
    assert told_text in refusal
    assert "\n  " in refusal
    assert end.startswith("no host is left\n  ")


def test_machines_may_differ_and_each_is_recorded():
    def play(task, worker, asked):
        return (
            describe(task, worker, machine={"processor": worker})
            if asked.task == "describe"
            else ordinary(task, worker, asked)
        )

    home, _, _ = collect(play, first=(Joined("a"), Joined("b")), blocks=4)
    assert {facts.machine["processor"] for facts in home.run.hosts.values()} == {"a", "b"}


def test_two_workers_of_one_machine_share_its_slot():
    def play(task, worker, asked):
        return describe(task, worker, identity="same") if asked.task == "describe" else ordinary(task, worker, asked)

    home, _, cluster = collect(play, first=(Joined("a"), Joined("b")))
    assert list(home.run.hosts) == ["host-1"]
    assert {worker for _, worker, asked in cluster.asked if asked.task == "measure"} == {"a"}


def test_a_unit_that_ends_its_hosts_is_given_up_with_a_reason():
    def play(task, worker, asked):
        if asked.task == "measure" and asked.unit.number == 0:
            return [Ended(task, "worker died")]
        return ordinary(task, worker, asked)

    home, _, cluster = collect(play)
    assert sum(asked.task == "measure" and asked.unit.number == 0 for _, _, asked in cluster.asked) == MOST_LOSSES + 1
    skipped = [record for record in home.kept_records.values() if record.block == 0]
    assert {(record.status, record.host) for record in skipped} == {("skipped", "")}
    assert "worker died" in skipped[0].reason
    assert set(home.done) == {1}
    assert "forget" not in [asked.task for _, _, asked in cluster.asked]


def other_block(asked):
    return record(asked.unit.cells[0], asked.unit.number + 1)


def other_cell(asked):
    return record(Cell(engine="gcc-O1", interpreter="cpython-3.13", workload="xor"), asked.unit.number)


def long_record(asked):
    """Its line is short enough, but its file would be too long to be read again."""
    return record(asked.unit.cells[0], asked.unit.number, warmup_step_seconds=(1.0,) * 2**21)


@pytest.mark.parametrize(
    "line",
    [
        lambda asked: "not JSON",
        lambda asked: json.dumps({"record": {"cell": "../../etc"}}),
        lambda asked: Answer(record=other_block(asked)).model_dump_json(),
        lambda asked: Answer(record=other_cell(asked)).model_dump_json(),
        lambda asked: Answer(suite="x" * 2**24).model_dump_json(),
        lambda asked: Answer(record=long_record(asked)).model_dump_json(),
    ],
)
def test_what_a_host_was_not_asked_for_is_not_kept(line):
    def play(task, worker, asked):
        return [Said(task, line(asked))] if asked.task == "measure" else ordinary(task, worker, asked)

    home, told, _ = collect(play, blocks=1)
    assert {record.status for record in home.kept_records.values()} == {"skipped"}
    assert told.reasons


def test_a_host_that_does_not_stop_talking_is_given_up():
    def play(task, worker, asked):
        if asked.task != "measure":
            return ordinary(task, worker, asked)
        cell, number = asked.unit.cells[0], asked.unit.number
        records = [record(cell, number, worker_seconds=float(seconds)) for seconds in range(500)]
        return [Said(task, Answer(record=one).model_dump_json()) for one in records]

    home, told, _ = collect(play, blocks=1)
    assert {record.status for record in home.kept_records.values()} == {"skipped"}
    assert len(home.aside) < 60
    assert "lines about 2 cells" in told.reasons[0]


def test_a_host_cannot_speak_for_another():
    def play(task, worker, asked):
        if asked.task != "measure":
            return ordinary(task, worker, asked)
        lines = measure(task, asked)
        forged = record(asked.unit.cells[0], asked.unit.number, host="host-7", attempt=3, shared_host=True)
        return [Said(task, Answer(record=forged).model_dump_json()), *lines]

    home, _, _ = collect(play)
    assert {(r.host, r.attempt, r.shared_host) for r in home.kept_records.values()} == {("host-1", 0, False)}


def test_a_host_has_one_answer_to_what_it_is():
    def play(task, worker, asked):
        if asked.task == "describe":
            return [*describe(task, worker), *describe(task, worker, identity="another")]
        return ordinary(task, worker, asked)

    home, _, _ = collect(play)
    assert list(home.run.hosts) == ["host-1"]


def test_a_host_that_says_nothing_is_given_up():
    def play(task, worker, asked):
        silent = asked.task == ("describe" if worker == "mute" else "measure") and worker != "b"
        return [] if silent else ordinary(task, worker, asked)

    home, told, _ = collect(play, first=(Joined("mute"), Joined("a"), Joined("b")), blocks=1)
    assert {record.host for record in home.kept_records.values()} == {"host-2"}
    assert len([reason for reason in told.reasons if "said nothing for 80 min" in reason]) == 2
    assert "no host is left" in collect(play, first=(Joined("a"),))[1].reasons[-1]


def test_a_host_that_has_changed_is_refused():
    def play(task, worker, asked):
        return describe(task, worker, machine={"gcc": "14"}) if asked.task == "describe" else measure(task, asked)

    hosts = {"host-1": facts("a", machine={"gcc": "13"})}
    before = replace(plan(1), run=plan(1).run.model_copy(update={"hosts": hosts}))
    home, told, _ = collect(play, the_plan=before)
    assert not home.kept_records
    assert "gcc was 13" in told.reasons[0]


def test_late_records_of_a_lost_host_are_kept_aside():
    late = []

    def play(task, worker, asked):
        if asked.task == "measure" and worker == "a":
            late.extend(measure(task, asked))
            return [late[0], Left("a"), Joined("b")]
        return [*late, *ordinary(task, worker, asked)] if asked.task == "measure" else ordinary(task, worker, asked)

    home, _, _ = collect(play, blocks=1)
    assert {record.host for record in home.kept_records.values()} == {"host-2"}
    assert {record.host for record in home.aside} == {"host-1"}
    assert home.done == {0: ("host-2", 1)}


def test_a_host_that_lost_its_store_replaces_nothing():
    """Its block is another attempt, and what it had sent before is kept aside. A count of records stays right."""
    times = iter(range(1, 99))

    def play(task, worker, asked):
        if asked.task != "measure":
            return ordinary(task, worker, asked)
        first, *rest = measure(task, asked)
        first = Said(task, first.line.replace("[1.0]", f"[{next(times)}.5]"))
        return [first, *rest] if home.kept_records else [first, Left("a"), Joined("a")]

    home = Home(plan(1).run)
    _, told, _ = collect(play, blocks=1, home=home)
    assert [(r.attempt, r.step_seconds) for r in home.records()] == [(1, (2.5,)), (1, (1.0,))]
    assert [(r.attempt, r.step_seconds) for r in home.aside] == [(0, (1.5,))]
    assert home.done == {0: ("host-1", 1)}
    assert told.total == len(told.left) == 3


def test_records_that_are_sent_again_count_once_also_if_they_have_nan():
    losses = (LossPoint(step=0, loss=math.nan),)

    def play(task, worker, asked):
        if asked.task != "measure":
            return ordinary(task, worker, asked)
        found = [record(cell, asked.unit.number, losses=losses) for cell in asked.unit.cells]
        lines = [Said(task, Answer(record=one).model_dump_json()) for one in found]
        return [*lines, *lines, *measure(task, asked)[2:]]

    home, told, _ = collect(play, blocks=1)
    assert {record.attempt for record in home.records()} == {0}
    assert told.total == len(told.left) == 2
    assert not home.aside


def test_a_resumed_run_counts_what_is_left():
    home = Home(plan(2).run)
    home.admit("host-1", facts("a"))
    (first, _), (second, _) = (unit.cells for unit in units(home.run))
    home.keep(record(first, 0, host="host-1"))
    home.keep(record(second, 1, host="host-9"))
    _, told, _ = collect(ordinary, home=home)
    assert told.total == len(told.left) == 3
    assert {(r.block, r.host, r.attempt) for r in home.records()} == {(0, "host-1", 0), (1, "host-1", 1)}
    assert [(r.block, r.host) for r in home.aside] == [(1, "host-9")]


def test_a_host_cannot_call_a_block_complete_without_its_records():
    def play(task, worker, asked):
        return [measure(task, asked)[-2]] if asked.task == "measure" else ordinary(task, worker, asked)

    home, told, _ = collect(play, blocks=1)
    assert not home.done
    assert "sent no record of" in told.reasons[0]


def test_cells_that_gave_no_result_before_are_not_missed():
    def play(task, worker, asked):
        if asked.task != "measure":
            return ordinary(task, worker, asked)
        answer = Answer(done=True, given_up=asked.unit.cells[1:])
        return [measure(task, asked)[0], Said(task, answer.model_dump_json())]

    home, told, _ = collect(play, blocks=1)
    assert home.done == {0: ("host-1", 0)}
    assert told.total == len(told.left) == 1


def test_an_interpreter_that_no_host_has_is_skipped_with_a_reason():
    home, _, _ = collect(ordinary, the_plan=plan(1, interpreters=("cpython-3.13", "cpython-3.9")))
    by_status = {(record.cell.interpreter, record.status) for record in home.kept_records.values()}
    assert by_status == {("cpython-3.13", "measured"), ("cpython-3.9", "skipped")}


def test_a_unit_has_both_baselines_in_shuffled_order():
    run = plan(30, engines=("baseline", "tcc", "slots"), interpreters=("cpython-3.13", "cpython-3.9")).run
    found = units(run)
    assert [unit.number for unit in found] == list(range(60))
    other = [unit for unit in found if unit.interpreter == "cpython-3.9"]
    assert {len(unit.cells) for unit in other} == {4}
    assert all(Cell(engine="baseline", interpreter="cpython-3.13", workload="xor") in unit.cells for unit in other)
    assert len({unit.cells for unit in other}) > 10


def waiting(number, seconds=10.0, host=""):
    return Waiting(Unit(number=number, round=0, interpreter="i", cells=()), seconds, host)


def place(name, **fields):
    return Place(name, {"i"}, **fields)


def test_placing():
    there = {"a": place("a"), "b": place("b", busy_seconds=5.0)}
    assert choose(there["a"], [waiting(0)], [waiting(1, host="a")], there).unit.number == 1  # continues its own
    assert choose(there["a"], [waiting(2)], [waiting(1, host="b")], there).unit.number == 2
    assert choose(there["a"], [], [waiting(1, host="b")], there) is None  # b will be idle, and has part of it
    assert choose(there["a"], [], [waiting(1, host="gone")], there).unit.number == 1
    slow = place("slow", pace=4.0)
    assert choose(slow, [waiting(0)], [], {**there, "slow": slow}) is None  # a ends it in 10 s, slow in 40 s
    assert choose(slow, [waiting(n) for n in range(20)], [], {**there, "slow": slow}).unit.number == 0
    assert choose(Place("c", {"other"}), [waiting(0)], [], there) is None
