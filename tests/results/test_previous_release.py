"""This release reads, reports and checks the runs of an earlier one, as results/record.py promises."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from pydantic import BaseModel

from reports import build
from results import profile, record
from results.store import Store
from tests.harness.test_cli import kept_in

ARCHIVE = Path(__file__).parent / "release-0.1.0.tar.xz"
"""Parts of two runs of release 0.1.0: a dozen records each, vouchings, a profile by each profiler."""
REQUIRED = Path(__file__).parent / "release-0.1.0-required.json"
"""The fields that release 0.1.0 always wrote, by model."""


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(ARCHIVE) as archive:
        # The archive is our own. CPython 3.11.4 was the first to have filters.
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return folder / "0.1.0"


@pytest.mark.parametrize(
    ("name", "profilers", "vouched_for"),
    [
        ("smoke", {"instructions"}, set()),
        ("full", {"anatomy", "memory", "scalene", "perf", "collector", "jit", "compiler"}, {"digits"}),
    ],
)
def test_its_runs_are_read_in_full(release, name, profilers, vouched_for):
    store = Store(release / name)
    there = len(list((store.folder / "records").iterdir()))
    assert there == len(store.records()) == 12
    assert {one.profiler for one in store.profiles()} == profilers
    assert {one.workload for one in store.vouchings()} == vouched_for
    assert store.run.preset == name
    assert store.looker is not None


@pytest.mark.parametrize("name", ["smoke", "full"])
def test_every_figure_of_its_runs_is_kept(release, tmp_path, name):
    """The number is still there, even if its field was renamed or moved. Of a clock's seconds, nanoseconds are."""
    store = Store(release / name)
    kept = store.keep_as(tmp_path / "kept.jsonl.xz")
    assert kept.snapshot() == store.snapshot()
    for path in (store.folder / "records").iterdir():
        written = json.loads(path.read_text(encoding="utf-8"))
        (read,) = (
            one for one in kept.records() if one.cell.model_dump() == written["cell"] and one.block == written["block"]
        )
        assert list(read.step_seconds) == written["step_seconds"]
        assert read.phases == {phase: round(seconds, 9) for phase, seconds in written["phases"].items()}


@pytest.mark.parametrize("name", ["smoke", "full"])
def test_a_report_of_its_runs_renders(release, tmp_path, name):
    store = Store(release / name)
    build.write(store, build.tell(store, elsewhere=True), tmp_path)
    assert store.run.id in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert (tmp_path / "index.html").is_file()


@pytest.mark.parametrize("name", ["smoke", "full"])
def test_the_gate_accepts_its_runs(release, tmp_path, name):
    asked = [sys.executable, "-m", "harness", "check", release / name, "--against", release / name]
    ended = subprocess.run(asked, capture_output=True, text=True, timeout=300, **kept_in(tmp_path))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Passed against" in ended.stdout


def required():
    """The fields without a default, by model."""
    models = {
        name: model
        for module in (record, profile)
        for name, model in vars(module).items()
        if isinstance(model, type) and issubclass(model, BaseModel)
    }
    return {
        name: [field for field, info in model.model_fields.items() if info.is_required()]
        for name, model in sorted(models.items())
    }


def test_a_field_added_since_then_has_a_default():
    """No record of that release has the field. A new model may require fields, because no file contains it yet."""
    before = json.loads(REQUIRED.read_text(encoding="utf-8"))
    added = {name: set(fields) - set(before[name]) for name, fields in required().items() if name in before}
    assert {name: fields for name, fields in added.items() if fields} == {}
    assert before.keys() <= required().keys(), (
        "a model of that release is missing: if it was renamed, list it under its old name in required()"
    )
