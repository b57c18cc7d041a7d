"""Fleets that nobody has: `python -m tests.harness.fleet.simulation [SEED]` prints the table of docs/fleet.md.

The collector and its placement are the real ones. The cluster is a fake with a clock of its own, and hosts whose speed
and failures are drawn at random:

- a host's pace is log-normal (15 %); a share of hosts is three times as slow,
- a unit's time varies by another 5 %,
- hosts vanish at random (exponential); dask notices a killed worker within a second, and a host without power or
  network after two minutes,
- half of the vanished hosts come back after ten minutes, with what they had measured, or (in tests) without it,
- a host makes its environments first, in one to three minutes; a record takes some milliseconds home.

*Efficiency* is the time of completed units, on the hosts that completed them, over the time of all hosts that were
there, from the moment when they had joined until the last record came home.
"""

from __future__ import annotations

import heapq
import itertools
import math
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from harness.fleet.cluster import Ended, Joined, Left, Said
from harness.fleet.collecting import Collector
from harness.fleet.fingerprint import Fingerprint
from harness.fleet.host import Answer, Request
from harness.fleet.unit import units
from harness.machine.interpreters import Interpreter
from harness.plan.planning import Plan
from results.record import Cell, EngineFacts, HostFacts, InterpreterFacts, Record, Run, WorkloadFacts
from results.stats import clusters

PYTHON = "cpython-3.13"
ENGINES = ("baseline", "tcc")
PRINT = Fingerprint(code="c", locks="l", settings="s")
NOW = datetime(2025, 1, 1, tzinfo=UTC)
UNIT_SECONDS = 60.0
POWER_SECONDS = 120.0
"""After this time dask notices that a host has vanished: `worker-ttl`."""
BACK_SECONDS = 600.0
TRUTH, HOST_EFFECT, BLOCK_NOISE = 3.0, 0.02, 0.05
"""The speedup; the standard deviations, on logarithms, of hosts and of blocks on a host."""


class SteadyPlan(Plan):
    """A plan whose every cell is estimated to take the same time."""

    def block_seconds(self, cell, block):
        return UNIT_SECONDS / len(self.run.cells)


def plan(blocks, engines=ENGINES, interpreters=(PYTHON,)):
    cells = tuple(Cell(engine=e, interpreter=i, workload="xor") for i in interpreters for e in engines)
    run = Run(
        id="simulated",
        created_at=NOW,
        command=(),
        preset="smoke",
        seed=1,
        blocks=blocks,
        cells=cells,
        reference_interpreter=interpreters[0],
        engines={name: EngineFacts(idea="", strict=True) for name in engines},
        workloads={"xor": WorkloadFacts(description="", steps_per_epoch=4, samples_per_step=1, batch=4)},
        interpreters={name: InterpreterFacts(version="3.13.0") for name in interpreters},
        machine={},
        fleet="tls",
    )
    return SteadyPlan(
        run, {name: Interpreter(name, None, "cpython", "3.13.0", "3.13.0", False, {}) for name in interpreters}, {}
    )


@dataclass(frozen=True)
class Scenario:
    """Distributions of speed and failure."""

    hosts: int
    units_per_host: int = 10
    slow: float = 0.0
    """Share of hosts that are three times as slow."""
    vanish_seconds: float = math.inf
    """Mean time until a host vanishes."""
    without_power: float = 0.5
    """Share of the vanished that dask notices late."""
    forgetful: float = 0.0
    """Share of the vanished that come back without what they had measured."""


class Home:
    """Where records come home, in memory; counts what a disk would show."""

    def __init__(self, run):
        self.run, self.kept_records, self.aside, self.done = run, {}, [], {}
        self.at, self.clock = {}, lambda: 0.0

    def admit(self, name, facts):
        self.run = self.run.model_copy(update={"hosts": {**self.run.hosts, name: facts}})

    def keep(self, record):
        key = (record.cell, record.block)
        assert key not in self.kept_records or not self.kept_records[key].host, "a record was doubled"
        self.kept_records[key] = record
        self.at.setdefault(key, self.clock())

    def keep_times(self, host, cell, suite): ...
    def keep_vouching(self, host, vouching): ...

    def complete(self, block, host, attempt):
        self.done[block] = (host, attempt)

    def completed(self):
        return set(self.done)

    def records(self):
        return list(self.kept_records.values())

    def partial(self):
        return self.aside

    def kept(self, cell, block):
        return self.kept_records.get((cell, block))

    def set_aside(self, block):
        found = [self.kept_records.pop((cell, block), None) for cell in self.run.cells]
        found = [record for record in found if record and record.host]
        self.aside += found
        return len(found)

    def keep_aside(self, record):
        self.aside.append(record)


