"""Run all programs on one engine: `python -m tests.literature.run ENGINE` prints their outputs as JSON."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from zoomgrad import engines
from zoomgrad.engines.api import Unavailable
from zoomgrad.harness.worker.programs.execute import execute

HERE = Path(__file__).parent
REFUSED = "refused"
"""Output of a program that an engine refuses to run."""


def programs():
    return sorted(path.stem for path in HERE.glob("*.txt"))


def printed(engine):
    """Program -> what it prints on that engine."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.literature.run", engine],
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        timeout=300,
    )
    lines = [line for line in ran.stderr.splitlines() if "Value runs in C" not in line]
    assert (ran.returncode, lines) == (0, []), ran.stderr
    return json.loads(ran.stdout)


def outcome(engine, program, output):
    """`same`, or how the output differs from the expected one. `refused` only if the engine may refuse the program."""
    if output == REFUSED and not engine.extensible:
        return "refused"
    expected = (HERE / f"{program}.txt").read_text(encoding="utf-8")
    if output == expected:
        return "same"
    value = engine.Value(1)
    if value.data.__class__ is float and as_ints(output) == as_ints(expected):
        return "doubles"
    if isinstance((value + 1)._prev, set) and parts(output) == parts(expected):
        return "unordered"
    return "differs"


def as_ints(text):
    return re.sub(r"(\d)\.0\b", r"\1", text)


def parts(text):
    """Lines in any order, and the words of each."""
    return sorted(sorted(re.findall(r"\w+|\S", line)) for line in text.splitlines())


def run(engine, program):
    """Run one program in a copy of this process, because a process can run only one. Returns its output."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        child = os.fork()
        if not child:
            with contextlib.redirect_stdout(file):
                try:
                    execute(HERE / f"{program}.py", [], engine=engine)
                except Unavailable:
                    print(REFUSED, end="")
            file.flush()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, program
        file.seek(0)
        return file.read()


if __name__ == "__main__":
    chosen = engines.load(sys.argv[1])
    print(json.dumps({program: run(chosen, program) for program in programs()}))
