"""Every test, part by part: `python -m tests [OPTION OF PYTEST]…`, which is what `tox -e test` runs.

1. The host: the tests, on two workers.
2. The host again: those that time something, with nothing beside them.
3. Every other interpreter in turn: the tests of worker-safe code, except those marked `host`. The texts that each one
   generates for compilers, and the numbers that it computes, are compared with the host's. CPythons between the oldest
   and the host run a part of them (`BETWEEN`).

The end shows how long each part took, the slowest tests of all parts, and which interpreters were covered. In CI (`CI`
is set) a CPython 3.9, a CPython 3.13 and a PyPy must be among them, so that an interpreter that went missing cannot
make a green run. Where the options select tests (`-k`, `-m`, a path), the host runs them in one process, which starts
at once. `--exhaustive` leaves nothing out: every test on every interpreter, and more random examples.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from harness import interpreters  # noqa: E402  (this checkout's, whatever is installed)
from harness.interpreters import Interpreter, NoEnvironment  # noqa: E402

WORKER_SAFE = ("tests/engines", "tests/datasets", "tests/harness/worker")
BETWEEN = (
    "tests/engines/test_everywhere.py",
    "tests/engines/test_bits.py",
    "tests/engines/test_value.py",
    "tests/engines/compiled/test_program.py",
    "tests/engines/compiled/test_toolchains.py",
    "tests/datasets",
    "tests/harness/worker",
)
"""On a CPython between the oldest and the host, whose neighbours on both sides run all that is worker-safe."""
REQUIRED_IN_CI = (r"cpython-3\.9", r"cpython-3\.13", r"pypy-.*")
WORKERS = ("-n2", "--dist=worksteal")
SLOWEST = 10
NO_TESTS = 5
"""What pytest exits with where nothing was selected."""


@dataclass(frozen=True)
class Result:
    """What became of a part."""

    part: str
    seconds: float
    failed: bool
    counts: dict[str, int]
    """`passed`, `failed`, `skipped`."""
    slowest: list[tuple[float, str]]

    def line(self) -> str:
        """The part's row of the closing table."""
        counts = ", ".join(f"{number:,} {outcome}" for outcome, number in self.counts.items() if number)
        return f"{self.part:<32} {clock(self.seconds):>9}  {'FAILED: ' * self.failed}{counts or 'no tests'}"


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def pytest(part: str, command: Sequence[str], folder: Path, **variables: str) -> Result:
    """Run one part, show its progress, and read its results from the XML that pytest leaves."""
    print(f"\n───── {part} ─────", flush=True)
    report = folder / f"{re.sub(r'[^a-z0-9.-]+', '-', part)}.xml"
    start = time.perf_counter()
    environment = {**os.environ, **variables}
    code = subprocess.run([*command, f"--junitxml={report}"], cwd=ROOT, env=environment, check=False).returncode
    seconds = time.perf_counter() - start
    counts, slowest = read(report) if report.exists() else ({}, [])
    return Result(part, seconds, code not in (0, NO_TESTS), counts, slowest)


