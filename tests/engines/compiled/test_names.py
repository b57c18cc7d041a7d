"""Names that follow a rule: a compiler, its optimisation, and what departs from the usual form."""

from __future__ import annotations

import pytest

import engines
from engines.api import UnknownName
from engines.compiled import c_engines, toolchains
from engines.compiled.c_source import Form, Storage
from engines.compiled.engine import Clock
from engines.compiled.lower import lower
from engines.graph.value import Value
from tests.engines.compiled.compiling import usable

NAMES = {
    "tcc": ("tcc", None, {}),
    "tcc-array": ("tcc", None, {"storage": Storage.array}),
    "tcc-static": ("tcc", None, {"storage": Storage.static}),
    "tcc-globals": ("tcc", None, {"storage": Storage.globals}),
    "tcc-whole": ("tcc", None, {"piece": 0, "units": 1}),
    "tcc-p1": ("tcc", None, {"piece": 1}),
    "tcc-p50-array": ("tcc", None, {"piece": 50, "storage": Storage.array}),
    "gcc-O0": ("gcc", "-O0", {}),
    "gcc-O1-p50": ("gcc", "-O1", {"piece": 50}),
    "gcc-12-O3": ("gcc-12", "-O3", {}),
    "clang-14-O1": ("clang-14", "-O1", {}),
    "clang-O1-whole": ("clang", "-O1", {"piece": 0, "units": 1}),
    "clang-19-O2-whole-static": ("clang-19", "-O2", {"piece": 0, "units": 1, "storage": Storage.static}),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_says_it_all(name):
    compiler, level, changes = NAMES[name]
    engine = engines.load(name)
    assert (engine.name, engine.compiler) == (name, compiler)
    assert engine.flags == (*toolchains.STRICT, *([level] if level else []))
    usual = vars(c_engines.FORMS[compiler.partition("-")[0]])
    assert engine.form == Form(**{**usual, **changes})
    assert engine.strict
    assert engine.idea
    assert engines.load(engine.builds_on), "what it builds on exists"


@pytest.mark.parametrize(
    "name",
    [
        *("tcc-O1", "clang", "gcc", "gcc-12", "gcc-O9", "gcc-Os", "gcc-Ofast", "tcc-whole-p3", "tcc-p0", "tcc-p-1"),
        *("gcc-O1-", "-O1", "gcc--O1", "gcc-O1-p", "gcc-O1-p12345678", "gcc-O1-heap", "gcc-O1-array-static", "GCC-O1"),
        *("gcc-O1-array-p5", "icc-O1", "clang++-O1", "gcc-O1 ", " tcc", "tcc\n", "", "python-source-p0", "gcc-O1;ls"),
    ],
)
def test_nonsense_is_unknown(name):
    with pytest.raises(UnknownName) as error:
        engines.load(name)
    assert repr(name) in str(error.value)


def test_a_slip_of_the_pen_names_the_nearest():
    with pytest.raises(UnknownName, match=r"there is no engine 'clang-O9'\n  Did you mean .*clang-O1"):
        engines.load("clang-O9")


def test_what_a_name_stands_for_is_not_listed():
    """Only the ladder is: the rest is without end."""
    assert "clang-14-O1" not in engines.names()
    assert {"tcc", "clang-O1-whole"} <= set(engines.names())


# --- builds that are kept ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tcc", "tcc-extension"])
def test_a_slow_build_is_kept_and_taken_again(name, tmp_path, monkeypatch):
    engine, objects = usable(name), tmp_path / "objects"
    codes = []
    for scale in (2.0, 3.0):
        x = Value(5.0)
        codes.append(lower(engine.tape(x * scale, inputs=[x], parameters=[])))

    def forward(code, clock):
        kernel = engine.build(code, clock, objects)
        buffers = [kernel.buffer(length) for length in (1, 0, kernel.workspace, 0)]
        buffers[0][0] = 5.0
        return kernel.forward(*buffers)

    first, quick = Clock(), Clock()
    assert forward(codes[0], quick) == 10.0
    assert not objects.exists(), "it was quick"
    monkeypatch.setattr(c_engines, "KEPT_FROM_SECONDS", 0.0)
    assert forward(codes[0], first) == 10.0
    assert {phase for phase, seconds in first.phases.items() if seconds} == {"generate", "compile", "load"}
    assert len(list(objects.iterdir())) == 1

    assert forward(codes[1], Clock()) == 15.0, "another program has another object"
    assert len(list(objects.iterdir())) == 2

    monkeypatch.setattr(toolchains, "build", None)
    again = Clock()
    assert forward(codes[0], again) == 10.0
    assert again.phases == {}
    assert again.sizes == first.sizes
