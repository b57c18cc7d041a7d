"""`torch` and `torch-compile`: a Sequential of Linear layers, backward() and an optimizer, as in its tutorials."""

from __future__ import annotations

import os
import tempfile
from array import array
from typing import Any

import torch
import torch._dynamo  # otherwise the first optimizer imports it, in seconds

from zoomgrad.engines.compiled.clock import Clock
from zoomgrad.engines.peers.models.layout import LayeredModel, flat, layers, rows_of
from zoomgrad.engines.peers.peer import Task

# The compiler's files from an earlier run are not used, and those of this one end with the process.
_FOLDER = tempfile.TemporaryDirectory(prefix="zoomgrad-")
os.environ["TORCHINDUCTOR_CACHE_DIR"] = _FOLDER.name

ACTIVATIONS = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh}


class TorchModel(LayeredModel):
    """An MLP in eager mode."""

    def __init__(self, task: Task, clock: Clock) -> None:
        with clock.phase("load"):
            torch.set_num_threads(task.threads)
            self.task = task
            self.x, self.y = (torch.from_numpy(rows_of(column).copy()) for column in (task.features, task.targets))
            # Plain attributes, because torch.compile does not see through those of a column.
            self.divides, self.divisor = self.x.dtype == torch.uint8, task.features.divisor
            shape, parts = task.network.shape, list[torch.nn.Module]()
            for nin, nout in zip(shape, shape[1:]):
                parts += [torch.nn.Linear(nin, nout, dtype=torch.float64), ACTIVATIONS[task.network.activation]()]
            self.model = torch.nn.Sequential(*(parts[:-1] if task.network.last_linear else parts))
            self.linear = [part for part in parts if isinstance(part, torch.nn.Linear)]
            self.layers = [(part.weight.detach().numpy().T, part.bias.detach().numpy()) for part in self.linear]
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.0, fused=True)
            self.restart(task.start)
        self.of_whole_batch = self.losses

    def restart(self, parameters: Any) -> None:
        for (w, b), (weights, biases) in zip(self.layers, layers(self.task.network.shape, parameters)):
            w[:], b[:] = weights, biases
        self.optimizer.zero_grad()

    def losses(self, x: Any, y: Any) -> Any:
        """Loss of each row."""
        x = x.to(torch.float64)
        if self.divides:
            x = x.div_(self.divisor)
        outputs = self.model(x)
        if self.task.network.loss == "squared_error":
            return (outputs - y.to(torch.float64)).square().sum(dim=1)
        of_label = torch.softmax(outputs, dim=1).gather(1, y.long().unsqueeze(1)).squeeze(1)
        return -torch.log(of_label + 0.0001)

    def backward(self, first: int, rows: int) -> Any:
        """Fill the gradients of these rows, and return the loss of each."""
        losses_of = self.of_whole_batch if rows == self.task.batch else self.losses
        losses = losses_of(self.x[first : first + rows], self.y[first : first + rows])
        losses.sum().backward()
        return losses.detach()

    def whole_batch(self, first: int, batch: int, rate: float) -> Any:
        losses = self.backward(first, batch)
        for group in self.optimizer.param_groups:
            group["lr"] = rate / batch
        self.optimizer.step()
        self.optimizer.zero_grad()
        return losses

    def gradient(self, first: int, rows: int) -> tuple[Any, Any]:
        losses = self.backward(first, rows)
        gradient = flat((part.weight.grad.numpy().T, part.bias.grad.numpy()) for part in self.linear)
        self.optimizer.zero_grad()
        return losses, gradient

    def predict(self, features: array[float]) -> Any:
        with torch.no_grad():
            return self.model(torch.tensor([list(features)], dtype=torch.float64))[0].tolist()


class CompiledTorchModel(TorchModel):
    """The same with `torch.compile` around model and loss, for whole batches."""

    def __init__(self, task: Task, clock: Clock) -> None:
        super().__init__(task, clock)
        with clock.phase("compile"):
            torch.compiler.reset()  # forgets the models that this process compiled before
            self.of_whole_batch = torch.compile(self.losses, fullgraph=True)
            self.whole_batch(0, task.batch, 0.0)
            self.restart(task.start)
