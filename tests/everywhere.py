"""The worker-safe tests, on every interpreter of this machine, each in its own environment.

The oldest and newest CPython and every PyPy run all of them; those between leave out what gcc and Clang compile: the
objects would be the same, and TCC's go the same way.

`python tests/everywhere.py` prints which interpreters it covered. In CI (`CI` is set) it fails unless a CPython 3.9, a
CPython 3.13 and a PyPy were among them, so that an interpreter that went missing can't make a green run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from harness import interpreters  # noqa: E402  (the checkout's own, whatever is installed)

WORKER_SAFE = ("tests/engines", "tests/datasets", "tests/harness/worker")
BETWEEN = ("-k", "not gcc and not clang")
REQUIRED_IN_CI = (r"cpython-3\.9", r"cpython-3\.13", r"pypy-.*")


def run(interpreter: interpreters.Interpreter, *, whole: bool) -> tuple[bool, str]:
    """Whether the tests pass under it, and pytest's closing line."""
    try:
        python = interpreters.environment(interpreter, lock="test-worker")
    except interpreters.NoEnvironment as error:
        return False, str(error)
    # Bytecode and pytest's cache stay out of the checkout: interpreters would overwrite one another's.
    command = [str(python), "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *WORKER_SAFE]
    command += [*(() if whole else BETWEEN), *sys.argv[1:]]  # a later -k takes the place of an earlier one
    result = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines = [line for line in result.stdout.splitlines() if line.strip()]
    if result.returncode not in (0, 5):
        print(result.stdout)
    # 5: the options that were passed on chose none of these tests.
    return result.returncode in (0, 5), lines[-1] if lines else f"exit code {result.returncode}"


def main() -> int:
    found, others = [], []
    for interpreter in interpreters.discover():
        (found if interpreter.canonical or interpreter.free_threaded else others).append(interpreter)
    results = {}
    between = [one for one in found if one.implementation == "cpython" and one.canonical][1:-1]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = pool.map(lambda one: run(one, whole=one not in between), found)
        for interpreter, (passed, line) in zip(found, outcomes, strict=True):
            results[interpreter.name] = passed
            print(f"{interpreter.name:<14} {'passed' if passed else 'FAILED'}  {line}", flush=True)
    for absent in interpreters.missing(found):
        print(f"{absent.name:<14} not covered: {absent.reason}; {absent.remedy}")
    covered = [name for name, passed in results.items() if passed]
    for other in others:
        print(f"{other.name:<14} not covered: another patch of its minor version was")
    print(f"\nworker-safe code was tested on: {', '.join(covered) or 'nothing'}")
    lacking = [name for name in REQUIRED_IN_CI if not any(re.fullmatch(name, found.name) for found in found)]
    if os.environ.get("CI") and lacking:
        print(f"CI must cover {', '.join(lacking)} as well: install what .ci/run installs")
        return 1
    return 0 if found and len(covered) == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
