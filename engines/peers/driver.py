"""How peers run: which workloads they know, and how their library is imported."""

from __future__ import annotations

import importlib
import os
import sys
from array import array
from dataclasses import dataclass
from typing import Optional

from zoomgrad.engines import nn
from zoomgrad.engines.api import Unavailable, Workload
from zoomgrad.engines.columns import check_labels, columns
from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.peers.peer import Model, PeerTrainer, Task
from zoomgrad.engines.row import Driver, Row, mlp_refusal

ACTIVATIONS = ("relu", "tanh")


@dataclass(frozen=True)
class Peer(Driver):
    """The driver of a library that trains whole MLPs."""

    module: str
    """In `models`."""
    model: str
    """The class there."""

    def check(self, row: Row) -> None:
        self._load(row)

    def _load(self, row: Row) -> type[Model]:
        """Import the library, and return the peer's Model. Raises Unavailable."""
        name = f"zoomgrad.engines.peers.models.{self.module}"
        if name not in sys.modules:
            os.environ.update(settings(_threads(row)))
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            remedy = OTHER_INTERPRETER if row.environment == "worker" else ON_DEMAND
            raise Unavailable(f"its library can't be imported: {error}", remedy) from None
        model: type[Model] = getattr(module, self.model)
        return model

    def supports(self, row: Row, workload: Workload) -> Optional[str]:
        refusal = mlp_refusal(workload, ACTIVATIONS)
        if refusal or workload.learns:
            return refusal
        return "it is written for training, and this workload only runs forward"

    def prepare(self, row: Row, workload: Workload) -> PeerTrainer:
        network = workload.network
        assert network is not None  # `supports` has checked it
        model, clock = self._load(row), Clock()
        with clock.phase("load"):
            features, targets = columns(workload.columns(), network.shape[0] + network.shape[-1])
            check_labels((targets,))
            start = array("d", nn.starting_parameters(workload))
            batch = min(workload.batch, features.rows)  # beyond it, no batch is one call
            task = Task(network, features, targets, start, batch, _threads(row))
        trainer = PeerTrainer(model(task, clock), workload, task, clock)
        clock.stop()
        return trainer


OTHER_INTERPRETER = "Install it here, or choose another interpreter with --interpreters."
ON_DEMAND = "`zoomgrad run` makes an environment for it."


def _threads(row: Row) -> int:
    return max(1, row.options.threads)


# XLA hands work to a pool of NPROC threads, even if each of Eigen's products takes one thread. The fourth is macOS's.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NPROC")


def settings(threads: int) -> dict[str, str]:
    """Environment variables that libraries read when they are imported: threads, no GPU, no cache from earlier runs."""
    return {
        **dict.fromkeys(THREADS, str(threads)),
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={str(threads > 1).lower()}",
        "JAX_PLATFORMS": "cpu",
        "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
    }
