"""Run all programs on one engine, in one process: `python -m tests.literature.run ENGINE` prints outputs as JSON."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import engines
from harness.worker.execute import execute

HERE = Path(__file__).parent
REPLACED = {"own_value": "Value"}
"""Programs that define a class which the engine's Value replaces."""


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
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    return json.loads(ran.stdout)


def outcome(engine, program, output):
    """`same`, or how the output differs from the expected one."""
    expected = (HERE / f"{program}.txt").read_text(encoding="utf-8")
    if output == expected:
        return "same"
    if re.sub(r"(\d)\.0\b", r"\1", output) == re.sub(r"(\d)\.0\b", r"\1", expected):
        return "doubles"
    if isinstance(engine.Value(1.0).__add__(1.0)._prev, set) and parts(output) == parts(expected):
        return "unordered"
    return "differs"


def parts(text):
    return sorted(re.findall(r"\w+|\S", text))


if __name__ == "__main__":
    engine = engines.load(sys.argv[1])
    outputs = {}
    for name in programs():
        with contextlib.redirect_stdout(io.StringIO()) as captured:
            execute(engine, HERE / f"{name}.py", [], replaced=REPLACED.get(name, ""))
        outputs[name] = captured.getvalue()
    print(json.dumps(outputs))
