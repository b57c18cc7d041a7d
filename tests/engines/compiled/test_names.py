"""Engine names that follow a rule: a compiler, its optimisation level, and suffixes for departures from the default."""

from __future__ import annotations

import re
from array import array

import pytest

import engines
from engines.api import KEPT_FROM_SECONDS, Store, UnknownName, WrongSuffix
from engines.graph.value import Value
from engines.kernel import building, toolchains
from engines.kernel.engine import Clock, Order
from engines.straight import c_engines
from engines.straight.c_source import Form
from engines.straight.lower import lower
from tests.engines.compiled.compiling import usable

NAMES = {
    "tcc": ("tcc", (), {}),
    "tcc-whole": ("tcc", (), {"piece": 0, "units": 1}),
    "gcc-O0": ("gcc", ("-O0",), {}),
    "gcc-O3": ("gcc", ("-O3",), {}),
    "clang-O1-whole": ("clang", ("-O1",), {"piece": 0, "units": 1}),
    "clang-O1-native": ("clang", ("-O1", *toolchains.NATIVE), {}),
    "gcc-O2-fma": ("gcc", ("-O2", *toolchains.FUSED), {}),
    "clang-O1-whole-native-fma": (
        "clang",
        ("-O1", *toolchains.NATIVE, *toolchains.FUSED),
        {"piece": 0, "units": 1},
    ),
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


@pytest.mark.parametrize("plain", ["tcc", "gcc-O1", "clang-O0"])
def test_the_published_form_keeps_the_compilers_flags(plain):
    engine = engines.load(f"{plain}-published")
    assert isinstance(engine, c_engines.PublishedEngine)
    assert (engine.flags, engine.builds_on) == (engines.load(plain).flags, plain)
    assert "as first published" in engine.idea
    assert "first published" not in engines.load(f"{plain}-whole").idea


@pytest.mark.parametrize(
    "name",
    [
        *(
            "clang",
            "gcc",
            "gcc-12",
            "gcc-12-O1",
            "gcc-O9",
            "gcc-Os",
            "gcc-Ofast",
            "gcc-O1-",
            "-O1",
            "gcc--O1",
            "GCC-O1",
            "icc-O1",
        ),
        *("clang++-O1", "gcc-O1 ", " tcc", "tcc\n", "", "gcc-O1;ls", "rerolled", "natives", "-native", "icc-O1"),
    ],
)
def test_a_malformed_name_is_unknown(name):
    with pytest.raises(UnknownName) as error:
        engines.load(name)
    assert repr(name) in str(error.value)


WRONG = {
    "tcc-native": "tcc takes no suffix -native: TCC has no such flag; use gcc-O1-native or clang-O1-native",
    "tcc-fma": "tcc takes no suffix -fma: TCC has no such flag; use gcc-O2-fma or clang-O1-fma",
    "clang-O1-nativ": "clang-O1 takes no suffix -nativ: there is no such suffix; did you mean clang-O1-native?",
    "clang-O1-fma-native": (
        "clang-O1 takes no suffix -fma-native: suffixes have a fixed order; use clang-O1-native-fma"
    ),
    "tcc-whole-published": "tcc takes no suffix -published: it already has -whole; use tcc-published",
    "gcc-O1-generic": "gcc-O1 takes no suffix -generic: it has no -march=native to leave out; use gcc-O1",
    "rerolled-tcc-generic": (
        "rerolled-tcc takes no suffix -generic: it has no -march=native to leave out; "
        "use rerolled-gcc-generic or rerolled-clang-generic"
    ),
    "rerolled-clang-native": (
        "rerolled-clang takes no suffix -native: it already has -march=native; use rerolled-clang"
    ),
    "rerolled-clang-fma-generic": (
        "rerolled-clang takes no suffix -fma-generic: suffixes have a fixed order; use rerolled-clang-generic-fma"
    ),
    "rerolled-clang-fast-fma": "rerolled-clang-fast takes no suffix -fma: it already fuses; use rerolled-clang-fast",
    "rerolled-numpy-fma": (
        "rerolled-numpy takes no suffix -fma: only C of gcc and Clang takes it; "
        "use clang-O1-fma, rerolled-clang-fma or handwritten-fma"
    ),
    "handwritten-native": "handwritten takes no suffix -native: it already has -march=native; use handwritten",
    "baseline-native": (
        "baseline takes no suffix -native: only straight-line C of gcc and Clang takes it; "
        "use gcc-O1-native or clang-O1-native"
    ),
    "rerolled-clang-sparse-threads2": (
        "rerolled-clang-sparse takes no suffix -threads2: its lists of inputs are not divided; "
        "use rerolled-clang-threads"
    ),
    "numpy-threads2": (
        "numpy takes no suffix -threads2: only C of recovered loops by gcc and Clang takes it; "
        "use rerolled-gcc-threads4"
    ),
    "tcc-O1": "tcc takes no suffix -O1: only C of gcc and Clang takes it; use gcc-O2, clang-O1 or rerolled-clang-O3",
    "rerolled-tcc-O2": "rerolled-tcc takes no suffix -O2: TCC does not optimise; use rerolled-tcc",
    "rerolled-clang-O1": "rerolled-clang takes no suffix -O1: it already has -O1; use rerolled-clang",
    "rerolled-clang-fast-O2": "rerolled-clang-fast takes no suffix -O2: it already has -O2; use rerolled-clang-fast",
    "rerolled-clang-v4": "rerolled-clang takes no suffix -v4: there is no such suffix; use rerolled-clang",
    "python-source-x": "python-source takes no suffix -x: there is no such suffix; use python-source",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_suffix_is_refused_in_one_line(name):
    with pytest.raises(WrongSuffix) as error:
        engines.load(name)
    assert str(error.value) == WRONG[name]


@pytest.mark.parametrize(
    "name", [*WRONG, *(f"{name}-{s}" for name in ("hoisted", "tcc-extension") for s in ("fma", "x"))]
)
def test_the_remedy_for_a_wrong_suffix_names_real_engines(name):
    with pytest.raises(WrongSuffix) as error:
        engines.load(name)
    remedy = str(error.value).rpartition("; ")[2]
    named = re.split(r", | or ", re.fullmatch(r"(?:use|did you mean) (.*?)\??", remedy)[1])
    assert [engines.load(each).name for each in named] == named


@pytest.mark.parametrize("name", ["tcc--whole", "gcc-O1-p50", "gcc-O1-heap", "gcc-O1-whole-static"])
def test_malformed_suffixes_are_refused(name):
    with pytest.raises(WrongSuffix):
        engines.load(name)


def test_a_typo_suggests_the_nearest():
    with pytest.raises(UnknownName, match=r"there is no engine 'clang-O9'\n  Did you mean .*clang-O1"):
        engines.load("clang-O9")


def test_resolved_names_are_not_listed():
    """`names()` lists only the ladder, because there are endlessly many other names."""
    assert "clang-O3" not in engines.names()
    assert {"tcc", "clang-O1-whole"} <= set(engines.names())


# --- cached builds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tcc", "tcc-extension"])
def test_a_slow_build_is_cached_and_reused(name, tmp_path, monkeypatch):
    engine, objects = usable(name), tmp_path / "objects"
    codes = []
    for scale in (2.0, 3.0):
        x = Value(5.0)
        codes.append(lower(engine.tape(x * scale, inputs=[x], parameters=[])))

    def forward(code, clock, from_seconds=0.0):
        kernel = engine.build(code, clock, Order(Store(objects, from_seconds)))
        return kernel.forward(array("d", [5.0]), array("d"), kernel.workspace(), array("d"))

    first, quick = Clock(), Clock()
    assert forward(codes[0], quick, KEPT_FROM_SECONDS) == 10.0
    assert not objects.exists(), "a quick build was cached"
    assert forward(codes[0], first) == 10.0
    assert {phase for phase, seconds in first.phases.items() if seconds} == {"generate", "compile", "load"}
    assert len(list(objects.iterdir())) == 1

    assert forward(codes[1], Clock()) == 15.0, "another program got the cached object"
    assert len(list(objects.iterdir())) == 2

    monkeypatch.setattr(building, "build", None)
    again = Clock()
    assert forward(codes[0], again) == 10.0
    assert again.phases == {}
    assert again.sizes == first.sizes
