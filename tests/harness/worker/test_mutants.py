"""The proof catches every mistake seeded into a kernel, and accepts kernels without one."""

from dataclasses import replace
from functools import cache
from unittest import mock

import pytest

import engines
from engines.api import Unavailable
from engines.interpreted.engine import InterpretedEngine
from engines.kernel import building
from engines.kernel.c_engine import variant_for
from engines.rerolled.form import TALL, TALLEST
from harness import workloads
from harness.procedure import DRILLS
from harness.worker.job import Mismatch
from harness.worker.proof import prepare_proof
from tests.harness.worker.mutants import DENSE, MISTAKES, job_of, mistaken, mutants, prove, witness_of

pytestmark = pytest.mark.host


@pytest.fixture(scope="session")
def witnesses(tmp_path_factory):
    """`witnesses(workload)`: the folder of its evidence, made once."""
    return cache(lambda workload: witness_of(workload, tmp_path_factory.mktemp(workload)))


def usable(engine):
    try:
        engines.load(engine).check()
    except Unavailable as why:
        pytest.skip(f"{engine}: {why.reason}")


def seeded():
    """Yield every mutant; a push runs those of each form's first engine.

    If forms share their mistakes, it runs all of them in the first such form, and one in each of the others.
    """
    owners = {}
    for form, engine, mistake in mutants():
        owner = owners.setdefault(id(form.mistakes), form)
        chosen = engine == form.engines[0] and (form is owner or mistake == next(iter(form.mistakes)))
        marks = [] if chosen else [pytest.mark.exhaustive]
        yield pytest.param(form, engine, mistake, id=f"{engine}-{form.name}-{mistake}", marks=marks)


def without_mistakes():
    """Yield each engine and workload of a mutant once; a push runs those of each form's first engine."""
    first = {(form.engines[0], form.workload) for form, _, _ in mutants()}
    for each in sorted({(engine, form.workload) for form, engine, _ in mutants()}):
        yield pytest.param(*each, id="-".join(each), marks=[] if each in first else [pytest.mark.exhaustive])


@pytest.mark.parametrize(("form", "engine", "mistake"), list(seeded()))
def test_a_mistake_in_a_kernel_fails_the_proof(witnesses, form, engine, mistake):
    usable(engine)
    witness = witnesses(form.workload)  # made before the mistake, which may be in the witness's own code
    with mistaken(form, mistake), pytest.raises(Mismatch, match="differs from python-source"):
        prove(engine, form.workload, witness)


@pytest.mark.parametrize(("engine", "workload"), list(without_mistakes()))
def test_a_kernel_without_a_mistake_passes(witnesses, engine, workload):
    usable(engine)
    proof = prove(engine, workload, witnesses(workload))
    assert proof.identical or not engines.load(engine).strict


@pytest.mark.parametrize("name", ["rerolled-gcc", "rerolled-clang", "rerolled-clang-sparse", "rerolled-clang-fast"])
def test_drills_run_every_variant_of_a_kernel(name):
    """In the variant that takes rows together, one drill has whole tiles, and another has rows left over."""
    usable(name)
    engine, workload = engines.load(name), workloads.load(DENSE)
    values = [engine.Value(x) for x in workload.row(0)]
    model = workload.model(engine.nn)
    loss = workload.loss(model, values, workload.outputs(model, values))
    tape = engine.tape(loss, inputs=values, parameters=model.parameters())
    _, together = found = engine.variants(engine.lower(tape))
    assert {variant_for(how.batch, found).name for how in DRILLS} == {variant.name for variant in found}
    for tall in (TALL, TALLEST):
        left_over = {how.batch % tall > 0 for how in DRILLS if how.batch >= max(tall, together.from_batch)}
        assert left_over == {False, True}, tall


@pytest.mark.parametrize("batch", [1, 6])
def test_the_proof_covers_variants_that_prepare_did_not_build(witnesses, batch):
    usable("rerolled-gcc")
    workload, built = replace(workloads.load(DENSE), batch=batch), []

    def build(*args, **limits):
        built.append(args)
        return compile_units(*args, **limits)

    compile_units = building.build
    engine = engines.load("rerolled-gcc")
    with mock.patch.object(building, "build", build):
        trainer = engine.prepare(workload)
        assert len(built) == 1
        prepare_proof(engine, trainer, workload, job_of(witnesses(DENSE)))
        assert len(built) == 2
        trainer.restart(batch=batch)
        trainer.train(batch)
    assert (len(built), trainer.late_variant) == (2, "")


def test_every_mistake_is_seeded_into_every_form_that_takes_rows():
    """Updates in place or deferred share the loss and the rows of the plain form, which has those mistakes."""
    whole = {form.name for form, _, _ in mutants() if set(form.mistakes) == set(MISTAKES)}
    parts = {form.name for form, _, _ in mutants()} - whole
    forward_only = {name for name in parts if name.startswith(("forward only", "frozen"))}
    assert parts - forward_only == {
        "loops, an update in place",
        "loops, an update deferred",
        "loops, zeros skipped, an update deferred",
        "C by hand, an update each row",
    }


def test_every_class_of_engine_has_mutants():
    kinds = {type(engines.load(name)) for name in engines.names()}
    assert kinds <= {type(engines.load(engine)) for _, engine, _ in mutants()}
    assert InterpretedEngine in kinds
