"""The correctness proof: what counts as identical bits, which engines vouch, and that every engine passes."""

import hashlib
import json
import math
from array import array
from functools import cache
from pathlib import Path

import pytest

import engines
from engines.interpreted.engine import InterpretedEngine
from harness import workloads
from harness.procedure import DRILLS, MOST_STEPS, SHORT
from harness.worker.evidence import DIVERGES, Evidence, Witness, compare, drill, stretches, write_evidence
from harness.worker.job import DamagedEvidence, Mismatch, read_json, run_job
from harness.worker.proof import MOST_BOUNDED_STEPS, digest, prepare_proof
from harness.worker.vouch import _difference, vouch
from tests.engines.ladder import FAST_TO_COMPILE, runnable, willing


def doubles(*values):
    return Evidence(array("d", values), array("d", [1.0]), array("d", [2.0]))


def test_nan_equals_nan_and_the_sign_of_zero_is_free():
    assert compare(doubles(math.nan, -0.0), doubles(math.nan, 0.0)) == (0.0, "")
    assert digest([math.nan, -0.0, 1.0]) == digest([-math.nan, 0.0, 1.0])


def test_the_last_bit_counts():
    worst, first = compare(doubles(1.0, 0.1 + 0.2), doubles(1.0, 0.3))
    assert first == "losses[1] is 0.30000000000000004 instead of 0.3"
    assert 0 < worst < 1e-15
    assert digest([0.1 + 0.2]) != digest([0.3])


def test_a_finite_number_against_a_non_finite_one_is_an_infinite_error():
    assert compare(doubles(math.nan), doubles(1.0))[0] == math.inf
    assert compare(doubles(1.0), doubles(math.inf))[0] == math.inf


def test_a_different_number_of_losses_is_a_difference():
    assert compare(doubles(1.0), doubles(1.0, 2.0)) == (math.inf, "1 losses instead of 2")


def job_for(folder, engine, workload, *, witnesses=(), seconds=2.0, steps=MOST_STEPS):
    return {
        "engine": engine,
        "workload": workload,
        "reply_file": "",
        "witnesses": {f"{Path(one).name}/here/{workload}": str(one) for one in witnesses},
        "folder": str(folder),
        "seconds": seconds,
        "steps": steps,
    }


@pytest.fixture(scope="session")
def witness(tmp_path_factory):
    """`witness(workload, steps)`: folder of `tuple`'s evidence, with all drills and stretches; made once."""

    @cache
    def make(workload, steps=4):
        folder = tmp_path_factory.mktemp(f"{workload}-{steps}") / "tuple"
        # The longer drills of `moons` would take half a minute. A busy machine needs more time for its steps.
        for seconds in (3.0, 9.0, 1e9) if workload == "moons" else (1e9,):
            reply = vouch(job_for(folder, "tuple", workload, seconds=seconds, steps=steps))
            if reply["steps"] == steps:
                break
        assert (reply["status"], reply["steps"]) == ("measured", steps)
        return folder

    return make


def proof_job(folder, workload):
    """Return the part of a measuring worker's job that describes the engine that vouches."""
    return {
        "reference_folder": str(folder),
        "reference_cell": f"tuple/here/{workload}",
        "reference_steps": Witness(folder).steps,
        "reference_drills": [one.name for one in DRILLS if one.name in Witness(folder)],
    }


def prove(engine, workload, folder, steps):
    """Prove the engine as a measuring worker does: the preparation, then a stretch."""
    engine, workload = engines.load(engine), workloads.load(workload)
    trainer = willing(engine.name, workload).prepare(workload)
    proof = prepare_proof(engine, trainer, workload, proof_job(folder, workload.name))
    steps = min(steps, proof.steps)
    trainer.restart(batch=workload.batch)
    trainer.train(steps)
    proof.stretch(trainer, steps)
    return proof


def gates():
    """Yield (engine, workload). A step of a large workload takes seconds on an interpreted engine."""
    for engine in runnable(most_compile_row_seconds=FAST_TO_COMPILE):
        (name,), marks = engine.values, list(engine.marks)
        for workload in ("xor", "tour", "mlp-5x4x3"):
            yield pytest.param(name, workload, marks=marks)
        yield pytest.param(name, "digits", marks=[*marks, pytest.mark.host])
        # Training on `moons` is compared with a loop by hand in test_workloads.
        engine = engines.load(name)
        slow = isinstance(engine, InterpretedEngine) or getattr(engine, "rebuilds", False)
        yield pytest.param(name, "moons", marks=[*marks, pytest.mark.exhaustive if slow else pytest.mark.host])


