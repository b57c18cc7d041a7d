"""`rerolled-clang-fast`, which does not guarantee bits: it stays within its bound and leaves the process unchanged."""

from __future__ import annotations

import pytest

from harness import workloads
from tests.engines.compiled.compiling import usable

pytestmark = pytest.mark.host

STEPS = 1000


def trained(name):
    workload = workloads.load("digits")
    trainer = usable(name).prepare(workload)
    trainer.restart(batch=workload.batch)
    trainer.train(STEPS)
    return [*trainer.parameters(), *trainer.losses]


def test_the_engine_stays_within_its_bound_and_changes_bits():
    engine = usable("rerolled-clang-fast")
    found, expected = trained(engine.name), trained("rerolled-tcc")
    error = max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(found, expected))
    assert not engine.strict
    assert 0.0 < error <= engine.error_bound


def test_subnormal_numbers_survive():
    """-ffast-math would make the whole process flush subnormal numbers to zero."""
    trained("rerolled-clang-fast")
    smallest = 5e-324
    assert smallest * 1.0 > 0.0
    assert (smallest * 4.0) / 2.0 > 0.0
