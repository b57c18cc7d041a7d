"""Workloads: their rows, the training contract, and that they can be learnt."""

import random
import re
from array import array
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.engines.ladder import FAST_TO_COMPILE, available, promised, runnable, willing
from zoomgrad import engines
from zoomgrad.engines.api import NonFiniteLoss, UnknownName
from zoomgrad.engines.peers.engine import Peer
from zoomgrad.harness import workloads

ROOT = Path(__file__).parents[3]
KINDS = (
    *("slots", "local-grads", "replay", "native", "bytecode", "python-source", "tcc", "tcc-extension"),
    *("rerolled-numpy", "rerolled-tcc", "handwritten", "numpy", "jax"),
)
"""One engine of each kind. Tests of engines compare the bits of all others."""
ENGINES = [engine for engine in runnable() if engine.values[0] in KINDS]
FAST = [engine for engine in runnable(most_compile_row_seconds=FAST_TO_COMPILE) if engine.values[0] in KINDS]
SHAPES = [name for name in workloads.names() if workloads.load(name).network is None]


def prepare(engine, workload):
    return willing(engine, workload).prepare(workload)


@pytest.mark.parametrize("name", [*workloads.names(), "mlp-3x2x1"])
def test_a_row_has_the_features_and_targets_of_its_samples(name):
    workload = available(name)
    data = workload.data()
    assert workload.train_rows == data.train_rows
    row = workload.row(0)
    samples = list(workload.samples(row))
    assert len(samples) == workload.samples_per_step
    sizes = {(len(features), len(targets)) for features, targets in samples}
    assert sizes == {(data.width, data.classes or data.target_width)}
    if workload.network:
        assert sizes == {(workload.network.shape[0], workload.network.shape[-1])}
    assert workload.samples_per_step * workload.steps_per_epoch == workload.train_rows
    assert workload.row(workload.steps_per_epoch) == row, "rows do not wrap around"


def test_unknown_names_and_shapes_are_refused():
    with pytest.raises(UnknownName, match="there is no workload 'mnits'\n  Did you mean mnist"):
        workloads.load("mnits")
    for shape in ("mlp", "mlp-3", "mlp-0x1", "mlp-3x", "mlp-3x2x0", "mlp-3x2-b", "mlp-3x2-b0", "mlp-3x2-b1"):
        with pytest.raises(UnknownName):
            workloads.load(shape)
    assert workloads.load("mlp-784x50x10").network.shape == (784, 50, 10)
    in_batches = workloads.load("mlp-784x50x10-b20")
    assert (in_batches.batch, in_batches.network) == (20, workloads.load("mlp-784x50x10").network)


@cache
def ten_steps(name, engine):
    trainer = prepare(engine, workloads.load(name))
    trainer.train(10)
    return trainer.losses, trainer.parameters(), trainer.gradients()


@pytest.mark.host
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("engine", ["replay", "bytecode", "tcc", "rerolled-numpy", "rerolled-tcc"])
def test_graphs_of_other_shapes_give_the_reference_bits(name, engine):
    assert ten_steps(name, engine) == ten_steps(name, "tuple")


@pytest.mark.parametrize(
    ("name", "parameters", "rows", "loss"),
    [
        ("recurrent", 353, 13_080, 0.4279062340557182),
        ("conv-1d", 393, 10_160, 0.45034697938911383),
        ("conv-2d", 2_970, 14_409, 2.640171072001672),
        ("attention", 281, 6_368, 0.056660410062566995),
        ("polynomial", 45, 14_046, 45.189604400694755),
        ("random-dag", 61, 2_893, 0.4605599661636266),
        ("shuffled", 3_760, 11_417, 8.842931663200087),
    ],
)
def test_a_shape_stays_the_same_model(name, parameters, rows, loss):
    """Times of two runs can be compared only if the graph is the same. The loss is that of the third step."""
    trainer = engines.load("bytecode").prepare(workloads.load(name))
    assert (len(trainer.parameters()), trainer.sizes["tape_rows"]) == (parameters, rows)
    trainer.train(3)
    assert trainer.losses[2] == pytest.approx(loss, rel=1e-9)


