"""The peers as engines: their names, which workloads they know, and how their library is imported.

The suffix `-threads` uses as many threads as there are cores.
"""

from __future__ import annotations

import importlib
import os
import sys
from array import array
from typing import Any, Optional

from zoomgrad.engines import nn
from zoomgrad.engines.api import Store, Unavailable, Workload
from zoomgrad.engines.columns import check_labels, columns
from zoomgrad.engines.graph.optimisers import SGD
from zoomgrad.engines.kernel.c_engine import CORES
from zoomgrad.engines.kernel.engine import Clock
from zoomgrad.engines.peers.peer import Model, PeerTrainer, Task
from zoomgrad.engines.suffixes import Suffixes, root

ERROR_BOUND = 1e-9
"""Each library adds up its sums in an order of its own."""

ACTIVATIONS = ("relu", "tanh")
LOSSES = ("cross_entropy", "squared_error")


class PeerEngine:
    """A library that trains whole MLPs."""

    is_peer = True
    strict = False
    error_bound = ERROR_BOUND
    native = False  # a library chooses its instructions when it runs
    typical_row_seconds = 1e-10
    typical_compile_row_seconds = 1e-9  # not 0, so that the proof includes drills
    builds_on = ""
    Value: Any = None
    nn: Any = None

    def __init__(
        self,
        name: str,
        model: str,
        *,
        packages: tuple[str, ...] = (),
        idea: str,
        environment: str = "worker",
        threads: bool = False,
    ) -> None:
        self.name = name
        self.idea = idea
        self.environment = environment
        """The lock file of its worker's packages."""
        self.threads = threads
        self._packages = packages
        self._module, _, self._class = model.partition(":")
        self._model = model

    @property
    def file(self) -> str:
        """The file that a reader should look at, relative to the project's folder."""
        return f"engines/peers/models/{self._module}.py"

    def on_all_cores(self) -> PeerEngine:
        """Return the same peer with the suffix `-threads`."""
        return PeerEngine(
            f"{self.name}-threads",
            self._model,
            packages=self._packages,
            idea=f"{self.idea}, on all cores",
            environment=self.environment,
            threads=True,
        )

    def check(self) -> None:
        self._load()

    def _load(self) -> type[Model]:
        """Import the library, and return the peer's Model. Raises Unavailable."""
        name = f"zoomgrad.engines.peers.models.{self._module}"
        if name not in sys.modules:
            os.environ.update(settings(self._threads()))
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            remedy = OTHER_INTERPRETER if self.environment == "worker" else ON_DEMAND
            raise Unavailable(f"{self._packages[0]} can't be imported: {error}", remedy) from None
        found: type[Model] = getattr(module, self._class)
        return found

    def _threads(self) -> int:
        return CORES if self.threads else 1

    def supports(self, workload: Workload) -> Optional[str]:
        network = workload.network
        if network is None:
            return "it is written for MLPs, and this model is not an MLP"
        if network.activation not in ACTIVATIONS:
            return f"it is written for {' and '.join(ACTIVATIONS)}, and this model has {network.activation}"
        if network.loss not in LOSSES:
            return f"it is written for {' and '.join(LOSSES)}, and this loss is {network.loss}"
        if workload.optimiser is not SGD:
            return f"it is written for plain descent, and this optimiser is {workload.optimiser.name}"
        if network.samples != 1:
            return f"it is written for one sample per step, and a step of this workload has {network.samples:,}"
        return None if workload.learns else "it is written for training, and this workload only runs forward"

    def prepare(self, workload: Workload, *, objects: Optional[Store] = None) -> PeerTrainer:
        refusal, network = self.supports(workload), workload.network
        if refusal or network is None:
            raise ValueError(f"{self.name} can't run {workload.name}: {refusal}\n  Call `supports` first.")
        model, clock = self._load(), Clock()
        with clock.phase("load"):
            features, targets = columns(workload.columns(), network.shape[0] + network.shape[-1])
            check_labels((targets,))
            start = array("d", nn.starting_parameters(workload))
            batch = min(workload.batch, features.rows)  # beyond it, no batch is one call
            task = Task(network, features, targets, start, batch, self._threads())
        trainer = PeerTrainer(model(task, clock), workload, task, clock)
        clock.stop()
        return trainer

    def __repr__(self) -> str:
        return f"<engine {self.name}>"


OTHER_INTERPRETER = "Install it here, or choose another interpreter with --interpreters."
ON_DEMAND = "Run it with `zoomgrad run --peers`, which makes an environment for it."


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


ENGINES = (
    PeerEngine("numpy", "with_numpy:NumpyModel", packages=("numpy",), idea="NumPy, with derivatives by hand"),
    PeerEngine(
        "torch",
        "with_torch:TorchModel",
        packages=("torch", "numpy"),
        idea="PyTorch in eager mode",
        environment="peers-torch-worker",
    ),
    PeerEngine(
        "torch-compile",
        "with_torch:CompiledTorchModel",
        packages=("torch", "numpy"),
        idea="PyTorch with torch.compile",
        environment="peers-torch-worker",
    ),
    PeerEngine(
        "jax",
        "with_jax:JaxModel",
        packages=("jax", "numpy"),
        idea="JAX, one jitted call for each batch",
        environment="peers-jax-worker",
    ),
    PeerEngine(
        "jax-scan",
        "with_jax:ScanModel",
        packages=("jax", "numpy"),
        idea="JAX, one jitted scan over all batches",
        environment="peers-jax-worker",
    ),
)

SUFFIXES = Suffixes({"threads": "threads"})


def resolve(name: str) -> Optional[PeerEngine]:
    """Return a peer with `-threads`, or None for other names. Raises WrongSuffix."""
    plain, rest = root(name, [engine.name for engine in ENGINES])
    if not rest:
        return None
    SUFFIXES.read(plain, rest)
    return next(engine for engine in ENGINES if engine.name == plain).on_all_cores()
