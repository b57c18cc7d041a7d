"""Environments of peers: made on demand; otherwise cells are skipped."""

from pathlib import Path

import pytest

from tests.harness.test_schedule import CELLS, Observer, cell, interpreter, plan, python_of
from tests.harness.workers import Workers
from zoomgrad.harness.machine import environments
from zoomgrad.harness.machine.environments import NotMade
from zoomgrad.harness.run.schedule import Schedule
from zoomgrad.results.store import Store

HERE, LOCK = interpreter("cpython-3.13"), "peers-jax-worker"


@pytest.fixture
def uv(monkeypatch, tmp_path):
    """Replaces uv: makes folders, and lists its commands."""

    class Uv:
        def __init__(self):
            self.commands = []

        def __call__(self, *arguments):
            self.commands.append(arguments[:2])
            if arguments[0] == "venv":
                Path(arguments[-1]).mkdir(parents=True)

    found = Uv()
    monkeypatch.setattr(environments, "_uv", found)
    monkeypatch.setattr(environments, "ENVIRONMENTS", tmp_path / "environments")
    return found


def test_a_peer_without_its_environment_is_skipped_and_the_others_run(uv, tmp_path):
    the_plan = plan(cells=(*CELLS[:1], cell("jax"), cell("numpy")), blocks=2)
    store, workers = Store.create(the_plan.run, under=tmp_path / "runs"), Workers(tmp_path)
    Schedule(the_plan, store, workers, python_of, Observer()).execute()
    found = {record.cell.engine: record for record in store.records()}
    assert {name: record.status for name, record in found.items()} == {
        "baseline": "measured",
        "jax": "skipped",
        "numpy": "measured",
    }
    assert "--peers" in found["jax"].remedy
    assert not uv.commands
    with pytest.raises(NotMade):
        environments.made(HERE, LOCK)
    python = environments.environment(HERE, lock=LOCK)
    assert [what for what, _ in uv.commands] == ["venv", "pip"]
    assert environments.made(HERE, LOCK) == python


def test_locks_of_peers_pin_versions_over_the_workers_and_name_no_cuda():
    for lock in environments.REQUIREMENTS.glob("peers-*.lock"):
        comment, base, *pins = lock.read_text().splitlines()
        assert comment.startswith("# worker.lock ")
        assert base == "-r worker.lock"
        assert pins
        assert all("==" in pin and not pin.startswith(("nvidia", "cuda")) for pin in pins)
