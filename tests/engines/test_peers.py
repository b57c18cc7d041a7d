"""Peers train what the engines train, within the bound that they state."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.engines.compiled.compiling import usable
from zoomgrad import engines
from zoomgrad.engines.graph.optimisers import ADAM
from zoomgrad.engines.peers import engine as peers
from zoomgrad.harness import workloads
from zoomgrad.harness.worker.evidence import compare, left_by
from zoomgrad.harness.workloads.models import Mlp

pytestmark = pytest.mark.host

PEERS = [name for name in engines.names() if engines.load(name).is_peer]


@pytest.mark.parametrize("name", [*PEERS, *(f"{name}+threads" for name in PEERS if engines.load(name).takes)])
def test_a_training_in_any_pieces_stays_within_the_bound(name):
    """Pieces begin and end anywhere: within a batch, at the end of the rows, or after many batches."""
    rng = random.Random(name)
    for workload in (
        workloads.load("xor"),
        workloads.load("mlp-5x7x6x3-b4"),
        workloads.load("mlp-3x2-b1200"),
        replace(workloads.load("mlp-6x3x2"), build=Mlp((6, 3, 2), "tanh")),
        workloads.load("digits"),
    ):
        peer, reference = usable(name).prepare(workload), engines.load("bytecode").prepare(workload)
        for _ in range(2):
            batch, rows = rng.choice([1, 2, workload.batch, 5]), rng.choice([None, 3, 4])
            pieces = [rng.randrange(12) for _ in range(4)]
            for trainer in (peer, reference):
                trainer.restart(batch=batch, rows=rows)
                for steps in pieces:
                    trainer.train(steps)
            worst, first = compare(left_by(peer), left_by(reference))
            assert worst <= engines.load(name).error_bound, (workload.name, batch, rows, pieces, first)
        row = workload.row(0)
        assert list(peer.predict(row)) == pytest.approx(list(reference.predict(row)), rel=1e-3, abs=1e-4)


def test_what_a_peer_is_not_written_for_is_refused_with_the_reason():
    for name, reason in {"tour": "5", "moons": "hinge", "recurrent": "MLP", "digits-forward": "forward"}.items():
        assert reason in engines.load("numpy").supports(workloads.load(name)), name
    assert "adam" in engines.load("numpy").supports(replace(workloads.load("digits"), optimiser=ADAM))
    with pytest.raises(ValueError, match="Call `supports` first"):
        engines.load("numpy").prepare(workloads.load("moons"))


def test_one_thread_and_no_caches_are_set_before_a_library_is_imported():
    one, all_cores = peers.settings(1), peers.settings(7)
    assert {one[name] for name in (*peers.THREADS, "NPROC")} == {"1"}
    assert "multi_thread_eigen=false" in one["XLA_FLAGS"]
    assert all_cores["OMP_NUM_THREADS"] == "7"
    assert one["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] == "1"