class Cluster:
    """Hosts that are drawn at random, and a clock that jumps from event to event."""

    def __init__(self, scenario, seed):
        self.rng, self.scenario = np.random.default_rng(seed), scenario
        self.clock, self._order, self._queue = 0.0, itertools.count(), []
        self.hosts, self.generation, self.ready_at, self.gone_at = {}, Counter(), {}, {}
        self.sent, self.there_since, self.there_seconds = [], {}, 0.0
        self.busy, self.kept, self.unit_seconds = {}, {}, {}
        for number in range(scenario.hosts):
            worker = f"tcp://{number}"
            slow = 3.0 if self.rng.random() < scenario.slow else 1.0
            self.hosts[worker] = slow * math.exp(self.rng.normal(0, 0.15))
            self._join(worker, 0.0)

    def _at(self, seconds, worker, event):
        heapq.heappush(self._queue, (seconds, next(self._order), worker, self.generation[worker], event))

    def _join(self, worker, seconds):
        self.ready_at[worker] = seconds + (self.rng.uniform(60, 180) if worker not in self.ready_at else 5.0)
        self._at(seconds, worker, Joined(worker))
        if math.isfinite(self.scenario.vanish_seconds):
            self._at(seconds + self.rng.exponential(self.scenario.vanish_seconds), worker, "vanish")

    def now(self):
        return self.clock

    def start(self, task, worker, request):
        asked = Request.model_validate_json(request)
        if asked.task == "forget":
            self._at(self.clock + 0.01, worker, Ended(task))
            return
        if asked.task == "describe":
            facts = HostFacts(
                identity=worker,
                machine={"processor": "a"},
                interpreters=dict.fromkeys(asked.run.interpreters, "3.13.0"),
            )
            at = max(self.clock, self.ready_at[worker])
            self._at(at, worker, Said(task, Answer(facts=facts, fingerprint=PRINT).model_dump_json()))
            self._at(at, worker, Ended(task))
            self.there_since.setdefault(worker, at)
            return
        seconds = UNIT_SECONDS * self.hosts[worker] * math.exp(self.rng.normal(0, 0.05))
        effect = math.exp(HOST_EFFECT * np.random.default_rng(int(worker[6:])).normal())
        before = {record.cell: record for record in self.kept.get((worker, asked.unit.number), ())}
        at, start = self.clock, self.clock
        for cell in asked.unit.cells:
            if cell in before:  # sent again
                again = Answer(record=before[cell]).model_dump_json()
                self._at(at + 0.01, worker, (before[cell], Said(task, again)))
                continue
            at += seconds / len(asked.unit.cells)
            base = TRUTH * effect if cell.engine == "baseline" else 1.0
            step = self.hosts[worker] * base * math.exp(self.rng.normal(0, BLOCK_NOISE / math.sqrt(2)))
            record = Record(cell=cell, block=asked.unit.number, status="measured", started_at=NOW, step_seconds=(step,))
            self._at(at + 0.01, worker, (record, Said(task, Answer(record=record).model_dump_json())))
        self._at(at + 0.02, worker, Said(task, Answer(done=True).model_dump_json()))
        self._at(at + 0.03, worker, Ended(task))
        self.unit_seconds[asked.unit.number] = at - start

    def wait(self, seconds):
        if not self._queue:
            self.clock += seconds
            return []
        at, _, worker, generation, event = heapq.heappop(self._queue)
        self.clock = max(self.clock, at)
        if generation != self.generation[worker]:
            return []  # the host has vanished, and with it what it was doing
        if event == "vanish":
            self._vanish(worker)
            return []
        if isinstance(event, tuple):
            record, event = event
            self.sent.append(record)
            self.kept.setdefault((worker, record.block), []).append(record)
        return [event]

    def _vanish(self, worker):
        self.generation[worker] += 1
        self.there_seconds += self.clock - self.there_since.pop(worker, self.clock)
        late = POWER_SECONDS if self.rng.random() < self.scenario.without_power else 1.0
        self._at(self.clock + late, worker, Left(worker))
        if self.rng.random() < self.scenario.forgetful:
            self.kept = {place: records for place, records in self.kept.items() if place[0] != worker}
        if self.rng.random() < 0.5:
            self._join(worker, self.clock + max(BACK_SECONDS, late + 1.0))


