"""Engines and workloads of a user's files and packages reach the workers, and broken ones are left out and named."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.harness.test_cli import RUNNING, kept_in
from tests.own import ENGINE, WORKLOADS
from zoomgrad.harness.machine.project import importable
from zoomgrad.results.store import Store, latest

MISBEHAVING = """
from zoomgrad.engines.interpreted.engine import Interpreted
from zoomgrad.engines.interpreted.tuple import Value


class Misbehaving(Interpreted):
    def check(self):
        if self.name == "bad-check":
            raise ZeroDivisionError("check \\x1b[2J")
        if self.name == "leaving":
            raise SystemExit(3)

    def supports(self, workload):
        if self.name == "bad-supports":
            raise KeyError("supports")
        return None


def engine(name, builds_on=""):
    return Misbehaving(name, f"{name}, which misbehaves", builds_on, (1e-6, 0.0), build=lambda: Value)


ENGINES = tuple(map(engine, ("bad-check", "leaving", "bad-supports", "..", "a/b"))) + (
    engine("circle", "circle"),
    engine("lost", "nobody"),
)
"""
FILES = {
    "engine.py": ENGINE,
    "workload.py": WORKLOADS,
    "broken.py": "def broken(:\n",
    "empty.py": "",
    "leaving.py": "raise SystemExit(3)",
    "wrong.py": "WORKLOADS = 1",
    "misbehaving.py": MISBEHAVING,
    # A package with the name of one of ours.
    "site/results/__init__.py": "from results.helper import NAME",
    "site/results/helper.py": "NAME = 'packaged'",
    "site/results/engines.py": ENGINE.replace('"walk"', "NAME").replace("\nfrom", "\nfrom . import NAME\nfrom", 1),
    "site/broken_package/__init__.py": "import no_such_module",
    "site/broken_package/engines.py": ENGINE,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outside")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def zoomgrad(folder, tmp_path):
    """Run the command of this checkout, also in an environment that has another one installed."""
    options = {**kept_in(tmp_path), "cwd": folder}
    options["env"] |= {"PYTHONPATH": str(importable()), "COLUMNS": "300"}
    return lambda *arguments: subprocess.run(
        [sys.executable, "-m", "zoomgrad", *map(str, arguments)], **options, capture_output=True, text=True, timeout=300
    )


def options(names, option="--engine-file"):
    return [word for name in names for word in (option, name)]


def test_list_names_what_it_leaves_out_and_continues(zoomgrad):
    engine_files = options(["engine.py", "misbehaving.py", "broken.py", "empty.py", "leaving.py"])
    result = zoomgrad("list", *engine_files, *options(["workload.py", "wrong.py"], "--workload-file"))
    assert result.returncode == 0, result.stderr
    shown = result.stdout.partition("left out")
    for name in ("baseline", "walk", "bad-check", "slower-xor"):
        assert f"\n{name} " in shown[0]
    for reason in (
        "SyntaxError",
        "empty.py: defines no ENGINES",
        "SystemExit: 3",
        "wrong.py: 1 is not a workload",
        "'..' is not an engine's name",
        "'a/b' is not an engine's name",
        "circle builds on 'circle', and no engine before it has that name",
        "lost builds on 'nobody', and no engine before it has that name",
    ):
        assert all(part in shown[2] for part in reason.split(": ")), reason


def test_workers_use_the_files_and_a_run_resumes_only_with_them(zoomgrad, folder, tmp_path):
    """An exception that an engine raises in a worker becomes the reason in its record."""
    files = options(["engine.py", "misbehaving.py", "broken.py"]) + options(["workload.py"], "--workload-file")
    chosen = ("--engines", "walk,bad-check,bad-supports", "--workloads", "slower-xor", "--interpreters", RUNNING)
    result = zoomgrad("run", *files, "--preset", "smoke", *chosen, "--blocks", 1)
    assert result.returncode == 1, result.stderr
    (line,) = (line for line in result.stderr.splitlines() if "left out" in line)
    assert f"{folder / 'broken.py'}: can't be imported: SyntaxError" in line
    assert "Traceback" not in result.stderr
    assert "ZeroDivisionError" in result.stdout
    store = latest(tmp_path / "runs")
    assert {record.cell.engine: record.status for record in store.records()}["walk"] == "measured"
    assert not list(folder.glob("__pycache__"))
    (folder / "engine.py").write_text(f"{ENGINE}# edited")
    edited = zoomgrad("run", "--resume", store.run.id, *files)
    assert edited.returncode == 2
    assert "the code has changed since" in edited.stderr
    (folder / "engine.py").write_text(ENGINE)
    assert zoomgrad("run", "--resume", store.run.id, *files).returncode == 1


def test_a_file_of_a_package_imports_the_others(zoomgrad, tmp_path):
    files = options(["site/results/engines.py", "site/broken_package/engines.py"])
    result = zoomgrad("list", *files)
    assert "\npackaged " in result.stdout, result.stderr
    assert "No module named 'no_such_module'" in result.stdout
    chosen = ("--engines", "packaged", "--workloads", "xor", "--interpreters", RUNNING, "--blocks", 1)
    assert zoomgrad("run", *files, "--preset", "smoke", *chosen).returncode == 0
    assert [record.status for record in Store(latest(tmp_path / "runs").folder).records()] == ["measured"]