@cache
def trained_by_hand(name):
    """Return (steps, losses, parameters) of the training contract, written out again without the trainers."""
    workload = workloads.load(name)
    Value, nn = engines.load("tuple").Value, engines.load("tuple").nn
    width, *layers = workload.network.shape
    model = nn.MLP(width, layers, rng=random.Random(1337))
    losses, steps = [], 2 * workload.batch
    for step in range(steps):
        inputs = [Value(x) for x in workload.row(step)]
        outputs, targets = [], []
        for start in range(0, len(inputs), width + 1):
            outputs.append(model(inputs[start : start + width]))
            targets.append(inputs[start + width])
        if name == "xor":
            loss = sum((o - t) ** 2 for o, t in zip(outputs, targets))
        else:
            margins = [(1 + -y * s).relu() for s, y in zip(outputs, targets)]
            loss = sum(margins) * (1.0 / len(margins)) + 1e-4 * sum(p * p for p in model.parameters())
        loss.backward()
        losses.append(loss.data)
        if (step + 1) % workload.batch == 0:
            rate = 0.1 if name == "xor" else 1.0 - 0.9 * (step // workload.batch) / 100
            for p in model.parameters():
                p.data -= rate * p.grad / workload.batch
                p.grad = 0.0
    return steps, array("d", losses), array("d", [p.data for p in model.parameters()])


@pytest.mark.parametrize(
    ("engine", "name"),
    [
        *(pytest.param(*engine.values, "xor", marks=engine.marks) for engine in ENGINES),
        *(pytest.param(*engine.values, "moons", marks=(*engine.marks, pytest.mark.host)) for engine in FAST),
    ],
)
def test_training_equals_the_loop_written_by_hand(engine, name):
    steps, losses, parameters = trained_by_hand(name)
    trainer = prepare(engine, workloads.load(name))
    trainer.train(steps)
    assert trainer.losses == promised(engine, losses)
    assert trainer.parameters() == promised(engine, parameters)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_partial_batch_persists_across_calls(engine):
    workload = workloads.load("xor")
    whole, parts = (prepare(engine, workload) for _ in range(2))
    whole.train(8)
    parts.train(3)
    assert any(parts.gradients())
    parts.train(0)
    parts.train(5)
    assert not any(parts.gradients()), "the update did not return the gradients to zero"
    assert list(parts.parameters()) == pytest.approx(list(whole.parameters()), rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_restart_restores_the_starting_parameters(engine):
    trainer = prepare(engine, workloads.load("tour"))
    start = trainer.parameters()
    trainer.train(3)
    losses = trainer.losses
    trainer.restart(batch=1)
    assert trainer.parameters() == start
    trainer.train(3)
    assert list(trainer.losses) == pytest.approx(list(losses), rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_restart_takes_as_many_rows_as_there_are(engine):
    trainer = prepare(engine, workloads.load("xor"))
    trainer.restart(batch=1, rows=4)
    for rows in (0, 5, 11):
        with pytest.raises(ValueError, match=f"rows must be a whole number from 1 to 4, not {rows}"):
            trainer.restart(batch=1, rows=rows)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_non_finite_loss_is_reported_and_not_applied(engine):
    """The rate is far too high: the error names the step, and its update is not applied, except by a peer."""
    trainer = prepare(engine, replace(workloads.load("xor"), rate=lambda update: 1e200))
    with pytest.raises(NonFiniteLoss) as error:
        trainer.train(100)
    assert error.value.step == len(trainer.losses)
    assert all(abs(loss) < float("inf") for loss in trainer.losses)
    assert "is not a finite number" in str(error.value)
    other = prepare(engine, replace(workloads.load("xor"), rate=lambda update: 1e200))
    other.train(error.value.step)
    assert trainer.parameters() == other.parameters() or isinstance(engines.load(engine), Peer)


@cache
def prediction_of_reference(name):
    workload = workloads.load(name)
    return engines.load("tuple").prepare(workload).predict(workload.row(5))


@pytest.mark.parametrize(
    ("engine", "name"),
    [
        *(pytest.param(*engine.values, "mlp-3x4x10", marks=engine.marks) for engine in ENGINES),
        *(pytest.param(*engine.values, "digits", marks=engine.marks) for engine in FAST),
    ],
)
def test_predict_gives_the_outputs_and_changes_nothing(engine, name):
    workload = workloads.load(name)
    trainer = prepare(engine, workload)
    parameters = trainer.parameters()
    outputs = trainer.predict(workload.row(5))
    assert len(outputs) == 10
    assert outputs == promised(engine, prediction_of_reference(name))
    assert trainer.parameters() == parameters


@pytest.mark.host
def test_the_training_of_the_docs_reaches_the_published_accuracy(capsys):
    """0.90 of the held-out digits after 8 epochs."""
    willing("tcc", workloads.load("digits"))
    page = (ROOT / "docs" / "using.md").read_text(encoding="utf-8")
    exec(re.search(r"```python\n(from zoomgrad import engines\n.*?)```", page, re.DOTALL)[1], {})
    *losses, accuracy = map(float, capsys.readouterr().out.split())
    assert len(losses) == 8
    assert losses[-1] < losses[0] / 10
    assert abs(accuracy - 0.90) < 0.01
