"""Compare two checkouts: step time, compile time, instructions per step, and the bits of training.

    python -m tests.engines.side_by_side BASE HEAD --engines rerolled-tcc,rerolled-gcc --workloads digits,moons \\
        --blocks 12 --out FILE.json [--until 0.02] [--instructions]

Each block starts one fresh process per checkout for each cell, in random order and never two at once. The sampling unit
is the block, and its ratio is HEAD over BASE. The table shows the median ratio over blocks with its 95 % interval from
`results.stats.intervals`, which uses order statistics (docs/statistics.md explains why not a bootstrap).

The limits apply to times as measured. The table also shows step times divided by the machine's pace around them
(`harness.worker.pace`). When a checkout is compared with itself, these ratios spread more widely in nine of ten cells.
Compile time is the sum of the phases, and the median of several preparations; `first prepare` is the wall time of the
first one.

`--until` adds blocks to undecided cells. It stops as soon as a cell passes, so cells pass slightly too often. FILE.json
keeps every block's figures as they arrive, and the same command resumes where it stopped. The exit code is 1 if a bound
exceeds its limit, bits differ, or figures are missing.

Callgrind counts the instructions of 50 steps (rounded up to whole batches) and of twice as many; the difference gives
the count per step. C is compiled for x86-64-v3 instead of the native processor, because callgrind does not support
AVX-512. The counts include Python's instructions: they are the same for both numbers of steps, and callgrind attributes
those of `train` itself to the caller in libffi.
"""

import argparse
import hashlib
import json
import os
import platform
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from engines.api import Unavailable
from engines.kernel import building, toolchains
from harness.worker import pace
from harness.worker.profiling import count
from tests.engines.side_by_side_table import SIDES, failures, summary, table, undecided

WORKER = Path(__file__).with_name("side_by_side_worker.py")
SOURCES = ("engines", "harness/workloads", "datasets")
PROCESS_SECONDS = 3600.0
"""Limit for one process."""


class NoFigures(Exception):
    """The reason why a process measured nothing."""


def process(folder, cell, what, under=(), **job):
    """Run one fresh process in that checkout and return its figures. Raises NoFigures."""
    engine, workload = cell.split("/")
    job.update(engine=engine, workload=workload, what=what)
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    if under:
        environment.update(PYTHONHASHSEED="0", OPENBLAS_NUM_THREADS="1")
    command = [*under, sys.executable, str(WORKER), json.dumps(job)]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PROCESS_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise NoFigures(f"{folder}: no end after {PROCESS_SECONDS:g} s") from None
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith(" ")]
        raise NoFigures(f"{folder}: exit code {done.returncode}: {said[-1] if said else 'it said nothing'}")
    return json.loads(done.stdout.splitlines()[-1])


def instructions(folder, cell):
    """Return the instructions per step. Raises NoFigures."""
    valgrind = shutil.which("valgrind")
    if not valgrind:
        raise NoFigures("valgrind is not installed")
    with tempfile.TemporaryDirectory() as scratch:
        dump = Path(scratch, "callgrind.out")
        under = (valgrind, "--tool=callgrind", "--quiet", "--instr-atstart=no", f"--callgrind-out-file={dump}")
        target = f"-march={count.PORTABLE}" if platform.machine() in ("x86_64", "AMD64") else "-march=native"
        try:
            with building.build(toolchains.find("gcc"), [count.REQUESTS], ["-O1"]) as built:
                found = process(folder, cell, "count", under, target=target, requests=str(built.path))
        except (Unavailable, building.BuildFailed) as none:
            raise NoFigures(f"valgrind's requests don't compile: {none.reason}") from none
        fewer, more = (_everything(Path(f"{dump}.{part}").read_text(errors="replace")) for part in (1, 2))
    if more <= fewer:
        raise NoFigures(f"{folder}: callgrind counted no more instructions for more steps")
    return (more - fewer) / found["steps"]


def _everything(dump):
    """Return the total of a callgrind dump, which includes Python's instructions."""
    return float(re.search(r"^totals: (\d+)", dump, re.MULTILINE)[1])


