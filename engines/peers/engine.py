"""How peers run: which workloads they know, and how their library is imported."""

from __future__ import annotations

import importlib
import os
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Optional

from zoomgrad.engines import nn
from zoomgrad.engines.api import Unavailable, Workload
from zoomgrad.engines.columns import check_labels, columns
from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.options import Options
from zoomgrad.engines.peers.peer import Model, PeerTrainer, Task
from zoomgrad.engines.row import Row, mlp_refusal


@dataclass(frozen=True, eq=False, repr=False)
class Peer(Row):
    """Another library, which trains whole MLPs.

    It chooses its instructions when it runs, and adds up its sums in an order of its own.
    """

    builds_on: str = ""
    typical_row_seconds: tuple[float, float] = (1e-10, 1e-9)  # the second is never 0, so that the proof includes drills
    options: Options = field(default_factory=partial(Options, threads=1))
    takes: Sequence[str] = ("threads",)
    error_bound: Optional[float] = 1e-9
    model: str = ""
    """The module in `models` and its class, such as `with_numpy.NumpyModel`."""

    @property
    def file(self) -> str:
        return f"engines/peers/models/{self.model.split('.')[0]}.py"

    def check(self) -> None:
        self._load()

    def _load(self) -> type[Model]:
        """Import the library, and return the peer's Model. Raises Unavailable."""
        file, name = self.model.split(".")
        path = f"zoomgrad.engines.peers.models.{file}"
        if path not in sys.modules:
            os.environ.update(settings(self.options.threads))
        try:
            module = importlib.import_module(path)
        except ImportError as error:
            remedy = "`zoomgrad run` makes an environment for it."
            if self.environment == "worker":
                remedy = "Install it here, or choose another interpreter with --interpreters."
            raise Unavailable(f"its library can't be imported: {error}", remedy) from None
        model: type[Model] = getattr(module, name)
        return model

    def supports(self, workload: Workload) -> Optional[str]:
        refusal = mlp_refusal(workload, ("relu", "tanh"))
        if refusal or workload.learns:
            return refusal
        return "it is written for training, and this workload only runs forward"

    def _prepare(self, workload: Workload) -> PeerTrainer:
        network = workload.network
        assert network is not None  # `supports` has checked it
        model, clock = self._load(), Clock()
        with clock.phase("load"):
            features, targets = columns(workload.columns(), network.shape[0] + network.shape[-1])
            check_labels((targets,))
            start = array("d", nn.starting_parameters(workload))
            batch = min(workload.batch, features.rows)  # beyond it, no batch is one call
            task = Task(network, features, targets, start, batch, self.options.threads)
        trainer = PeerTrainer(model(task, clock), workload, task, clock)
        clock.stop()
        return trainer


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
