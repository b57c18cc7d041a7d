"""The correctness proof: what counts as identical bits, which engines vouch, and that every engine passes."""

import math
from array import array
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.engines.compiled.compiling import usable
from tests.engines.ladder import runnable, willing
from tests.harness.worker.test_workloads import KINDS
from zoomgrad import engines
from zoomgrad.engines.compiled.lower import lower
from zoomgrad.engines.compiled.trace import trace
from zoomgrad.engines.graph.optimisers import SGD
from zoomgrad.engines.rerolled.form import TALLEST
from zoomgrad.engines.rerolled.step.variants import variant_for, variants_of
from zoomgrad.harness import workloads
from zoomgrad.harness.procedure import DRILLS, MOST_BOUNDED_STEPS, MOST_STEPS
from zoomgrad.harness.worker.evidence import Evidence, Starts, Witness, compare, left_by, stretches, write_evidence
from zoomgrad.harness.worker.job import DamagedEvidence, Mismatch
from zoomgrad.harness.worker.measure import Stretch
from zoomgrad.harness.worker.proof import prepare_proof
from zoomgrad.harness.worker.vouch import vouch


def doubles(*values):
    return Evidence(array("d", values), array("d", [1.0]), array("d", [2.0]))


def test_nan_equals_nan_and_the_sign_of_zero_is_free():
    assert compare(doubles(math.nan, -0.0), doubles(math.nan, 0.0)) == (0.0, "")


def test_the_last_bit_counts():
    worst, first = compare(doubles(1.0, 0.1 + 0.2), doubles(1.0, 0.3))
    assert first == "losses[1] is 0.30000000000000004 instead of 0.3"
    assert 0 < worst < 1e-15
    assert compare(doubles(math.nan), doubles(1.0))[0] == compare(doubles(1.0), doubles(math.inf))[0] == math.inf
    assert compare(doubles(1.0), doubles(1.0, 2.0)) == (math.inf, "1 losses instead of 2")


def job_for(folder, engine, workload, *, witnesses=(), seconds=2.0, steps=MOST_STEPS, starts=0):
    return {
        "engine": engine,
        "workload": workload,
        "witnesses": {f"{Path(one).name}/here/{workload}": str(one) for one in witnesses},
        "folder": str(folder),
        "seconds": seconds,
        "steps": steps,
        "starts": starts,
    }


@pytest.fixture(scope="session")
def witness(tmp_path_factory):
    """`witness(workload, steps)`: folder of `tuple`'s evidence, with all drills and stretches; made once."""

    @cache
    def make(workload, steps=4):
        folder = tmp_path_factory.mktemp(f"{workload}-{steps}") / "tuple"
        reply = vouch(job_for(folder, "tuple", workload, seconds=1e9, steps=steps, starts=2))
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
        "values": 2,
    }


def prove(engine, workload, folder, steps):
    """Prove the engine as a measuring worker does: drills, then a stretch from each of three starts."""
    engine, workload = engines.load(engine), workloads.load(workload)
    trainer = willing(engine.name, workload).prepare(workload)
    proof = prepare_proof(engine, trainer, workload, proof_job(folder, workload.name))
    stretch = Stretch(trainer, workload, proof, min(steps, proof.steps))
    for start in (0, *proof.starts(stretch.steps)[:2]):
        stretch.time(start)
        stretch.prove()
    return proof.figure


OF_EACH_KIND = [engine for engine in runnable() if engine.values[0] in KINDS]


