"""The gate of correctness: what counts as the same bits, and that every engine passes it."""

import math
from array import array
from functools import cache

import pytest

import engines
from engines.interpreted.engine import InterpretedEngine
from harness import workloads
from harness.worker.job import read_job, run_job, write_json
from harness.worker.proof import Mismatch, compare, digest, evidence, load_evidence, make_reference, prove
from tests.engines.ladder import FAST_TO_COMPILE, runnable, willing


def doubles(*values):
    return {"losses": array("d", values), "gradients": array("d", [1.0]), "parameters": array("d", [2.0])}


def test_nan_equals_nan_and_the_sign_of_zero_is_free():
    assert compare(doubles(math.nan, -0.0), doubles(math.nan, 0.0)) == (0.0, "")
    assert digest([math.nan, -0.0, 1.0]) == digest([-math.nan, 0.0, 1.0])


def test_the_last_bit_counts():
    worst, first = compare(doubles(1.0, 0.1 + 0.2), doubles(1.0, 0.3))
    assert first == "losses[1] is 0.30000000000000004 instead of 0.3"
    assert 0 < worst < 1e-15
    assert digest([0.1 + 0.2]) != digest([0.3])


def test_one_finite_number_beside_one_that_is_not_is_an_infinite_error():
    assert compare(doubles(math.nan), doubles(1.0))[0] == math.inf
    assert compare(doubles(1.0), doubles(math.inf))[0] == math.inf


def test_another_number_of_losses_is_a_difference():
    assert compare(doubles(1.0), doubles(1.0, 2.0)) == (math.inf, "1 losses instead of 2")


def job_for(tmp_path, engine, workload, steps=2):
    return {
        "engine": engine,
        "workload": workload,
        "interpreter": "here",
        "proof_steps": steps,
        "reference_file": str(tmp_path / "reference.json"),
        "reference_cell": "tuple/here/" + workload,
        "outcome_file": str(tmp_path / "outcome.json"),
        "warmups": 0,
        "values": 1,
        "value_seconds": 0.01,
        "offset_steps": 0,
        "steps_per_value": 0,
    }


@pytest.fixture(scope="session")
def references(tmp_path_factory):
    """`references(workload, steps)`: the folder of a reference, made once."""

    @cache
    def make(workload, steps=2):
        folder = tmp_path_factory.mktemp(f"{workload}-{steps}")
        make_reference(job_for(folder, "tuple", workload, steps))
        return folder

    return make


def gates():
    """(engine, workload). A step of a large workload takes seconds where Python interprets it."""
    for engine in runnable(most_compile_row_seconds=FAST_TO_COMPILE):
        (name,), marks = engine.values, list(engine.marks)
        for workload in ("xor", "tour", "mlp-5x4x3"):
            yield pytest.param(name, workload, marks=marks)
        yield pytest.param(name, "digits", marks=[*marks, pytest.mark.host])
        # Training on `moons` is compared with a loop by hand in test_workloads.
        interpreted = isinstance(engines.load(name), InterpretedEngine)
        yield pytest.param(name, "moons", marks=[*marks, pytest.mark.exhaustive if interpreted else pytest.mark.host])


@pytest.mark.parametrize(("engine", "workload"), list(gates()))
def test_every_engine_passes_the_gate(references, engine, workload):
    chosen = willing(engine, workloads.load(workload))
    trainer = chosen.prepare(workloads.load(workload))
    found = prove(chosen, trainer, job_for(references(workload), engine, workload))
    if chosen.strict:
        assert found["proof"]["identical"]
        assert found["proof"]["worst_error"] == 0.0


@pytest.mark.host
@pytest.mark.parametrize("workload", ["xor", "tour"])
@pytest.mark.parametrize("engine", runnable())
def test_a_thousand_steps_keep_the_bits(references, engine, workload):
    chosen = willing(engine, workloads.load(workload))
    if not chosen.strict:
        pytest.skip(f"{engine}: promises no bits, and its bound is for the gate's few steps: errors grow in training")
    trainer = chosen.prepare(workloads.load(workload))
    job = job_for(references(workload, 1000), engine, workload, steps=1000)
    assert prove(chosen, trainer, job)["proof"]["identical"]


def test_a_wrong_gradient_is_a_mismatch(tmp_path):
    """One last bit of one gradient, in a file of sixty numbers."""
    job = job_for(tmp_path, "slots", "xor")
    make_reference(job)
    reference = {part: list(values) for part, values in load_evidence(job["reference_file"]).items()}
    index = next(i for i, g in enumerate(reference["gradients"]) if g)
    reference["gradients"][index] *= 1 + 2**-52
    write_json(job["reference_file"], reference)
    with pytest.raises(
        Mismatch, match=rf"promises identical bits and differs from tuple/here/xor by .*gradients\[{index}\]"
    ):
        prove(engines.load("slots"), engines.load("slots").prepare(workloads.load("xor")), job)


def test_evidence_has_gradients_of_the_first_step_and_an_update():
    workload = workloads.load("digits")
    trainer = engines.load("tuple").prepare(workload)
    found = evidence(trainer, batch=workload.batch, steps=2)
    assert len(found["losses"]) == 2
    assert any(found["gradients"])
    assert found["parameters"] != engines.load("tuple").prepare(workload).parameters()


def test_a_workers_failure_is_an_outcome(tmp_path):
    job = job_for(tmp_path, "tuple", "xor")

    def broken():
        raise KeyError("weights")

    assert not run_job(job["outcome_file"], broken)
    outcome = read_job(job["outcome_file"])
    assert outcome["status"] == "failed"
    assert outcome["reason"].startswith("KeyError: 'weights' (test_proof.py:")


def test_what_is_missing_is_a_skip_with_its_remedy(tmp_path):
    job = job_for(tmp_path, "tuple", "xor")

    def missing():
        raise engines.Unavailable("no compiler", "apt install tcc")

    assert not run_job(job["outcome_file"], missing)
    assert read_job(job["outcome_file"]) == {"status": "skipped", "reason": "no compiler", "remedy": "apt install tcc"}
