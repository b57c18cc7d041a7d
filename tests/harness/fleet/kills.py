"""Kill a fleet at random: `python -m tests.harness.fleet.kills [KILLS [SEED [BLOCKS]]]`. Not a test by itself.

A scheduler, two workers in processes of their own and a client measure a small run on this machine. Again and again one
of them is ended by SIGKILL. What died is started again, and the client resumes. At the end every record that a client
ever announced must be there, once.
"""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from harness.fleet.unit import units
from results.fleet.home import Home
from results.store import Store

FINISHED = re.compile(r"\] (host-\d+): (\S+) block (\d+): (\w[\w-]*),")
SECONDS = 900


class Fleet:
    """The processes of a fleet, by role. Any of them may be dead."""

    def __init__(self, folder, blocks):
        self.folder, self.blocks = folder, blocks
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self.processes, self.clients = {}, 0
        self.environment = {**os.environ, "ZOOMGRAD_RUNS": str(folder / "runs"), "NO_COLOR": "1", "COLUMNS": "200"}

    def keep_alive(self):
        """Start whatever is not running, in the order of need."""
        self._keep("scheduler", "harness.fleet.scheduler", self.address)
        for number in (1, 2):
            self._keep(f"worker {number}", "harness.fleet.worker", self.address, "--slot", f"slot-{number}")
        if not self._lives("client"):
            self.clients += 1
            self._start("client", f"client-{self.clients}.txt", "harness", "run", *self._what(), "--on", self.address)

    def _what(self):
        run = self.run()
        if run:
            return ["--resume", run.name]
        chosen = ["--engines", "baseline,tuple", "--workloads", "xor", "--interpreters", "cpython-3.13,cpython-3.12"]
        return ["--preset", "smoke", *chosen, "--blocks", str(self.blocks), "--seed", "5"]

    def run(self):
        return next(iter(sorted(path.parent for path in (self.folder / "runs").glob("*/run.json"))), None)

    def _lives(self, role):
        return role in self.processes and self.processes[role].poll() is None

    def _keep(self, role, *command):
        if not self._lives(role):
            self._start(role, f"{role}.txt", *command)

    def _start(self, role, log, *command):
        with (self.folder / log).open("a") as file:
            self.processes[role] = subprocess.Popen(
                [sys.executable, "-m", *command],
                env=self.environment,
                stdout=file,
                stderr=file,
                stdin=subprocess.DEVNULL,
            )

    def kill(self, role):
        self.processes[role].send_signal(signal.SIGKILL)
        self.processes[role].wait()

    def end(self):
        for process in self.processes.values():
            process.kill()
            process.wait()

    def announced(self):
        """(cell, block, host) of every record that a client printed."""
        texts = [path.read_text() for path in self.folder.glob("client-*.txt")]
        return {(cell, int(block) - 1, host) for text in texts for host, cell, block, _ in FINISHED.findall(text)}

    def is_complete(self):
        if not self.run():
            return False
        store = Store(self.run())
        return Home(store).completed() == {unit.number for unit in units(store.run)}


def campaign(folder, kills, seed, blocks=24, roles=("worker 1", "worker 2", "scheduler", "client"), say=print):
    """Kill so many processes, then let the run complete. Return the facts that tests check."""
    rng, fleet, killed = random.Random(seed), Fleet(folder, blocks), Counter()
    until = time.monotonic() + SECONDS
    try:
        fleet.keep_alive()
        while not fleet.is_complete() and time.monotonic() < until:
            time.sleep(rng.uniform(1.0, 12.0) if killed.total() < kills else 0.5)
            fleet.keep_alive()
            if killed.total() < kills and fleet.run():
                role = rng.choice(roles)
                killed[role] += 1
                fleet.kill(role)
                say(f"{killed.total()}: killed {role}; {len(fleet.announced())} records announced so far")
                time.sleep(0.2)
                fleet.keep_alive()
        assert fleet.is_complete(), "the run did not complete"
        code = fleet.processes["client"].wait(60)
    finally:
        fleet.end()
    store = Store(fleet.run())
    records, partial = store.records(), Home(store).partial()
    expected = Counter((cell.key, unit.number) for unit in units(store.run) for cell in unit.cells)
    counted = Counter((record.cell.key, record.block) for record in records)
    there = {(record.cell.key, record.block, record.host) for record in (*records, *partial)}
    return {
        "killed": dict(killed),
        "clients": fleet.clients,
        "code": code,
        "records": len(records),
        "partial": len(partial),
        "missing": sorted(expected - counted),
        "doubled": sorted(counted - expected),
        "lost": sorted(fleet.announced() - there),
        "mixed": sum(len({record.host for record in records if record.block == number}) > 1 for _, number in expected),
        "store": store,
    }


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    with tempfile.TemporaryDirectory(prefix="zoomgrad-kills-", ignore_cleanup_errors=True) as temporary:
        print(
            {k: v for k, v in campaign(Path(temporary), *(numbers + [20, 1][len(numbers) :])).items() if k != "store"}
        )
