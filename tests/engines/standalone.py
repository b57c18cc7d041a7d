"""Seconds per epoch of `mnist` in built modules, next to the harness's own trainer.

`python -m tests.engines.standalone [--rounds 5] [--frozen] [ENGINE …]` builds each module, imports it in a fresh
interpreter that has nothing of ours (`-I -S`), and times both sides in turn, round by round. An epoch has 60,000
images; a slow engine trains on fewer, and its time is scaled. The bits must be the same. With `--frozen` it compares
frozen modules with trainable ones: seconds to build, size of the object, time of a call of `forward(row)`.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import engines
from harness import workloads
from harness.standalone import graphs
from harness.standalone.make import Form, make

ENGINES = ("tcc", "rerolled-tcc", "rerolled-gcc", "rerolled-clang", "rerolled-clang-sparse")
IMAGES, RATE = 60_000, 0.01
PORTION_SECONDS = 2.0

CHILD = """
import hashlib, sys
from time import perf_counter
start = perf_counter()
sys.path.insert(0, {folder!r})
import mnist
print(perf_counter() - start, flush=True)
rows = tuple((open(file, "rb").read(), *rest) for file, *rest in {columns})
for line in sys.stdin:
    mnist.restart()
    start = perf_counter()
    losses = mnist.train(rows, rate={rate}, steps=int(line))
    seconds = perf_counter() - start
    print(seconds, hashlib.sha256(losses.tobytes() + mnist.parameters().tobytes()).hexdigest(), flush=True)
"""


FORWARD = """
import sys
from array import array
from time import perf_counter
sys.path.insert(0, {folder!r})
import mnist
row = array("d", {row})
loss = mnist.forward(row)
for line in sys.stdin:
    calls = range(int(line))
    start = perf_counter()
    for call in calls:
        mnist.forward(row)
    print((perf_counter() - start) / len(calls), loss, flush=True)
"""


class Child:
    """A fresh interpreter that runs a program with nothing of ours on its path."""

    def __init__(self, program, folder):
        pipe, command = subprocess.PIPE, [sys.executable, "-I", "-S", "-c", program]
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=folder)

    def line(self):
        return self._process.stdout.readline().split()

    def ask(self, number):
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        return self.line()

    def end(self):
        self._process.stdin.close()
        self._process.wait()


def built(engine, task, folder, *, frozen):
    """Seconds of the build, from the workload to files, and kilobytes of the object."""
    start = perf_counter()
    make(engine, graphs.of_workload(engine, task), folder, Form.module, frozen=frozen)
    return perf_counter() - start, (folder / "mnist.abi3.so").stat().st_size / 1000


def frozen_row(name, task, folder, rounds):
    """One engine's figures, trainable and frozen."""
    engine = engines.load(name)
    engine.check()
    row = {"engine": name}
    children = {}
    for kind, frozen in (("trains", False), ("frozen", True)):
        row[f"{kind}: build s"], row[f"{kind}: kB"] = built(engine, task, folder / f"{name}-{kind}", frozen=frozen)
        program = FORWARD.format(folder=str(folder / f"{name}-{kind}"), row=list(task.row(0)))
        children[kind] = Child(program, folder)
    calls = max(10, int(0.2 / float(children["trains"].ask(10)[0])))
    found = {kind: [child.ask(calls) for _ in range(1)] for kind, child in children.items()}
    for _ in range(rounds):
        for kind, child in children.items():
            found[kind].append(child.ask(calls))
    assert len({loss for answers in found.values() for _, loss in answers}) == 1, f"{name}: the losses differ"
    for kind, child in children.items():
        child.end()
        row[f"{kind}: call us"] = median(float(seconds) for seconds, _ in found[kind][1:]) * 1e6
    return row


def timed(trainer, steps):
    """Seconds and digest of the first steps, by the harness's trainer."""
    trainer.restart(batch=1)
    start = perf_counter()
    trainer.train(steps)
    seconds = perf_counter() - start
    return seconds, hashlib.sha256(trainer.losses.tobytes() + trainer.parameters().tobytes()).hexdigest()


def row_of(name, task, folder, rounds):
    """One engine's figures."""
    engine = engines.load(name)
    engine.check()
    build_seconds, kilobytes = built(engine, task, folder / name, frozen=False)
    columns = []
    for number, column in enumerate(task.columns()):
        (folder / f"column{number}").write_bytes(column.data)
        columns.append([str(folder / f"column{number}"), *column[1:]])
    trainer = engine.prepare(task)
    steps = min(IMAGES, max(100, int(100 * PORTION_SECONDS / timed(trainer, 100)[0])))
    child = Child(CHILD.format(folder=str(folder / name), columns=columns, rate=RATE), folder)
    import_seconds = float(child.line()[0])
    ours, theirs = [], []
    for turn in range(rounds + 1):  # the first is a warm-up
        own_seconds, digest = timed(trainer, steps)
        seconds, other = child.ask(steps)
        assert digest == other, f"{name}: the module's bits differ"
        if turn:
            ours.append(own_seconds * IMAGES / steps)
            theirs.append(float(seconds) * IMAGES / steps)
    child.end()
    return {
        "engine": name,
        "build s": build_seconds,
        "object kB": kilobytes,
        "import ms": import_seconds * 1e3,
        "images": steps,
        "module s/epoch": median(theirs),
        "harness s/epoch": median(ours),
        "ratio": median(t / o for t, o in zip(theirs, ours)),
    }


def main():
    """Print the table, a row when it is measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("engines", nargs="*", default=ENGINES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--frozen", action="store_true", help="compare frozen modules with trainable ones")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    asked = parser.parse_args()
    task = workloads.load("mnist")
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(asked.engines):
            row = (frozen_row if asked.frozen else row_of)(name, task, Path(folder), asked.rounds)
            if asked.json:
                print(json.dumps(row), flush=True)
                continue
            if not number:
                print("  ".join(f"{title:>15}" for title in row))
            cells = (
                f"{cell:.3f}" if isinstance(cell, float) else f"{cell:,}" if type(cell) is int else cell
                for cell in row.values()
            )
            print("  ".join(f"{cell:>15}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
