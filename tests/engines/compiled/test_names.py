"""Engine names that follow a rule: a compiler, its optimisation level, and suffixes for departures from the default."""

from __future__ import annotations

import re

import pytest

from zoomgrad import engines
from zoomgrad.engines.api import UnknownName, WrongSuffix
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.straight import c_engines
from zoomgrad.engines.straight.c_source import Form

NAMES = {
    "tcc": ("tcc", (), {}),
    "tcc-whole": ("tcc", (), {"piece": 0, "units": 1}),
    "gcc-O0": ("gcc", ("-O0",), {}),
    "gcc-O3": ("gcc", ("-O3",), {}),
    "clang-O1-whole": ("clang", ("-O1",), {"piece": 0, "units": 1}),
    "clang-O1-native": ("clang", ("-O1", *toolchains.NATIVE), {}),
    "clang-O2-whole-fma": ("clang", ("-O2", *toolchains.FUSED), {"piece": 0, "units": 1}),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_determines_the_engine(name):
    compiler, flags, changes = NAMES[name]
    engine = engines.load(name)
    assert (engine.name, engine.compiler) == (name, compiler)
    assert engine.flags == (*toolchains.STRICT, *flags)
    usual = vars(c_engines.FORMS[compiler])
    assert engine.form == Form(**{**usual, **changes})
    assert engine.native == ("native" in name)
    assert engine.strict == ("fma" not in name) == (engine.error_bound is None)
    assert engine.idea
    assert engines.load(engine.builds_on), "the engine builds on one that does not exist"


@pytest.mark.parametrize(
    "name", ["clang", "gcc-12-O1", "gcc-O9", "gcc-O1-", "gcc--O1", "GCC-O1", "clang++-O1", "tcc\n", "", "gcc-O1;ls"]
)
def test_a_malformed_name_is_unknown(name):
    with pytest.raises(UnknownName) as error:
        engines.load(name)
    assert repr(name) in str(error.value)


WRONG = {
    "tcc-native": "TCC has no such flag; use gcc-O1-native or clang-O1-native",
    "clang-O1-nativ": "there is no such suffix; did you mean clang-O1-native?",
    "clang-O1-fma-native": "suffixes have a fixed order; use clang-O1-native-fma",
    "tcc-whole-published": "it already has -whole; use tcc-published",
    "gcc-O1-generic": "it has no -march=native to leave out; use gcc-O1",
    "rerolled-tcc-generic": "it has no -march=native to leave out; use rerolled-gcc-generic or rerolled-clang-generic",
    "rerolled-clang-native": "it already has -march=native; use rerolled-clang",
    "rerolled-clang-fast-fma": "it already fuses; use rerolled-clang-fast",
    "rerolled-numpy-fma": "only C of gcc and Clang takes it; use clang-O1-fma, rerolled-clang-fma or handwritten-fma",
    "handwritten-native": "it already has -march=native; use handwritten",
    "hoisted-native": "only straight-line C of gcc and Clang takes it; use gcc-O1-native or clang-O1-native",
    "rerolled-clang-sparse-threads2": "its lists of inputs are not divided; use rerolled-clang-threads",
    "numpy-threads2": "only C of recovered loops by gcc and Clang takes it; use rerolled-gcc-threads4",
    "tcc-O1": "only C of gcc and Clang takes it; use gcc-O2, clang-O1 or rerolled-clang-O3",
    "rerolled-clang-O1": "it already has -O1; use rerolled-clang",
    "rerolled-clang-v4": "there is no such suffix; use rerolled-clang",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_suffix_is_refused_and_the_remedy_names_real_engines(name):
    with pytest.raises(WrongSuffix) as error:
        engines.load(name)
    assert re.fullmatch(rf"[\w-]+ takes no suffix -[\w-]+: {re.escape(WRONG[name])}", str(error.value))
    remedy = str(error.value).rpartition("; ")[2]
    named = re.split(r", | or ", re.fullmatch(r"(?:use|did you mean) (.*?)\??", remedy)[1])
    assert [engines.load(each).name for each in named] == named