@pytest.mark.parametrize(("engine", "workload"), list(gates()))
def test_every_engine_passes_the_gate(witness, engine, workload):
    found = prove(engine, workload, witness(workload), 4).fields()["proof"]
    assert (found["steps"], found["stretches"]) == (4, 1)
    if engines.load(engine).strict:
        assert found["identical"]
        assert found["worst_error"] == 0.0


@pytest.mark.host
@pytest.mark.parametrize("workload", ["xor", "tour"])
@pytest.mark.parametrize("engine", runnable())
def test_a_thousand_steps_keep_the_bits(witness, engine, workload):
    found = prove(engine, workload, witness(workload, 1024), 1024)
    strict = engines.load(engine).strict
    assert found.identical or not strict
    assert found.stretch_steps == (1024 if strict else MOST_BOUNDED_STEPS)


def changed(folder, name, part, into, *, index=None):
    """Copy the evidence to the folder `into` with the last bit of one number changed; return the number's index."""
    source = Witness(folder)
    names = json.loads((folder / "index.json").read_text())
    found = {one: source.evidence(one) for one in names}
    numbers = getattr(found[name], part)
    index = next(i for i, x in enumerate(numbers) if x) if index is None else index
    numbers[index] *= 1 + 2**-52
    write_evidence(into, found.items())
    return index


@pytest.mark.parametrize("part", Evidence._fields)
@pytest.mark.parametrize("name", ["short", "ragged", "2"])
def test_one_last_bit_is_a_mismatch(witness, tmp_path, name, part):
    index = changed(witness("xor"), name, part, tmp_path)
    with pytest.raises(
        Mismatch,
        match=rf"promises identical bits, but differs from tuple/here/xor by up to .*; first, {part}\[{index}\] is ",
    ):
        prove("bytecode", "xor", tmp_path, 2)


def test_an_interpreted_engine_is_proven_over_the_timed_steps(witness, tmp_path):
    """Drills would take longer than the timed steps: a step of the largest workload takes a second."""
    changed(witness("xor"), "short", "losses", tmp_path)
    assert prove("slots", "xor", tmp_path, 4).identical
    changed(witness("xor"), "4", "losses", tmp_path)
    with pytest.raises(Mismatch, match="within 4 steps"):
        prove("slots", "xor", tmp_path, 4)


def test_each_pass_of_a_stretch_is_compared(witness):
    workload = workloads.load("xor")
    engine = engines.load("slots")
    trainer = engine.prepare(workload)
    proof = prepare_proof(engine, trainer, workload, proof_job(witness("xor"), "xor"))
    for _ in range(3):
        trainer.restart(batch=workload.batch)
        trainer.train(4)
        proof.stretch(trainer, 4)
    assert (proof.stretches, proof.identical) == (3, True)
    trainer.losses[2] *= 1 + 2**-52
    with pytest.raises(Mismatch, match=r"losses\[2\]"):
        proof.stretch(trainer, 4)


def test_an_error_within_its_bound_passes_and_one_beyond_does_not(witness, tmp_path):
    engine, workload = engines.load("baseline"), workloads.load("xor")
    source = Witness(witness("xor"))
    for factor, passes in ((1e-12, True), (1e-6, False)):
        found = source.evidence("4")
        found.losses[1] *= 1 + factor  # the loss of xor's first row is too small
        write_evidence(tmp_path, [("4", found)])
        trainer = engine.prepare(workload)
        proof = prepare_proof(engine, trainer, workload, proof_job(tmp_path, "xor"))
        trainer.train(4)
        if passes:
            proof.stretch(trainer, 4)
            assert not proof.identical
            assert 0 < proof.worst_error < 1e-9
        else:
            with pytest.raises(Mismatch, match="an error of at most 1e-09"):
                proof.stretch(trainer, 4)


# Drills and stretches


def test_the_short_drill_has_an_update_and_gradients_after_it():
    workload = workloads.load("digits")
    found = drill(engines.load("tuple").prepare(workload), workload, SHORT)
    assert len(found.losses) == 3
    assert any(found.gradients)
    assert found.parameters != engines.load("tuple").prepare(workload).parameters()


