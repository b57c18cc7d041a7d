"""Run every test, part by part: `python -m tests [OPTION OF PYTEST]…`. `tox -e test` runs this.

1. The host runs the tests on two workers.
2. The host runs the tests marked `alone`, one at a time.
3. Every other interpreter runs the tests of worker-safe code, except those marked `host`, two interpreters at a time.
   The source texts that it generates and the numbers that it computes must equal the host's. CPythons between the
   oldest and the newest run only `BETWEEN`, PyPy only `WITH_A_JIT`.

The summary shows how long each part took, the slowest tests, and which interpreters were covered. In CI (`CI` is set) a
CPython 3.9, a CPython 3.13 and a PyPy must be among them, so that a run cannot be green without them. If the options
select tests (`-k`, `-m`, a path), the host runs them in one process, because starting workers takes longer.
`--exhaustive` runs every test on every interpreter, with different random examples each time.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from zoomgrad.harness.machine import environments, interpreters, own_clang  # noqa: E402
from zoomgrad.harness.machine.environments import NoEnvironment  # noqa: E402
from zoomgrad.harness.machine.interpreters import Interpreter  # noqa: E402

WORKER_SAFE = ("tests/engines", "tests/datasets", "tests/harness/worker", "tests/zoomgrad")
BETWEEN = (
    "tests/engines/test_everywhere.py",
    "tests/engines/test_bits.py",
    "tests/engines/test_value.py",
    "tests/engines/compiled/test_buffers.py",
    "tests/engines/compiled/test_extension.py",
    "tests/engines/compiled/test_toolchains.py",
    "tests/datasets",
)
"""The tests for CPythons between the oldest and the newest: those that may fail there and pass on both of these."""
WITH_A_JIT = (
    *BETWEEN,
    "tests/engines/compiled/test_program.py",
    "tests/zoomgrad",
    "tests/harness/worker/test_execute.py",
    "tests/harness/worker/test_profile.py",
)
"""The tests for PyPy: its bits, buffers and collector, programs of users, and workers. Its compiler makes short tests
slow, and the oldest CPython runs the others."""
REQUIRED_IN_CI = (r"cpython-3\.9", r"cpython-3\.13", r"pypy-.*")
PROCESSES = 2
WORKERS = (f"-n{PROCESSES}", "--dist=worksteal")
SLOWEST = 10
NO_TESTS = 5
"""Pytest's exit code if it selected no tests."""


@dataclass(frozen=True)
class Options:
    """Options of the command line, grouped by the parts that need them."""

    options: list[str]
    """Pytest's options for every part."""
    host_only: list[str]
    """Pytest's options for files that only the host has: its cache, golden files."""
    paths: list[str]
    selects: bool
    exhaustive: bool

    @property
    def worker_safe_paths(self) -> list[str]:
        """Tests of worker-safe code below the paths; all of them if there are no paths."""
        if not self.paths:
            return list(WORKER_SAFE)
        found = []
        for path in self.paths:
            file = (ROOT / path.partition("::")[0]).resolve()
            found += [path] * any(file.is_relative_to(ROOT / folder) for folder in WORKER_SAFE)
            found += [
                folder for folder in WORKER_SAFE if (ROOT / folder) != file and (ROOT / folder).is_relative_to(file)
            ]
        return found


