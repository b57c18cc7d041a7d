"""Engines with suffixes: each computes the reference's bits or, if its suffix says so, stays within its error bound."""

from __future__ import annotations

import functools
import shutil

import pytest

from tests.engines.compiled.compiling import CLASSIFIER_ROWS, trains_alike, usable
from tests.engines.graphs import classifier
from tests.engines.ladder import promised
from zoomgrad import engines
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.straight.c_engines import CORES
from zoomgrad.harness import workloads

pytestmark = pytest.mark.host

STRICT = (
    *(
        "gcc-O0-published",
        "gcc-O1-published",
        "clang-O2-published-native",
        "gcc-O1-native",
        "clang-O2-whole-native",
    ),
    *("rerolled-gcc-generic", "rerolled-clang-generic", "rerolled-clang-sparse-generic"),
    *("rerolled-gcc-O0", "rerolled-clang-O3", "rerolled-gcc-O2-generic"),
)
BY_HAND = ("handwritten-generic", "handwritten-sparse-generic")
FUSED = (
    *("gcc-O2-fma", "clang-O1-fma", "clang-O1-published-fma", "clang-O1-whole-native-fma"),
    *("rerolled-gcc-fma", "rerolled-clang-fma", "rerolled-clang-generic-fma", "rerolled-clang-sparse-fma"),
    *("handwritten-fma", "handwritten-generic-fma", "handwritten-sparse-fma"),
)
WORKLOAD, STEPS = "mlp-16x9x4", 200


@pytest.mark.parametrize("name", STRICT)
def test_engines_that_fuse_nothing_keep_the_bits(name):
    assert engines.load(name).strict
    trains_alike(usable(name), *classifier(), CLASSIFIER_ROWS, 3, 11)


@functools.cache
def trained(name):
    """Return the losses and parameters after some steps, and the trainer's sizes."""
    trainer = usable(name).prepare(workloads.load(WORKLOAD))
    trainer.train(STEPS)
    return [*trainer.losses, *trainer.parameters()], trainer.sizes


@pytest.mark.parametrize("name", BY_HAND)
def test_generic_handwritten_c_keeps_the_bits(name):
    assert trained(name)[0] == trained("tuple")[0]


@pytest.mark.parametrize("name", FUSED)
def test_fused_engines_stay_within_their_bound_and_change_bits(name):
    engine, (found, _), (expected, _) = usable(name), trained(name), trained("tuple")
    assert not engine.strict
    assert "one rounding for two" in engine.idea
    assert found == promised(name, expected)
    assert found != expected, "the engine fuses nothing"


@pytest.mark.parametrize(
    ("name", "doubles"),
    [
        *((name, 1) for name in ("tcc", "clang-O1", "clang-O1-native", "clang-O1-published", "rerolled-tcc")),
        *((name, 2) for name in ("rerolled-gcc-generic", "rerolled-clang-generic-fma", "handwritten-generic-fma")),
    ],
)
def test_a_record_holds_the_vector_width_of_the_c(name, doubles):
    """-mfma also enables AVX, but vectors must not get wider."""
    assert usable(name).vector_doubles == doubles
    assert trained(name)[1]["vector_doubles"] == doubles


@pytest.mark.parametrize("name", ["tcc", "clang-O1", "clang-O1-whole", "clang-O1-published", "handwritten-generic"])
def test_a_record_holds_the_number_of_parallel_compilers(name):
    """There are no more compilers than cores, and a single huge function needs one compiler."""
    sizes = trained(name)[1]
    units, at_once = sizes["translation_units"], sizes["parallel_compilers"]
    assert 1 <= at_once == min(units, CORES)
    assert units == 1 or name == "clang-O1"


@pytest.mark.parametrize("name", ["rerolled-gcc", "rerolled-clang", "handwritten"])
def test_a_native_engine_has_the_widest_vectors(name, monkeypatch):
    monkeypatch.setenv("ZOOMGRAD_CACHE", "off")  # nothing is remembered, so nothing is measured
    engine = usable(name)
    defined = toolchains.macros(engine.toolchain(), toolchains.NATIVE)
    assert engine.vector_doubles == (8 if "__AVX512F__" in defined else 4 if "__AVX__" in defined else 2)
    assert engine.native == any(flag in engine.flags for flag in toolchains.NATIVE)


def test_a_processor_without_fma_is_refused(monkeypatch):
    if not toolchains.IS_X86 or shutil.which("clang") is None:
        pytest.skip("needs an x86 processor, since only x86 has models without FMA, and Clang: apt install clang")
    monkeypatch.setattr(toolchains, "macros", lambda tool, flags: frozenset())
    for name in ("clang-O1-fma", "rerolled-clang-fma", "handwritten-fma"):
        with pytest.raises(engines.Unavailable, match="no fused multiply-add\n  Use the engine without the suffix"):
            engines.load(name).check()