class Comparison:
    """All figures so far, saved to a file if one is given."""

    def __init__(self, folders, out, measure=process):
        self.folders = folders
        self.out = out
        self.measure = measure
        self.problems = {}
        self.kept = {"of": self._identity(), "steps": {}, "blocks": {}, "instructions": {}}
        if out and out.exists():
            kept = json.loads(out.read_text())
            if kept["of"] != self.kept["of"]:
                raise SystemExit(f"{out} has figures of other sources or another Python\n  Name another file.")
            self.kept = kept

    def _identity(self):
        return {"python": sys.version, **{side: sources(folder) for side, folder in self.folders.items()}}

    def row(self, cell):
        return summary(
            cell, self.kept["blocks"].get(cell, []), self.kept["instructions"].get(cell), self.problems.get(cell, "")
        )

    def block(self, cell, seed):
        """Measure one more block, unless the cell has failed."""
        blocks = self.kept["blocks"].setdefault(cell, [])
        rng = random.Random(f"{seed}/{cell}/{len(blocks)}")
        try:
            if cell not in self.kept["steps"]:
                scouts = [self.measure(self.folders[side], cell, "scout")["steps"] for side in SIDES]
                self.kept["steps"][cell] = min(scouts)
            job = {"steps": self.kept["steps"][cell], "pace": pace.__file__}
            order = rng.sample(SIDES, k=2)
            blocks.append({side: self.measure(self.folders[side], cell, "time", **job) for side in order})
        except NoFigures as none:
            self.problems[cell] = str(none)
        self._save()

    def count(self, cell):
        """Count both checkouts' instructions, unless they have been counted already."""
        counts = self.kept["instructions"].setdefault(cell, {})
        for side in SIDES:
            if not isinstance(counts.get(side), float):
                try:
                    counts[side] = instructions(self.folders[side], cell)
                except NoFigures as none:
                    counts[side] = str(none)
                self._save()

    def _save(self):
        """Save all figures. Raises SystemExit if a checkout changed meanwhile: figures of two sources must not mix."""
        if self._identity() != self.kept["of"]:
            raise SystemExit("a checkout changed while it was measured\n  Measure worktrees that are not being edited.")
        if self.out:
            draft = self.out.with_suffix(".draft")
            draft.write_text(json.dumps(self.kept))
            draft.replace(self.out)


def sources(folder):
    """Return a hash of the sources that a worker runs."""
    found = hashlib.sha256()
    for path in sorted(each for under in SOURCES for each in (folder / under).rglob("*")):
        if path.suffix in (".py", ".c", ".h"):
            found.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def compare(comparison, cells, options, limits):
    """Measure all missing blocks, one block over all cells at a time, so that a slow minute affects every cell."""
    for number in range(max(options.blocks, options.most_blocks if options.until is not None else 0)):
        for cell in random.Random(f"{options.seed}/{number}").sample(cells, k=len(cells)):
            row = comparison.row(cell)
            wanted = number < options.blocks or undecided(row, limits, options.until)
            if row.blocks <= number and wanted and not row.problem:
                print(f"block {number + 1}: {cell}", file=sys.stderr)
                comparison.block(cell, options.seed)


def main():
    """Measure, print the table, and return the exit code: 0 if every cell is within the limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("head", type=Path)
    parser.add_argument("--engines", required=True)
    parser.add_argument("--workloads", required=True)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--until", type=float, help="add blocks until an undecided bound is this close to its median")
    parser.add_argument("--most-blocks", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--out", type=Path, help="file for the figures; an existing one is resumed")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--limit-steps", type=float, default=1.03)
    parser.add_argument("--limit-compile", type=float, default=1.05)
    parser.add_argument("--limit-instructions", type=float, default=1.01)
    options = parser.parse_args()
    for folder in (options.base, options.head):
        if not (folder / "engines").is_dir():
            parser.error(f"{folder} is not a checkout: it has no folder `engines`")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
    limits = {"steps": options.limit_steps, "compile": options.limit_compile}
    if options.instructions:
        limits["instructions"] = options.limit_instructions
    cells = [f"{engine}/{each}" for engine in options.engines.split(",") for each in options.workloads.split(",")]
    comparison = Comparison({"base": options.base.resolve(), "head": options.head.resolve()}, options.out)
    compare(comparison, cells, options, limits)
    for cell in cells if options.instructions else ():
        print(f"instructions: {cell}", file=sys.stderr)
        comparison.count(cell)
    rows = [comparison.row(cell) for cell in cells]
    print(table(rows, limits))
    return int(any(failures(row, limits) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
