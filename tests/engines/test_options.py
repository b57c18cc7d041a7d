"""Names of engines: rows of the table, and options that change one choice, in flags, bits and vectors."""

from __future__ import annotations

import functools
import re
import shutil

import pytest

from tests.engines.compiled.compiling import usable
from tests.engines.ladder import promised
from zoomgrad import engines
from zoomgrad.engines.api import Unavailable, UnknownName, WrongOption
from zoomgrad.engines.compiled.machine import CORES, VECTORS
from zoomgrad.engines.kernel import toolchains
from zoomgrad.harness import workloads

NATIVE, FUSED = toolchains.NATIVE, toolchains.FUSED
FLAGS = {
    "tcc": (),
    "gcc-O0": ("-O0",),
    "clang-O1-whole": ("-O1",),
    "clang-O1+native": ("-O1", *NATIVE),
    "clang-O2+native+fma": ("-O2", *NATIVE, *FUSED),
    "rerolled-gcc+O=3+generic": ("-O3", "-fexpensive-optimizations"),
}


@pytest.mark.parametrize("name", FLAGS)
def test_a_name_determines_the_engine(name):
    engine = engines.load(name)
    assert engine.name == name
    assert engine.flags == (*toolchains.STRICT, *FLAGS[name])
    assert engine.options.native == ("native" in name)
    assert engine.strict == ("fma" not in name) == (engine.error_bound is None)
    assert engine.idea
    assert engines.load(engine.builds_on), "the engine builds on one that does not exist"


@pytest.mark.parametrize("name", ["clang", "gcc-O9", "gcc-O1-", "GCC-O1", "clang++-O1", "tcc\n", "", "gcc-O1;ls"])
def test_a_malformed_name_is_unknown(name):
    with pytest.raises(UnknownName) as error:
        engines.load(name)
    assert repr(name) in str(error.value)


WRONG = {
    "tcc+native": "TCC has no such flag; use clang-O1+native",
    "clang-O1+nativ": "there is no such option; use clang-O1+native",
    "clang-O1+": "there is no such option; use clang-O1",
    "clang-O1+fma+native": "options have a fixed order; use clang-O1+native+fma",
    "gcc-O1+generic": "it already is so; use gcc-O1",
    "gcc-O1+native=1": "it takes no value; use clang-O1+native",
    "gcc-O1+O=2": "its name says the level; use rerolled-gcc+O=3 or rerolled-clang+O=2",
    "rerolled-clang+O=1": "it already is so; use rerolled-clang",
    "rerolled-clang+threads=0": "its value is wrong; use rerolled-gcc+threads=4 or numpy+threads",
    "rerolled-clang+threads=2+frozen": "a frozen step is not divided; use rerolled-clang+frozen",
    "rerolled-clang-sparse+threads": (
        "its lists of inputs are not divided; use rerolled-gcc+threads=4 or numpy+threads"
    ),
    "hoisted+native": "it is for other engines; use clang-O1+native",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_option_is_refused_in_one_line_and_the_remedy_works(name):
    with pytest.raises(WrongOption) as error:
        engines.load(name)
    assert re.fullmatch(rf"[\w-]+ takes no option \+[\w+=]*: {re.escape(WRONG[name])}", str(error.value))
    named = re.split(r", | or ", str(error.value).rpartition("; use ")[2])
    assert [engines.load(each).name for each in named] == named


# --- what options compute ------------------------------------------------------------------------------------------

STRICT = ("clang-O1-published+native", "rerolled-gcc+generic", "rerolled-clang-sparse+generic", "rerolled-clang+O=3")
BY_HAND = ("handwritten+generic", "handwritten-sparse+generic")
FUSING = (
    *("gcc-O2+fma", "clang-O1-published+fma", "clang-O1-whole+native+fma", "rerolled-gcc+fma"),
    *("rerolled-clang+generic+fma", "rerolled-clang-sparse+fma", "handwritten+generic+fma", "handwritten-sparse+fma"),
)
WORKLOAD, STEPS = "mlp-8x9x2", 200


@pytest.mark.host
@pytest.mark.parametrize("name", [*STRICT, *BY_HAND])
def test_engines_that_fuse_nothing_keep_the_bits(name):
    assert engines.load(name).strict
    assert trained(name)[0] == trained("tuple")[0]


@functools.cache
def trained(name):
    """Return the losses and parameters after some steps, and the trainer's sizes."""
    trainer = usable(name).prepare(workloads.load(WORKLOAD))
    trainer.train(STEPS)
    return [*trainer.losses, *trainer.parameters()], trainer.sizes


@pytest.mark.host
@pytest.mark.parametrize("name", FUSING)
def test_fused_engines_stay_within_their_bound_and_change_bits(name):
    engine, (results, _), (expected, _) = usable(name), trained(name), trained("tuple")
    assert not engine.strict
    assert results == promised(name, expected)
    assert results != expected, "the engine fuses nothing"


@pytest.mark.host
@pytest.mark.parametrize(
    ("name", "doubles"),
    [
        *((name, 1) for name in ("tcc", "clang-O1-published+fma", "rerolled-tcc")),
        *((name, 2) for name in ("rerolled-gcc+generic", "rerolled-clang+generic+fma", "handwritten+generic+fma")),
    ],
)
def test_a_record_holds_the_vector_width_of_the_c_and_the_number_of_compilers(name, doubles):
    """-mfma also enables AVX, but vectors must not get wider. There are no more compilers than cores."""
    sizes = trained(name)[1]
    assert sizes["vector_doubles"] == doubles
    assert 1 <= sizes["parallel_compilers"] == min(sizes["translation_units"], CORES)


@pytest.mark.host
def test_a_processor_without_fma_is_refused(monkeypatch):
    if not toolchains.IS_X86 or shutil.which("clang") is None:
        pytest.skip("needs an x86 processor, since only x86 has models without FMA, and Clang: apt install clang")
    monkeypatch.setattr(toolchains, "macros", lambda tool, flags: frozenset())
    for name in ("clang-O1+fma", "rerolled-clang+fma", "handwritten+fma"):
        with pytest.raises(Unavailable, match="no fused multiply-add\n  Use the engine without the option"):
            engines.load(name).check()


@pytest.mark.host
@pytest.mark.parametrize(
    ("name", "setting", "width"),
    [("rerolled-gcc", "2", 2), ("rerolled-clang+generic", "8", 2), ("handwritten", "2", 2)],
)
def test_the_user_sets_the_width(name, setting, width, monkeypatch):
    """No processor and no flags get wider vectors than they have. A width that does not exist is refused."""
    engine = usable(name)
    monkeypatch.setenv(VECTORS, setting)
    assert engine.prepare(workloads.load("xor")).sizes["vector_doubles"] == width
    assert toolchains.macros(engine.toolchain(), engine.flags[-3:]).isdisjoint({"__AVX__", "__AVX512F__"})
    monkeypatch.setenv(VECTORS, "16")
    with pytest.raises(Unavailable, match=r"ZOOMGRAD_VECTORS is '16', but .*\n  Unset ZOOMGRAD_VECTORS"):
        engine.check()
