"""Broken engine files that a user added: every command names them and continues without them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
RUNNING = f"cpython-{sys.version_info[0]}.{sys.version_info[1]}"

MISBEHAVING = """
from zoomgrad.engines.interpreted.engine import InterpretedEngine
from zoomgrad.engines.interpreted.tuple import Value


class Misbehaving(InterpretedEngine):
    def check(self):
        if self.name == "bad-check":
            raise ZeroDivisionError("check \\x1b[2J")
        if self.name == "leaving":
            raise SystemExit(3)

    def supports(self, workload):
        if self.name == "bad-supports":
            raise KeyError("supports")
        return None


def engine(name, **facts):
    return Misbehaving(name, Value, idea=f"{name}, which misbehaves", typical_row_seconds=1e-6, **facts)


ENGINES = tuple(map(engine, ("bad-check", "leaving", "bad-supports", "..", "a/b"))) + (
    engine("circle", builds_on="circle"),
    engine("lost", builds_on="nobody"),
)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Folder of a checkout with two added engine files."""
    folder = tmp_path_factory.mktemp("checkout")
    (ROOT / ".zoomgrad").mkdir(exist_ok=True)
    for part in ("datasets", "harness", "reports", "results", "requirements", ".zoomgrad"):
        (folder / part).symlink_to(ROOT / part)
    shutil.copytree(ROOT / "zoomgrad", folder / "zoomgrad", symlinks=True)
    (folder / "engines").mkdir()
    for part in (ROOT / "engines").iterdir():
        if part.name != "__pycache__":
            (folder / "engines" / part.name).symlink_to(part)
    mine = folder / "engines" / "mine"
    mine.mkdir()
    (mine / "__init__.py").touch()
    (mine / "broken.py").write_text("def broken(:\n")
    (mine / "misbehaving.py").write_text(MISBEHAVING)
    return folder


@pytest.fixture
def zoomgrad(project, tmp_path):
    environment = {
        **os.environ,
        "ZOOMGRAD_RUNS": str(tmp_path / "runs"),
        "ZOOMGRAD_LOCK": str(tmp_path / "lock"),
        "COLUMNS": "300",
        "PYTHONPATH": str(project),
    }

    def start(*arguments, command=("-m", "zoomgrad")):
        return subprocess.run(
            [sys.executable, *command, *arguments],
            env=environment,
            cwd=project,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return start


def test_list_names_them_and_continues(zoomgrad):
    result = zoomgrad("list")
    assert result.returncode == 0, result.stderr
    shown = result.stdout.partition("left out of the engines")
    assert "baseline" in shown[0]
    assert "bad-check" in shown[0]
    assert "\nlost" not in shown[0]
    assert "engines/mine/broken.py" in shown[2]
    assert "SyntaxError" in shown[2]
    assert "'..' is not an engine's name" in shown[2]
    assert "'a/b' is not an engine's name" in shown[2]
    assert "circle builds on 'circle', which is part of a cycle" in shown[2]
    assert "lost builds on 'nobody', which does not exist" in shown[2]


def test_a_run_continues_and_warns_once(zoomgrad):
    """An exception that an engine raises in a worker becomes the reason in its record."""
    options = ("--preset", "smoke", "--workloads", "xor", "--interpreters", RUNNING, "--blocks", "1")
    result = zoomgrad("run", "--engines", "bad-check,bad-supports,tuple", *options)
    assert result.returncode == 1, result.stderr
    (line,) = (line for line in result.stderr.splitlines() if "left out" in line)
    assert line.startswith("zoomgrad: left out: engines/mine/broken.py: can't be imported: SyntaxError")
    assert "Traceback" not in result.stderr
    assert "ZeroDivisionError" in result.stdout
