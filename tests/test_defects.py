"""Each seeded defect of `defects.py` is caught: its test passes without it and fails with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.defects import DEFECTS
from zoomgrad.harness.machine import environments, interpreters

ROOT = Path(__file__).parent.parent
PASSED, FAILED, CRASHED = 0, 1, -11


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the sources for seeding defects."""
    folder = tmp_path_factory.mktemp("defects") / "checkout"
    ignored = shutil.ignore_patterns(".[!z]*", ".zoomgrad", "runs", "report", "__pycache__")
    return shutil.copytree(ROOT, folder, symlinks=True, ignore=ignored)


@cache
def python(interpreter):
    """The Python that runs a defect's test. Skips the test if the interpreter is missing."""
    if not interpreter:
        return sys.executable
    found = next((one for one in interpreters.discover() if one.name.startswith(interpreter) and one.canonical), None)
    if found is None:
        pytest.skip(f"{interpreter} is not on this machine")
    return environments.environment(found, lock="test-worker")


def run(checkout, defect):
    """Exit code and output of the defect's test."""
    command = [python(defect.interpreter), "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    # Python reuses the old bytecode if the new source has the same size and was written within the same second.
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    # A shared cache would hide a defect in how objects are built, because it holds the correct object.
    environment.pop("ZOOMGRAD_TEST_OBJECTS", None)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    result = subprocess.run([*command, f"tests/{defect.test}"], cwd=checkout, env=environment, **pipes)
    return result.returncode, result.stdout[-3000:]


def test_there_are_at_least_thirty_defects_and_each_line_exists():
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS) >= 30
    for defect in DEFECTS:
        lines = (ROOT / defect.file).read_text(encoding="utf-8").count(defect.right)
        assert lines == 1, f"{defect.name}: {defect.file} must have its line once\n  Update tests/defects.py."
        file, _, test = defect.test.partition("::")
        assert test.partition("[")[0] in (ROOT / "tests" / file).read_text(encoding="utf-8"), defect.test


@pytest.mark.exhaustive
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_seeded_defect_is_caught(defect, checkout):
    file = checkout / defect.file
    text = file.read_text(encoding="utf-8")
    code, output = run(checkout, defect)
    assert code == PASSED, output
    if " passed" not in output:
        pytest.skip(f"its test does not run here: {output.splitlines()[-1]}")
    file.write_text(text.replace(defect.right, defect.wrong), encoding="utf-8")
    try:
        code, output = run(checkout, defect)
    finally:
        file.write_text(text, encoding="utf-8")
    assert code == (CRASHED if defect.crashes else FAILED), output
