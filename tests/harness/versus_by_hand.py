"""`--versus` against pyperf by hand: `python -m tests.harness.versus_by_hand FOLDER NAME=PYTHON OTHER=PYTHON`.

The script runs `zoomgrad run --versus OTHER` on two interpreters. Then it does what one would do without zoomgrad:
`pyperf timeit` of the same training on one interpreter after the other, and `pyperf compare_to`. It prints both
intervals of each engine's speed on the first interpreter over that on the second, and fails if they don't overlap.
"""

import argparse
import math
import os
import subprocess
import sys
from pathlib import Path
from statistics import fmean, variance

import pyperf

from harness.machine import environments, interpreters, named
from reports.measured.table import cells
from results.places import ROOT
from results.stats.intervals import Interval, student
from results.store import Store

TRAIN = "trainer.train(256)"
SETUP = """
import engines
from harness import workloads
trainer = engines.load({engine!r}).prepare(workloads.load({workload!r}))
"""


def measured(folder, asked, names):
    """`zoomgrad run --versus`, and its intervals by engine."""
    choices = ("--preset", "smoke", "--engines", asked.engines, "--workloads", asked.workload)
    command = ["run", *choices, "--interpreters", ",".join(asked.interpreters), "--versus", names[1]]
    run_folder = folder / "runs"
    print(f"$ zoomgrad {' '.join([*command, '--blocks', str(asked.blocks)])}", flush=True)
    subprocess.run(
        [sys.executable, "-m", "harness", *command, "--blocks", str(asked.blocks)],
        env={**os.environ, "ZOOMGRAD_RUNS": str(run_folder), "COLUMNS": "160"},
        check=True,
    )
    store = Store(max(path.parent for path in run_folder.glob("*/run.json")))
    rows = cells(store.run, store.records())
    found = rows[rows["interpreter"] == names[0]].set_index("engine")
    bounds = ("speedup_versus", "speedup_versus_low", "speedup_versus_high")
    return {engine: Interval(*found.loc[engine, list(bounds)]) for engine in found.index}


def by_hand(folder, asked, pythons, engine):
    """`pyperf timeit` on both; the ratio of the means of processes, with Welch's interval on logarithms."""
    files = []
    for name, python in pythons.items():
        files.append(folder / f"{engine}-{name}.json")
        files[-1].unlink(missing_ok=True)
        setup = SETUP.format(engine=engine, workload=asked.workload)
        options = ["-q", "-p", str(asked.blocks), "-w", "1", "-n", "5", "--inherit-environ", "PYTHONPATH"]
        subprocess.run(
            [python, "-m", "pyperf", "timeit", *options, "-o", files[-1], "-s", setup, TRAIN],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
    print(f"$ pyperf compare_to {files[1].name} {files[0].name}", flush=True)
    subprocess.run([sys.executable, "-m", "pyperf", "compare_to", str(files[1]), str(files[0])], check=True)
    first, second = (
        [math.log(fmean(run.values)) for run in pyperf.Benchmark.load(str(file)).get_runs() if run.values]
        for file in files
    )
    middle = fmean(second) - fmean(first)
    reach = student(min(len(first), len(second))) * math.sqrt(
        sum(variance(logs) / len(logs) for logs in (first, second))
    )
    return Interval(*map(math.exp, (middle, middle - reach, middle + reach)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("interpreters", nargs=2, help="a name that `zoomgrad list` shows, or NAME=PATH")
    parser.add_argument("--engines", default="baseline,tuple")
    parser.add_argument("--workload", default="xor")
    parser.add_argument("--blocks", type=int, default=10, help="processes of each engine on each interpreter")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    everything, names = named.asked(asked.interpreters, interpreters.discover())
    pythons = {name: environments.environment(interpreters.choose(name, everything)) for name in names}
    ours = measured(asked.folder.absolute(), asked, names)
    theirs = {engine: by_hand(asked.folder.absolute(), asked, pythons, engine) for engine in ours}
    print(f"\n| {names[0]}'s speed over {names[1]}'s | `--versus` | by hand | overlap |\n|---|---:|---:|---|")
    apart = []
    for engine, one in ours.items():
        other = theirs[engine]
        if not (one.low <= other.high and other.low <= one.high):
            apart.append(engine)
        shown = [f"{each.value:.3f} ({each.low:.3f} to {each.high:.3f})" for each in (one, other)]
        print(f"| {engine} | {' | '.join(shown)} | {'no' if engine in apart else 'yes'} |")
    sys.exit(1 if apart else 0)


if __name__ == "__main__":
    main()
