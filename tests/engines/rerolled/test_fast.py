"""Engines named `-fast`, which do not guarantee bits: they stay within their bound."""

from __future__ import annotations

import random
from array import array

import pytest

from tests.engines.compiled.compiling import usable
from tests.engines.lengths.test_lengths import OPTIMISERS, still, update
from zoomgrad.engines.lengths.conductor import Conductor
from zoomgrad.engines.lengths.prepare import conductor_of
from zoomgrad.harness import workloads

pytestmark = pytest.mark.host

STEPS = 1000
GPT = "microgpt-L1-D4-H2-T4"


def trained(name, workload="digits"):
    workload = workloads.load(workload)
    trainer = usable(name).prepare(workload)
    trainer.restart(batch=workload.batch)
    trainer.train(STEPS)
    return [*trainer.parameters(), *trainer.losses]


@pytest.mark.parametrize("workload", ["digits", GPT])
@pytest.mark.parametrize("engine", ["rerolled-clang-fast", "rerolled-machine-fast"])
def test_the_engine_stays_within_its_bound_and_changes_bits(engine, workload):
    engine = usable(engine)
    found, expected = trained(engine.name, workload), trained("rerolled-tcc", workload)
    assert not engine.strict
    assert 0.0 < largest_error(found, expected) <= engine.error_bound


def largest_error(found, expected):
    return max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(found, expected))


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=lambda optimiser: optimiser.name)
def test_the_fast_update_is_nearly_that_in_python(optimiser):
    """Also for gradients whose square is infinite or tiny."""
    engine, rng = usable("rerolled-clang-fast"), random.Random(1)
    p, zeros = [rng.gauss(0, 1) for _ in range(101)], [0.0] * 101
    special = [0.0, 5e-324, 1e-170, 1e-150, 1e153, 1e160]
    ours, theirs = ([array("d", each) for each in (p, p, *[zeros] * len(optimiser.states))] for _ in "ab")
    in_machine_code = conductor_of(optimiser, engine.options, [still()], ours)
    in_python = Conductor(optimiser, [still()], theirs)
    for index in range(50):
        for _, q, *_ in (ours, theirs):
            q[:] = array("d", (number * (1 + index % 3) for number in [*special, *p[len(special) :]]))
        update(in_machine_code, index, 3)
        update(in_python, index, 3)
    assert ours[0].tolist() == pytest.approx(theirs[0].tolist(), rel=1e-12)
    assert ours[1] == theirs[1]
    if optimiser.name == "adam":
        assert ours[0] != theirs[0]