def read_options(arguments: Sequence[str]) -> Options:
    """Separate options from paths. An option's value may look like a path: `-k engines`."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("-k", "-m"):
        parser.add_argument(name)
    for name in ("--deselect", "--ignore", "-p", "--maxfail", "--durations"):
        parser.add_argument(name, action="append", default=[])
    host_only = (("--lf", "--last-failed"), ("--ff", "--failed-first"), ("--sw", "--stepwise"), ("--update-golden",))
    for names in host_only:
        parser.add_argument(*names, action="store_true")
    parser.add_argument("--exhaustive", action="store_true")
    known, rest = parser.parse_known_args(arguments)
    paths = [one for one in rest if not one.startswith("-") and (ROOT / one.partition("::")[0]).exists()]
    options = [one for one in rest if one not in paths]
    for name, value in vars(known).items():
        flag = f"-{name}" if len(name) == 1 else f"--{name}"
        for one in value if isinstance(value, list) else [value]:
            options += [flag, one] if isinstance(one, str) else []
    remembered = [names[0] for names in host_only if getattr(known, names[0].strip("-").replace("-", "_"))]
    selects = bool(paths or known.k or known.m or set(remembered) - {"--update-golden"})
    return Options(options + ["--exhaustive"] * known.exhaustive, remembered, paths, selects, known.exhaustive)


@dataclass(frozen=True)
class Result:
    """Result of one part."""

    part: str
    seconds: float
    failed: bool
    counts: dict[str, int] = field(default_factory=dict)
    """`passed`, `failed`, `skipped`."""
    slowest: list[tuple[float, str]] = field(default_factory=list)

    def line(self) -> str:
        """The part's row of the summary."""
        counts = ", ".join(f"{number:,} {outcome}" for outcome, number in self.counts.items() if number)
        return f"{self.part:<32} {clock(self.seconds):>9}  {'FAILED: ' * self.failed}{counts or 'no tests'}"


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def pytest(
    part: str, command: Sequence[str], folder: Path, *, may_be_empty: bool, beside: bool = False, **variables: str
) -> Result:
    """Run one part, show its progress, and read its results from pytest's XML report.

    beside: another part runs at the same time, so show the output at the end, whole.
    """
    title = f"\n───── {part} ─────\n"
    report = folder / f"{re.sub(r'[^a-z0-9.-]+', '-', part)}.xml"
    output = report.with_suffix(".txt")
    start = time.perf_counter()
    if not beside:
        print(title, end="", flush=True)
    with output.open("wb") if beside else contextlib.nullcontext() as stdout:
        code = subprocess.run(
            [*command, f"--junitxml={report}"],
            cwd=ROOT,
            env={**os.environ, **variables},
            stdout=stdout,
            stderr=subprocess.STDOUT if beside else None,
            check=False,
        ).returncode
    seconds = time.perf_counter() - start
    if beside:
        print(title + output.read_text(encoding="utf-8", errors="replace"), end="", flush=True)
    try:
        counts, slowest = read(report)
    except (OSError, ElementTree.ParseError, IndexError):  # pytest itself failed and printed why
        return Result(part, seconds, failed=True)
    return Result(part, seconds, code != 0 and not (code == NO_TESTS and may_be_empty), counts, slowest)


def read(report: Path) -> tuple[dict[str, int], list[tuple[float, str]]]:
    """Read the counts by outcome and the slowest tests from a part's XML report."""
    suite = ElementTree.parse(report).getroot()[0]
    total, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    cases = [
        (float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}") for case in suite.iter("testcase")
    ]
    counts = {"passed": total - skipped - failed, "failed": failed, "skipped": skipped}
    return counts, sorted(cases, reverse=True)[:SLOWEST]


def on_host(chosen: Options, folder: Path) -> list[Result]:
    """Run the parts of this interpreter."""
    command = [sys.executable, "-m", "pytest", "-q", *chosen.options, *chosen.host_only, *chosen.paths]
    name = f"{sys.implementation.name}-{sys.version_info[0]}.{sys.version_info[1]}"
    if chosen.selects:
        return [pytest(name, command, folder, may_be_empty=True)]
    return [
        pytest(f"{name}, two workers", [*command, "--part=together", *WORKERS], folder, may_be_empty=False),
        pytest(f"{name}, alone", [*command, "--part=alone"], folder, may_be_empty=False),
    ]