def test_a_drills_rows_wrap_around():
    workload = workloads.load("mlp-5x4x3")
    trainer = engines.load("slots").prepare(workload)
    trainer.restart(batch=1000, rows=3)
    trainer.train(7)
    assert list(trainer.losses[3:6]) == list(trainer.losses[:3])
    assert trainer.losses[6] == trainer.losses[0]
    trainer.restart(batch=1000)
    trainer.train(4)
    assert trainer.losses[3] != trainer.losses[0]


def test_drills_meet_whole_and_ragged_groups_and_wrap_around_within_one():
    """A tile of sums has four rows or more."""
    by_name = {one.name: one for one in DRILLS}
    whole, ragged = by_name["whole"], by_name["ragged"]
    assert whole.batch % 4 == 0
    assert ragged.batch % 4
    assert all(sum(one.pieces) > one.rows for one in DRILLS if one.rows)
    assert ragged.rows % 4
    assert by_name["single"].batch == 1


@pytest.mark.parametrize("engine", ["slots", "bytecode"])
def test_stretches_are_powers_of_two(engine):
    workload = workloads.load("xor")
    found = dict(stretches(engines.load(engine).prepare(workload), batch=workload.batch, seconds=1e9, steps=16))
    assert list(found) == ["1", "2", "4", "8", "16"]
    assert all(len(evidence.losses) == int(steps) for steps, evidence in found.items())
    assert any(found["2"].gradients)  # within a batch
    assert not any(found["4"].gradients)


def test_stretches_stop_at_their_time_limit():
    workload = workloads.load("xor")
    assert len(dict(stretches(engines.load("slots").prepare(workload), batch=4, seconds=1e-9))) == 1


class Diverging:
    """A trainer whose loss is infinite from some step on."""

    def __init__(self, last):
        self.last, self.losses = last, array("d")

    def restart(self, *, batch):
        self.losses = array("d")

    def train(self, steps):
        for _ in range(steps):
            if len(self.losses) == self.last:
                raise engines.NonFiniteLoss(self.last, math.inf)
            self.losses.append(1.0)

    def gradients(self):
        return array("d")

    parameters = gradients


def test_a_training_that_diverges_is_evidence_too():
    found = dict(stretches(Diverging(11), batch=1, seconds=1e9))
    assert list(found) == ["1", "2", "4", "8", DIVERGES]
    assert len(found[DIVERGES].losses) == 11
    assert list(dict(stretches(Diverging(0), batch=1, seconds=1e9))) == [DIVERGES]


# Vouching


def test_an_engine_that_agrees_vouches(witness, tmp_path):
    reply = vouch(job_for(tmp_path / "bytecode", "bytecode", "xor", witnesses=[witness("xor")], steps=32))
    assert (reply["status"], reply["steps"]) == ("measured", 32)
    assert reply["drills"] == [one.name for one in DRILLS]
    assert Witness(tmp_path / "bytecode").steps == 32


@pytest.mark.parametrize("name", ["single", "4"])
def test_an_engine_that_disagrees_does_not_vouch(witness, tmp_path, name):
    changed(witness("xor"), name, "parameters", tmp_path / "tuple")
    reply = vouch(job_for(tmp_path / "bytecode", "bytecode", "xor", witnesses=[tmp_path / "tuple"], steps=32))
    assert reply["status"] == "failed"
    assert reply["disagrees"]
    where = "the drill 'single'" if name == "single" else "the first 4 steps"
    assert reply["reason"].startswith(f"bytecode and tuple/here/xor disagree over {where}: parameters[")
    assert not (tmp_path / "bytecode").exists()


def diverging(folder, steps, at=None):
    """Write evidence of a training whose losses are 1, for `steps` steps or until it diverges at step `at`."""
    write_evidence(folder, stretches(Diverging(1 << 30 if at is None else at), batch=1, seconds=1e9, steps=steps))
    return Witness(folder)


@pytest.mark.parametrize(
    ("ours", "theirs", "agree"),
    [
        ((16, None), (8, None), True),
        ((16, 11), (16, 11), True),
        ((16, 11), (8, None), True),  # the witness did not reach that step
        ((4, None), (16, 11), True),
        ((16, 11), (16, None), False),
        ((16, None), (16, 11), False),
        ((16, 9), (16, 11), False),
        ((16, 0), (1, None), False),
    ],
)
def test_an_engine_that_diverges_alone_disagrees(tmp_path, ours, theirs, agree):
    found = dict(stretches(Diverging(1 << 30 if ours[1] is None else ours[1]), batch=1, seconds=1e9, steps=ours[0]))
    difference = _difference(found, diverging(tmp_path, *theirs))
    assert bool(difference) != agree
    assert agree or "the step whose loss is not finite" in difference