@pytest.mark.parametrize("workload", ["xor", "mlp-5x4x3", pytest.param("digits", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("engine", OF_EACH_KIND)
def test_engines_pass_the_gate(witness, engine, workload):
    figure = prove(engine, workload, witness(workload), 4)
    assert (figure["steps"], figure["stretches"]) == (4, 3)
    assert (figure["identical"], figure["worst_error"]) == (True, 0.0) or not engines.load(engine).strict


@pytest.mark.host
@pytest.mark.parametrize("engine", OF_EACH_KIND)
def test_a_thousand_steps_keep_the_bits(witness, engine):
    figure, strict = prove(engine, "xor", witness("xor", 1024), 1024), engines.load(engine).strict
    assert figure["identical"] or not strict
    assert figure["steps"] == (1024 if strict else MOST_BOUNDED_STEPS)


def changed(folder, name, part, into, *, index=None):
    """Copy the evidence to the folder `into` with the last bit of one number changed; return the number's index."""
    source = Witness(folder)
    pieces = {path.stem: source.evidence(path.stem) for path in folder.glob("*.doubles")}
    numbers = getattr(pieces[name], part)
    index = next(i for i, x in enumerate(numbers) if x) if index is None else index
    numbers[index] *= 1 + 2**-52
    write_evidence(into, pieces.items())
    return index


@pytest.mark.parametrize("part", Evidence._fields)
@pytest.mark.parametrize("name", ["short", "2"])
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
    assert prove("slots", "xor", tmp_path, 4)["identical"]
    changed(witness("xor"), "4", "losses", tmp_path)
    with pytest.raises(Mismatch, match="within 4 steps"):
        prove("slots", "xor", tmp_path, 4)


def test_each_stretch_is_compared_with_the_reference_from_its_own_start(witness, tmp_path):
    changed(witness("xor"), "2x4", "losses", tmp_path, index=2)
    with pytest.raises(Mismatch, match=r"losses\[2\] .* within 4 steps from start 2"):
        prove("slots", "xor", tmp_path, 4)
    workload, engine = workloads.load("xor"), engines.load("slots")
    trainer = engine.prepare(workload)
    proof = prepare_proof(engine, trainer, workload, proof_job(witness("xor"), "xor"))
    trainer.train(2)
    with pytest.raises(Mismatch, match="2 losses instead of 4"):
        proof.stretch(4, 0, left_by(trainer))


def test_an_error_within_its_bound_passes_and_one_beyond_does_not(witness, tmp_path):
    for factor, passes in ((1e-12, True), (1e-6, False)):
        source = Witness(witness("xor"))
        pieces = {name: source.evidence(name) for name in ("4", "1x4", "2x4")}
        pieces["4"].losses[1] *= 1 + factor  # the loss of xor's first row is too small
        write_evidence(tmp_path, pieces.items())
        if passes:
            figure = prove("baseline", "xor", tmp_path, 4)
            assert not figure["identical"]
            assert 0 < figure["worst_error"] < 1e-9
        else:
            with pytest.raises(Mismatch, match="an error of at most 1e-09"):
                prove("baseline", "xor", tmp_path, 4)


def test_a_stretch_is_no_longer_than_the_shortest_training_of_enough_starts(witness, tmp_path):
    source = Witness(witness("xor"))
    names = ["1", "2", "4", "1x1", "1x2", "1x4", "2x1", "2x2"]
    write_evidence(tmp_path, [(name, source.evidence(name)) for name in names])
    assert prove("slots", "xor", tmp_path, 4)["steps"] == 2
    write_evidence(tmp_path, [(name, source.evidence(name)) for name in ("1", "1x1")])
    with pytest.raises(DamagedEvidence, match="too few starts for 2 different values\n  Remove"):
        prove("slots", "xor", tmp_path, 4)


@pytest.mark.parametrize("name", ["xor", "digits-forward", "moons"])
def test_no_two_starts_are_the_same_work(name):
    workload = workloads.load(name)
    trainer = engines.load("python-source").prepare(workload)
    places, seen = Starts(trainer, workload), set()
    for start in range(8):
        places.begin(start)()
        trainer.train(1)
        seen.add((trainer.losses[0], bytes(trainer.parameters())))
    assert len(seen) == 8


@pytest.mark.parametrize("name", ["mlp-5x4x3", "microgpt-L1-D4-H2-T4"])
@pytest.mark.parametrize("engine", ["tuple", "replay", "tcc"])
def test_every_trainer_starts_where_it_is_told(engine, name):
    """A training from step 3's row with step 3's parameters continues the training that reached them."""
    usable(engine)
    workload = replace(workloads.load(name), batch=1, optimiser=SGD, rate=lambda update: 0.01)
    trainer = engines.load(engine).prepare(workload)
    trainer.restart(batch=1)
    trainer.train(3)
    reached = trainer.parameters()
    trainer.train(2)
    losses, parameters = trainer.losses[3:], trainer.parameters()
    trainer.restart(batch=1, first=3, parameters=reached)
    trainer.train(2)
    assert (trainer.losses, trainer.parameters()) == (losses, parameters)


# Drills and stretches


DENSE = "mlp-64x48x10"
"""Large enough that its recovered loops have variants for batches."""


@pytest.mark.host
@pytest.mark.parametrize("name", ["rerolled-gcc", "rerolled-clang", "rerolled-clang-sparse", "rerolled-clang-fast"])
def test_drills_run_every_variant_of_a_kernel(name):
    """In the variant that takes rows together, one drill has whole tiles, and another has rows left over."""
    usable(name)
    engine, workload = engines.load(name), workloads.load(DENSE)
    tape = trace(workload, workload.row(0)).tape()
    _, together = variants = variants_of(lower(tape, engine.options))
    assert {variant_for(how.batch, variants).name for how in DRILLS} == {variant.name for variant in variants}
    for height in (2, TALLEST):
        left_over = {how.batch % height > 0 for how in DRILLS if how.batch >= max(height, together.from_batch)}
        assert left_over == {False, True}, height


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


def test_the_evidence_of_a_training_that_diverges_ends_before_that():
    for last, names in ((11, ["1", "2", "4", "8"]), (0, [])):
        trainer = Diverging(last)
        assert [name for name, _ in stretches(trainer, workloads.load("xor"), seconds=1e9, steps=99, starts=0)] == names


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


NUMBERS = Evidence(array("d", [1.0, 2.0]), array("d", [3.0]), array("d", [4.0]))


DAMAGE = {
    "cut short": lambda content: content[:-8],
    "part of a number": lambda content: content[:-1],
    "an infinite length": lambda content: array("d", [math.inf] * 3).tobytes(),
    "too long": lambda content: content + bytes(8),
    "nothing": lambda content: b"",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_changed_evidence_is_reported(tmp_path, damage):
    write_evidence(tmp_path, [("4", NUMBERS)])
    witness = Witness(tmp_path)
    witness.check()
    assert witness.evidence("4") == NUMBERS
    with pytest.raises(DamagedEvidence, match="holds no evidence"):
        Witness(tmp_path / "absent")
    path = tmp_path / "4.doubles"
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with pytest.raises(DamagedEvidence, match=r"4\.doubles: .*\n  Remove"):
        witness.check()