class Silence:
    """A watcher that counts."""

    def __init__(self):
        self.losses, self.refusals = 0, 0

    def admitted(self, host, facts): ...
    def finished(self, record, seconds_left): ...

    def extended(self, cells): ...

    def refused(self, worker, reason):
        self.refusals += 1

    def lost(self, host, block, reason):
        self.losses += 1


def simulate(scenario, seed):
    """Run one fleet. Return its figures."""
    cluster = Cluster(scenario, seed)
    the_plan = plan(scenario.hosts * scenario.units_per_host)
    home, watcher = Home(the_plan.run), Silence()
    home.clock = cluster.now
    Collector(the_plan, home, cluster, watcher, PRINT, patience_seconds=3600.0).collect()
    end = max(home.at.values())
    there = cluster.there_seconds + sum(end - since for since in cluster.there_since.values())
    wanted = {(cell, unit.number) for unit in units(the_plan.run) for cell in unit.cells}
    kept = [*home.kept_records.values(), *home.aside]
    there_now = {(record.cell, record.block, record.step_seconds) for record in kept}
    return {
        "makespan": end,
        "efficiency": sum(cluster.unit_seconds[number] for number in home.done) / there,
        "first": first_within(home, 0.05),
        "losses": watcher.losses,
        "partial": len(home.aside),
        "lost": sum((record.cell, record.block, record.step_seconds) not in there_now for record in cluster.sent)
        + len(wanted - home.kept_records.keys()),
    }


def first_within(home, precision):
    """Seconds until the speedup's interval for one machine type is first within the precision; NaN if never."""
    logs, done = {}, sorted((max(home.at[key] for key in home.at if key[1] == block), block) for block in _some(home))
    for at, block in done:
        found = {cell.engine: record for (cell, number), record in home.kept_records.items() if number == block}
        ratio = found["baseline"].step_seconds[0] / found["tcc"].step_seconds[0]
        logs.setdefault(found["tcc"].host, []).append(math.log(ratio))
        if len(logs) >= clusters.MIN_HOSTS:
            interval = clusters.of_type(list(logs.values()))
            if interval.relative_width / 2 <= precision:
                return at
    return math.nan


def _some(home):
    """The blocks that were complete first: enough for an interval, without looking at ten thousand."""
    return [block for block, _ in zip(sorted(home.done), range(200), strict=False)]


SCENARIOS = {
    "16 hosts": Scenario(16),
    "16, of which 1 in 8 is slow": Scenario(16, slow=0.125),
    "16, slow ones, each vanishes once in 2 h": Scenario(16, slow=0.125, vanish_seconds=7200.0),
    "1,000 hosts": Scenario(1000),
    "1,000, of which 1 in 8 is slow": Scenario(1000, slow=0.125),
    "1,000, slow ones, each vanishes once in 2 h": Scenario(1000, slow=0.125, vanish_seconds=7200.0),
}


def main(seed=1, trials=20):
    """Print medians over the trials, with the worst in brackets; of 1,000 hosts there is one trial."""
    print(
        "| fleet | trials | makespan | efficiency (worst) | first ±5 % | blocks lost | partial records | records lost |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, scenario in SCENARIOS.items():
        count = trials if scenario.hosts < 100 else 1
        found = [simulate(scenario, seed + trial) for trial in range(count)]
        middle = {key: float(np.median([one[key] for one in found])) for key in found[0]}
        worst = min(one["efficiency"] for one in found)
        print(
            f"| {name} | {count} | {middle['makespan'] / 60:.1f} min | {middle['efficiency']:.1%} ({worst:.1%}) "
            f"| {middle['first'] / 60:.1f} min | {middle['losses']:.0f} | {middle['partial']:.0f} "
            f"| {sum(one['lost'] for one in found)} |",
            flush=True,
        )


if __name__ == "__main__":
    main(*(int(text) for text in sys.argv[1:]))