def elsewhere(guests: Sequence[Interpreter], chosen: Options, folder: Path) -> list[Result]:
    """Run one part on each other interpreter, in an environment made from a lock file."""
    if not chosen.worker_safe_paths:
        print("\nthe options select no tests of worker-safe code, so no other interpreter runs")
        return []
    options = [*chosen.options, *([] if chosen.exhaustive else ["--part=elsewhere"])]
    results = []
    if not chosen.selects:
        host = folder / "host.json"
        start = time.perf_counter()
        more = ["--exhaustive"] if chosen.exhaustive else []
        if subprocess.run([sys.executable, "-m", "tests.engines.fingerprints", str(host), *more], cwd=ROOT).returncode:
            results.append(Result("the host's fingerprints", time.perf_counter() - start, failed=True))
        options += [f"--host={host}"]

    def run(guest: Interpreter) -> Result:
        try:
            python = environments.environment(guest, lock="test-worker")
        except NoEnvironment as error:
            print(f"\n───── {guest.name} ─────\n{error}", flush=True)
            return Result(guest.name, 0.0, failed=True)
        share = () if chosen.paths or chosen.exhaustive else share_of(guest, guests)
        # Only the host uses pytest's cache, because interpreters would overwrite one another's entries.
        command = [str(python), "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", "-n0", *options]
        command += share or chosen.worker_safe_paths
        bytecode = str(ROOT / ".zoomgrad" / "bytecode" / guest.name)
        return pytest(
            guest.name,
            command,
            folder,
            may_be_empty=chosen.selects,
            beside=not chosen.selects,
            PYTHONPYCACHEPREFIX=bytecode,
        )

    # Two at a time, each in one process: a second process would import everything again, and warm up PyPy's compiler.
    # Those with a compiler of their own are the slowest, so they start first.
    with ThreadPoolExecutor(max_workers=1 if chosen.selects else PROCESSES) as pool:
        return results + list(pool.map(run, sorted(guests, key=lambda guest: not guest.has_jit)))


def share_of(guest: Interpreter, guests: Sequence[Interpreter]) -> tuple[str, ...]:
    """Return the tests that an interpreter runs on a push; empty for all. The oldest CPython runs all."""
    if guest.has_jit:
        return WITH_A_JIT
    cpythons = [one.minor for one in guests if one.implementation == "cpython"] + [sys.version_info[:2]]
    is_ordinary = guest.implementation == "cpython" and not guest.free_threaded
    return BETWEEN if is_ordinary and min(cpythons) < guest.minor < max(cpythons) else ()


def summary(
    results: Sequence[Result], total_seconds: float, others: Sequence[Interpreter], covered: Sequence[Interpreter]
) -> None:
    """Print the slowest tests, how long each part and all of them took, and what was not covered."""
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
        print(f"{other.name:<32} not covered: {other.name.rpartition('.')[0]} is tested instead")
    print(f"{'total':<32} {clock(total_seconds):>9}")
    totals = (f"{sum(r.counts.get(name, 0) for r in results)} {name}" for name in ("passed", "failed", "skipped"))
    print(", ".join(totals))


def get_clang() -> None:
    """Fetch a Clang if this machine has none, as `zoomgrad run` does, so that its engines are tested too."""
    if own_clang.use() or not own_clang.is_offered():
        return
    try:
        own_clang.fetch()
    except NoEnvironment as error:
        print(f"no Clang, so tests of its engines are skipped: {error}")


def main(arguments: Sequence[str]) -> int:
    """Run all parts. Return 1 if one failed or, in CI, if a required interpreter ran nothing."""
    chosen = read_options(arguments)
    found = interpreters.discover()
    covered = [one for one in found if one.canonical or one.free_threaded]
    here = (sys.implementation.name, platform.python_version(), False)
    guests = [one for one in covered if (one.implementation, one.version, one.free_threaded) != here]
    print(f"host: {here[0]} {here[1]}; then {', '.join(one.name for one in guests) or 'no other interpreter'}")
    get_clang()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="zoomgrad-tests-") as folder:
        os.environ["ZOOMGRAD_TEST_OBJECTS"] = str(Path(folder) / "objects")
        results = on_host(chosen, Path(folder)) + elsewhere(guests, chosen, Path(folder))
    summary(results, time.perf_counter() - start, [one for one in found if one not in covered], covered)
    ran = [result.part.partition(",")[0] for result in results if result.counts.get("passed")]
    failed = any(result.failed for result in results)
    if not failed and not ran:
        print("no test ran: the options select none; check -k, -m and the paths")
        failed = True
    lacking = [name for name in REQUIRED_IN_CI if not any(re.fullmatch(name, part) for part in ran)]
    if os.environ.get("CI") and lacking and not chosen.selects:
        print(f"CI must cover {', '.join(lacking)} as well: install what .ci/run installs")
        failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
