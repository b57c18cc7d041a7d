"""Trainings that continue from a file: the same bits as one training, and refusals of files that don't fit."""

import pytest

from zoomgrad import engines
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.saving.parameters import BadFile, load_parameters, save_parameters
from zoomgrad.harness import workloads
from zoomgrad.harness.worker.train import task, train
from zoomgrad.harness.workloads import parameters

ENGINES = ("slots", "replay", "bytecode", "tcc", "rerolled-numpy", "handwritten")


@pytest.fixture
def file(tmp_path):
    return str(tmp_path / "model.safetensors")


def trained(engine, epochs, **settings):
    try:
        engines.load(engine).check()
    except Unavailable as missing:
        pytest.skip(missing.reason)
    settings = {"workload": "xor", "rate": 0.1, "batch": 4, **settings}
    return [event["event"] for event in train({"engine": engine, "epochs": epochs, **settings})]


@pytest.mark.parametrize("epochs", [1, 2, 64, 65, 66, 67])
def test_a_tour_saves_the_parameters_whose_figure_it_reports(file, epochs):
    """It stops before the update. Whether the last epoch was also evaluated for the live display must not matter."""

    def end(**settings):
        events = list(train({"engine": "replay", "workload": "tour", "tolerance": 1e-9, **settings}))
        return next(event for event in events if event["event"] == "end")

    reported = end(epochs=epochs, save=file)
    assert end(epochs=1, load=file)["figure"] == reported["figure"]
    workload = task({"workload": "tour", "load": file})
    assert reported["accuracy"] == workload.accuracy(engines.load("replay").prepare(workload).predict)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_trainings_compute_the_bits_of_one(engine, file, tmp_path):
    whole = str(tmp_path / "whole")
    trained(engine, 3, save=whole)
    assert trained("slots", 1, save=file)[-1] == "saved"
    assert trained(engine, 2, load=file, save=file)[-1] == "saved"
    assert load_parameters(file) == load_parameters(whole)


def test_a_file_names_the_model_and_shapes_its_layers(file):
    trained("slots", 1, save=file)
    saved = load_parameters(file)
    assert saved.shapes == {"layers.0": (4, 3), "layers.1": (1, 5)}
    assert saved.settings == {"workload": "xor"}
    model = workloads.load("xor").model(engines.load("slots").nn)
    assert model.parameters()[:3] == [*model.layers[0].neurons[0].w, model.layers[0].neurons[0].b]


def test_a_file_of_another_model_is_refused(file):
    trained("slots", 1, save=file)
    with pytest.raises(BadFile, match=r"its workload is 'xor', not 'moons'\n  Name a file"):
        task({"engine": "slots", "workload": "moons", "load": file})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "its workload is '', not 'xor'\n"),
        ({"workload": "\n" * 1000}, r"its workload is '(\\n){29}\\…, not"),
        ({"workload": "xor"}, "it holds 1 parameters, not 17\n"),
    ],
)
def test_a_file_that_claims_too_much_is_refused(settings, message, file):
    save_parameters(file, [1.0], settings=settings)
    with pytest.raises(BadFile, match=message) as caught:
        task({"engine": "slots", "workload": "xor", "load": file})
    assert str(caught.value).count("\n") == 1


def test_a_disk_that_fills_loses_only_the_file(file, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parameters, "save_parameters", full)
    events = train({"engine": "slots", "workload": "xor", "epochs": 1, "save": file})
    assert next(events)["event"] == "end"
    with pytest.raises(BadFile, match=r"can't be written: No space left on device\n  Name another file with --save\."):
        next(events)
