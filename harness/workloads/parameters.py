"""Workload <-> a file of its parameters: how the numbers are named and shaped.

Only the workload must match. A rate or a batch may differ from training to training.
"""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import Optional

from zoomgrad.engines import nn
from zoomgrad.engines.asking import one_line
from zoomgrad.engines.saving.parameters import BadFile, FilePath, load_parameters, save_parameters
from zoomgrad.harness.workloads.microgpt import Sizes
from zoomgrad.harness.workloads.models import Mlp
from zoomgrad.harness.workloads.workload import Workload


def shapes_of(workload: Workload) -> Optional[dict[str, tuple[int, ...]]]:
    """Names and shapes of an MLP's parameters: `layers.N` has a row for each neuron, its weights before its bias.

    A GPT has its matrices. None for another model, whose parameters are in one tensor.
    """
    if isinstance(workload.build, Sizes):
        return dict(workload.build.shapes())
    if not isinstance(workload.build, Mlp):
        return None
    sizes = workload.build.shape
    return {f"layers.{layer}": (nout, nin + 1) for layer, (nin, nout) in enumerate(zip(sizes, sizes[1:]))}


def save(workload: Workload, parameters: array[float], path: FilePath, *, overwrite: bool = False) -> None:
    """Write the parameters of a trained model. Raises BadFile, also for a file of somebody else."""
    settings = {"workload": workload.name}  # what a workload that starts from the file must share
    try:
        save_parameters(path, parameters, shapes=shapes_of(workload), settings=settings, overwrite=overwrite)
    except OSError as error:
        raise BadFile(path, f"can't be written: {error.strerror or error}", "Name another file with --save.") from None


def started(workload: Workload, path: FilePath) -> Workload:
    """Return the workload with the file's parameters as its start. Raises BadFile for another workload's file."""
    remedy = "Name a file that `zoomgrad train --save` wrote for the same workload."
    try:
        saved = load_parameters(path)
    except OSError as error:
        raise BadFile(path, error.strerror or str(error), remedy) from None
    if (name := saved.settings.get("workload", "")) != workload.name:
        raise BadFile(path, f"its workload is {one_line(repr(name), 60)}, not {workload.name!r}", remedy)
    wanted_count, shapes = len(workload.model(nn.bind(_Leaf)).parameters()), shapes_of(workload)
    if len(saved.parameters) != wanted_count:
        raise BadFile(path, f"it holds {len(saved.parameters):,} parameters, not {wanted_count:,}", remedy)
    if shapes and list(saved.shapes.items()) != list(shapes.items()):
        raise BadFile(path, f"its tensors are not {', '.join(shapes)} in that order", remedy)
    return replace(workload, start=saved.parameters)


class _Leaf:
    """A minimal Value, to count a model's parameters."""

    def __init__(self, data: float) -> None:
        self.data = data
