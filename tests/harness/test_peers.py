"""Environments of peers, without which their cells are skipped."""

from tests.harness.test_schedule import CELLS, Observer, cell, plan, python_of
from tests.harness.workers import Workers
from zoomgrad.harness.machine import environments
from zoomgrad.harness.machine.environments import NoEnvironment
from zoomgrad.harness.run.schedule import Schedule
from zoomgrad.results.store import Store

LOCK = "peers-jax-worker"


def test_a_peer_without_its_environment_is_skipped_and_the_others_run(tmp_path):
    def environment(interpreter, *, lock=""):
        if lock == LOCK:
            raise NoEnvironment("no wheel for this interpreter")
        return python_of(interpreter)

    the_plan = plan(cells=(*CELLS[:1], cell("jax"), cell("numpy")), blocks=2)
    store, workers = Store.create(the_plan.run, under=tmp_path / "runs"), Workers(tmp_path)
    Schedule(the_plan, store, workers, environment, Observer()).execute()
    statuses = {record.cell.engine: record.status for record in store.records()}
    assert statuses == {"baseline": "measured", "jax": "skipped", "numpy": "measured"}


def test_locks_of_peers_pin_versions_over_the_workers_and_name_no_cuda():
    for lock in environments.REQUIREMENTS.glob("peers-*.lock"):
        comment, base, *pins = lock.read_text().splitlines()
        assert comment.startswith("# worker.lock ")
        assert base == "-r worker.lock"
        assert pins
        assert all("==" in pin and not pin.startswith(("nvidia", "cuda")) for pin in pins)