def test_a_trainer_that_takes_fewer_steps_than_it_was_asked_for_is_a_mismatch(witness):
    engine, workload = engines.load("slots"), workloads.load("xor")
    trainer = engine.prepare(workload)
    proof = prepare_proof(engine, trainer, workload, proof_job(witness("xor"), "xor"))
    trainer.train(2)
    with pytest.raises(Mismatch, match="2 losses instead of 4"):
        proof.stretch(trainer, 4)


def test_drills_that_take_too_long_are_left_out(tmp_path):
    reply = vouch(job_for(tmp_path, "tuple", "digits", seconds=1e-3, steps=1))
    assert reply["drills"] == ["short"]


def test_an_unfinished_folder_is_not_a_witness(tmp_path):
    with pytest.raises(FileNotFoundError):
        Witness(tmp_path)


# Replies


def test_a_workers_failure_is_a_reply(tmp_path):
    file = str(tmp_path / "reply.json")

    def broken():
        raise KeyError("weights")

    assert not run_job(file, broken)
    reply = read_json(file)
    assert reply["status"] == "failed"
    assert reply["reason"].startswith("KeyError: 'weights' (test_proof.py:")


def test_a_missing_program_is_a_skip_with_its_remedy(tmp_path):
    file = str(tmp_path / "reply.json")

    def missing():
        raise engines.Unavailable("no compiler", "apt install tcc")

    assert not run_job(file, missing)
    assert read_json(file) == {"status": "skipped", "reason": "no compiler", "remedy": "apt install tcc"}


NUMBERS = Evidence(array("d", [1.0, 2.0]), array("d", [3.0]), array("d", [4.0]))


@pytest.mark.parametrize(
    "index",
    [
        "",
        "[]",
        "[" * 100_000,
        "7",
        '{"4": 3}',
        '{"4": {"lengths": [2, 1, 1]}}',
        '{"4": {"lengths": [2, 1], "sha256": ""}}',
        '{"4": {"lengths": [2, 1, -1], "sha256": ""}}',
        '{"4": {"lengths": [2, 1, 1e400], "sha256": ""}}',
        '{"4": {"lengths": [2, 1, 99999999999999999999], "sha256": ""}}',
        '{"../4": {"lengths": [2, 1, 1], "sha256": ""}}',
        '{"4": {"lengths": [2, 1, 1], "sha256": 3}}',
        " " * (2 << 20),
    ],
)
def test_an_invalid_index_is_reported(tmp_path, index):
    write_evidence(tmp_path, [("4", NUMBERS)])
    (tmp_path / "index.json").write_text(index)
    with pytest.raises(DamagedEvidence, match=r"index\.json is not an index of evidence\n  Remove"):
        Witness(tmp_path)


@pytest.mark.parametrize("content", [b"", b"x" * 31, b"x" * 32, b"x" * 33, None])
def test_changed_evidence_is_reported(tmp_path, content):
    write_evidence(tmp_path, [("4", NUMBERS)])
    witness = Witness(tmp_path)
    witness.check()
    assert witness.evidence("4") == NUMBERS
    path = tmp_path / "4.doubles"
    path.write_bytes(content) if content is not None else path.unlink()
    with pytest.raises(DamagedEvidence, match=r"4\.doubles "):
        witness.check()


def test_missing_evidence_is_reported(tmp_path):
    write_evidence(tmp_path, [("4", NUMBERS)])
    with pytest.raises(DamagedEvidence, match="has no entry for '8'"):
        Witness(tmp_path).evidence("8")


def test_evidence_of_the_wrong_length_is_reported_even_if_its_hash_is_right(tmp_path):
    write_evidence(tmp_path, [("4", NUMBERS)])
    (tmp_path / "4.doubles").write_bytes(b"x" * 7)
    index = json.loads((tmp_path / "index.json").read_text())
    index["4"]["sha256"] = hashlib.sha256(b"x" * 7).hexdigest()
    (tmp_path / "index.json").write_text(json.dumps(index))
    with pytest.raises(DamagedEvidence, match="was changed after it was written"):
        Witness(tmp_path).check()
