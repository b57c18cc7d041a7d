"""Run every test, part by part: `python -m tests [--exhaustive]`. `tox -e test` runs this.

1. The host runs the tests on two workers.
2. The host runs the tests marked `alone`, one at a time.
3. Every other interpreter runs the tests of worker-safe code, except those marked `host`, two interpreters at a time.
   The source texts that it generates and the numbers that it computes must equal the host's. CPythons between the
   oldest and the newest run only `BETWEEN`, PyPy only `WITH_A_JIT`.

Each part shows its slowest tests, and the summary how long each part took and which interpreters were covered. In CI
(`CI` is set) a CPython 3.9, a CPython 3.13 and a PyPy must be among them, so that a run cannot be green without them.
`--exhaustive` runs every test on every interpreter, with different random examples each time. With any other option or
path, it is `pytest` on this interpreter.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from zoomgrad.engines.kernel import toolchains
from zoomgrad.harness.machine import environments, interpreters
from zoomgrad.harness.machine.environments import NoEnvironment
from zoomgrad.harness.machine.interpreters import Interpreter

ROOT = Path(__file__).parent.parent
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
REQUIRED_IN_CI = ("cpython-3.9", "cpython-3.13", "pypy-")
HERE = f"{sys.implementation.name}-{sys.version_info[0]}.{sys.version_info[1]}"
PROCESSES = 2
SLOWEST = 10
PASSED, NO_TESTS, FAILED = "passed", "no tests", "FAILED"
OUTCOMES = {0: PASSED, 5: NO_TESTS}
"""Exit code of pytest -> outcome."""


@dataclass(frozen=True)
class Result:
    """Result of one part."""

    part: str
    seconds: float
    outcome: str

    def line(self) -> str:
        """The part's row of the summary."""
        return f"{self.part:<32} {self.seconds:7.0f} s  {self.outcome}"


def pytest(part: str, python: str, options: Sequence[str], folder: Path, *, beside: bool = False) -> Result:
    """Run one part and show its progress.

    beside: another part runs at the same time, so show the output at the end, whole.
    """
    title, start = f"\n───── {part} ─────\n", time.perf_counter()
    output = folder / f"{part}.txt"
    if not beside:
        print(title, end="", flush=True)
    with output.open("wb") if beside else contextlib.nullcontext() as stdout:
        code = subprocess.run(
            [python, "-m", "pytest", "-q", f"--durations={SLOWEST}", *options],
            cwd=ROOT,
            env={**os.environ, "PYTHONPYCACHEPREFIX": str(ROOT / ".zoomgrad" / "bytecode" / part)} if beside else None,
            stdout=stdout,
            stderr=subprocess.STDOUT if beside else None,
            check=False,
        ).returncode
    if beside:
        print(title + output.read_text(encoding="utf-8", errors="replace"), end="", flush=True)
    return Result(part, time.perf_counter() - start, OUTCOMES.get(code, FAILED))


def elsewhere(guests: Sequence[Interpreter], options: Sequence[str], folder: Path) -> list[Result]:
    """Run one part on each other interpreter, in an environment made from a lock file."""
    host = folder / "host.json"
    subprocess.run([sys.executable, "-m", "tests.engines.fingerprints", str(host)], cwd=ROOT, check=True)

    def run(guest: Interpreter) -> Result:
        try:
            python = environments.environment(guest, lock="test-worker")
        except NoEnvironment as error:
            print(f"\n───── {guest.name} ─────\n{error}", flush=True)
            return Result(guest.name, 0.0, FAILED)
        # Only the host uses pytest's cache, because interpreters would overwrite one another's entries.
        command = ["-rfE", "-p", "no:cacheprovider", "-n0", f"--host={host}", *options]
        command += WORKER_SAFE if options else ["--part=elsewhere", *(share_of(guest, guests) or WORKER_SAFE)]
        return pytest(guest.name, str(python), command, folder, beside=True)

    # Two at a time, each in one process: a second process would import everything again, and warm up PyPy's compiler.
    # Those with a compiler of their own are the slowest, so they start first.
    with ThreadPoolExecutor(max_workers=PROCESSES) as pool:
        return list(pool.map(run, sorted(guests, key=lambda guest: not guest.has_jit)))


def share_of(guest: Interpreter, guests: Sequence[Interpreter]) -> tuple[str, ...]:
    """Return the tests that an interpreter runs on a push; empty for all. The oldest CPython runs all."""
    if guest.has_jit:
        return WITH_A_JIT
    cpythons = [one.minor for one in guests if one.implementation == "cpython"] + [sys.version_info[:2]]
    is_ordinary = guest.implementation == "cpython" and not guest.free_threaded
    return BETWEEN if is_ordinary and min(cpythons) < guest.minor < max(cpythons) else ()


def summary(results: Sequence[Result], total_seconds: float, found: Sequence[Interpreter]) -> None:
    """Print how long each part and all of them took, and what was not covered."""
    print("\n───── all parts ─────")
    for result in results:
        print(result.line())
    for absent in interpreters.missing(found):
        print(f"{absent:<32} not covered: {interpreters.remedy(absent)}")
    print(f"{'total':<32} {total_seconds:7.0f} s")


def get_clang() -> None:
    """Fetch a Clang if this machine has none, as `zoomgrad run` does, so that its engines are tested too."""
    environments.use_clang()
    if toolchains.has("clang") or not environments.offers_clang():
        return
    try:
        environments.fetch_clang()
    except NoEnvironment as error:
        print(f"no Clang, so tests of its engines are skipped: {error}")


def main(arguments: Sequence[str]) -> int:
    """Run all parts. Return 1 if one failed or, in CI, if a required interpreter ran nothing."""
    get_clang()
    if set(arguments) - {"--exhaustive"}:
        return subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments], cwd=ROOT, check=False).returncode
    found = interpreters.discover()
    guests = [one for one in found if one.name != HERE]
    print(f"host: {HERE}; then {', '.join(one.name for one in guests) or 'no other interpreter'}")
    start = time.perf_counter()
    together = ["--part=together", f"-n{PROCESSES}", "--dist=worksteal"]
    with tempfile.TemporaryDirectory(prefix="zoomgrad-tests-") as name:
        folder = Path(name)
        os.environ["ZOOMGRAD_TEST_OBJECTS"] = str(folder / "objects")
        results = [
            pytest(f"{HERE}, {part}", sys.executable, [*arguments, *options], folder)
            for part, options in (("together", together), ("alone", ["--part=alone"]))
        ]
        results += elsewhere(guests, arguments, folder)
    summary(results, time.perf_counter() - start, found)
    ran = [result.part for result in results if result.outcome == PASSED]
    lacking = [name for name in REQUIRED_IN_CI if not any(part.startswith(name) for part in ran)]
    if os.environ.get("CI") and lacking:
        print(f"CI must cover {', '.join(lacking)} as well: install what .ci/run installs")
    return int(any(result.outcome == FAILED for result in results) or bool(os.environ.get("CI") and lacking))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
