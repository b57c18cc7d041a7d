"""Start-up times of the command line: `python -m tests.harness.start [ROUNDS]` prints a table. This is not a test.

Commands take turns, so that other load on the machine disturbs all of them equally; medians are over all rounds. CPU
time covers the command and all processes that it started. It varies less than wall time while other programs run.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

COMMANDS = (
    ("--help",),
    ("list",),
    ("doctor", "--help"),
    ("show", "xor"),
    ("train", "--help"),
    ("run", "--help"),
    ("run", "--preset", "smoek"),
    ("report", "--help"),
)


def seconds(command: list[str]) -> tuple[float, float]:
    """Wall and CPU time of one start."""
    before, start = os.times(), time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    wall, after = time.perf_counter() - start, os.times()
    user, system = after.children_user - before.children_user, after.children_system - before.children_system
    return wall, user + system


def main(rounds: int = 15) -> None:
    """Print medians, and how much longer each command takes than `python -c pass`."""
    nothing = [sys.executable, "-c", "pass"]
    commands = {"python -c pass": nothing}
    commands |= {" ".join(("zoomgrad", *words)): [sys.executable, "-m", "harness", *words] for words in COMMANDS}
    for command in commands.values():
        seconds(command)  # fills the system's file cache and our cache of interpreters
    times = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(seconds(command))
    least = [statistics.median(column) for column in zip(*times["python -c pass"], strict=True)]
    print(f"{'median of ' + str(rounds):28} {'wall s':>8} {'more':>8} {'CPU s':>8} {'more':>8}")
    for name, pairs in times.items():
        wall, cpu = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"{name:28} {wall:8.3f} {wall - least[0]:8.3f} {cpu:8.3f} {cpu - least[1]:8.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