def read(report: Path) -> tuple[dict[str, int], list[tuple[float, str]]]:
    """How the tests of a part ended, and the slowest of them."""
    suite = ElementTree.parse(report).getroot()[0]
    total, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    cases = [(float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}") for case in suite]
    counts = {"passed": total - skipped - failed, "failed": failed, "skipped": skipped}
    return counts, sorted(cases, reverse=True)[:SLOWEST]


def selects(arguments: Sequence[str]) -> bool:
    """Whether the options choose tests."""
    return any(argument.startswith(("-k", "-m", "--lf", "--ff")) for argument in arguments) or bool(paths(arguments))


def paths(arguments: Sequence[str]) -> list[str]:
    """The files, folders and test ids among the options."""
    return [argument for argument in arguments if (ROOT / argument.partition("::")[0]).exists()]


def on_host(arguments: Sequence[str], folder: Path) -> list[Result]:
    """The parts that this interpreter runs."""
    name = f"{sys.implementation.name}-{sys.version_info[0]}.{sys.version_info[1]}"
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    if selects(arguments):
        return [pytest(name, command, folder)]
    return [
        pytest(f"{name}, two workers", [*command, "--part=together", *WORKERS], folder),
        pytest(f"{name}, alone", [*command, "--part=alone"], folder),
    ]


def elsewhere(found: Sequence[Interpreter], arguments: Sequence[str], folder: Path) -> list[Result]:
    """A part for each other interpreter: its environment is made first, from a lock file."""
    chosen = [path for path in paths(arguments) if path.startswith(WORKER_SAFE)]
    if paths(arguments) and not chosen:
        return []
    options = [argument for argument in arguments if argument not in paths(arguments)]
    results = []
    if not selects(arguments):
        host = folder / "host.json"
        subprocess.run([sys.executable, "-m", "tests.engines.fingerprints", str(host)], cwd=ROOT, check=True)
        options += [f"--host={host}", *WORKERS]
    for interpreter in found:
        try:
            python = interpreters.environment(interpreter, lock="test-worker")
        except NoEnvironment as error:
            print(f"\n───── {interpreter.name} ─────\n{error}", flush=True)
            results.append(Result(interpreter.name, 0.0, True, {}, []))
            continue
        # pytest's cache is the host's: interpreters would overwrite one another's.
        command = [str(python), "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", "--part=elsewhere"]
        bytecode = ROOT / ".zoomgrad" / "bytecode" / interpreter.name
        command += [*(chosen or default_paths(interpreter, found, options)), *options]
        results.append(pytest(interpreter.name, command, folder, PYTHONPYCACHEPREFIX=str(bytecode)))
    return results


def default_paths(interpreter: Interpreter, found: Sequence[Interpreter], options: Sequence[str]) -> tuple[str, ...]:
    """The tests of that interpreter where the options name none."""
    cpythons = [one.minor for one in found if one.implementation == "cpython"] + [sys.version_info[:2]]
    between = interpreter.implementation == "cpython" and min(cpythons) < interpreter.minor < max(cpythons)
    return BETWEEN if between and "--exhaustive" not in options else WORKER_SAFE


def summary(results: Sequence[Result], others: Sequence[Interpreter], covered: Sequence[Interpreter]) -> None:
    """Where the time went, the slowest tests, and what was not covered."""
    print(f"\n───── the {SLOWEST} slowest tests ─────")
    slowest = sorted((each, result.part) for result in results for each in result.slowest)[-SLOWEST:]
    for (seconds, test), part in reversed(slowest):
        print(f"{seconds:7.1f} s  {test}  ({part})")
    print("\n───── all parts ─────")
    for result in results:
        print(result.line())
    for absent in interpreters.missing(covered):
        print(f"{absent.name:<32} not covered: {absent.reason}; {absent.remedy}")
    for other in others:
        print(f"{other.name:<32} not covered: {other.name.rpartition('.')[0]} stands for it")
    print(f"{'in all':<32} {clock(sum(result.seconds for result in results)):>9}")
    totals = (f"{sum(r.counts.get(name, 0) for r in results)} {name}" for name in ("passed", "failed", "skipped"))
    print(", ".join(totals))


def main(arguments: Sequence[str]) -> int:
    """Run all parts; 1 where one failed or, in CI, where a required interpreter is missing."""
    found = interpreters.discover()
    covered = [one for one in found if one.canonical or one.free_threaded]
    here = (sys.implementation.name, sys.version_info[:2])
    guests = [one for one in covered if (one.implementation, one.minor) != here or one.free_threaded]
    print(f"host: {sys.version.split()[0]}; then {', '.join(one.name for one in guests) or 'no other interpreter'}")
    with tempfile.TemporaryDirectory(prefix="zoomgrad-tests-") as folder:
        os.environ["ZOOMGRAD_TEST_OBJECTS"] = str(Path(folder) / "objects")
        results = on_host(arguments, Path(folder)) + elsewhere(guests, arguments, Path(folder))
    summary(results, [one for one in found if one not in covered], covered)
    failed = any(result.failed for result in results)
    if not failed and not any(result.counts.get("passed") for result in results):
        print("no test ran: see the options")
        failed = True
    lacking = [name for name in REQUIRED_IN_CI if not any(re.fullmatch(name, one.name) for one in covered)]
    if os.environ.get("CI") and lacking:
        print(f"CI must cover {', '.join(lacking)} as well: install what .ci/run installs")
        failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
