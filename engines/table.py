"""All engines of this package, each after the one that it builds on.

A row says what an engine changes, how it runs (its driver) and with which options, which options a name may add, and
roughly how long a step and a compilation take for each row of a tape. An engine of an existing kind needs nothing but
its row here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Optional

from zoomgrad.engines.compiled.driver import Compiled
from zoomgrad.engines.handwritten.driver import ByHand
from zoomgrad.engines.interpreted import baseline, hoisted, local_grads, slots
from zoomgrad.engines.interpreted import tuple as as_tuple
from zoomgrad.engines.interpreted.driver import Interpreted
from zoomgrad.engines.interpreted.once import once
from zoomgrad.engines.interpreted.replay import ReplayingTrainer
from zoomgrad.engines.native import build as native
from zoomgrad.engines.options import Options
from zoomgrad.engines.peers.driver import Peer
from zoomgrad.engines.row import Driver, Row
from zoomgrad.engines.translated.build import CYTHON, MYPYC, value


def row(name: str, idea: str, builds_on: str, driver: Driver, seconds: tuple[float, float], **facts: Any) -> Row:
    """An engine. seconds: a step's, and all phases' of compiling, for each row of a tape."""
    step, compiling = seconds
    return Row(name, idea, builds_on, driver, typical_row_seconds=step, typical_compile_row_seconds=compiling, **facts)


def interpreted(name: str, idea: str, builds_on: str, value: Any, row_seconds: float, **facts: Any) -> Row:
    """An engine that builds a graph for every step. value: its class."""
    return row(name, idea, builds_on, Interpreted(lambda: value), (row_seconds, 0.0), **facts)


def built(name: str, idea: str, builds_on: str, build: Any, row_seconds: float, **facts: Any) -> Row:
    """The same, with a class that `build` gives when it is first used. Raises Unavailable where it can't be built."""
    return row(name, idea, builds_on, Interpreted(once(build), in_python=False), (row_seconds, 0.0), **facts)


def compiled(name: str, idea: str, builds_on: str, options: Options, seconds: tuple[float, float], **facts: Any) -> Row:
    """An engine that compiles a graph."""
    facts = {"options": options, "rebuilds": False, **facts}
    return row(name, idea, builds_on, Compiled(), seconds, **facts)


def by_hand(name: str, idea: str, builds_on: str, **changes: Any) -> Row:
    """C by hand. The compile time of its loops does not depend on their counts."""
    options = Options(compiler="clang", native=True, **changes)
    return row(name, idea, builds_on, ByHand(), (1e-10, 1e-8), options=options, takes=("generic", "fma"))


def peer(
    name: str,
    idea: str,
    driver: Peer,
    environment: str = "worker",
    seconds: tuple[float, float] = (1e-10, 1e-9),
    takes: Sequence[str] = ("threads",),
) -> Row:
    """Another library. It chooses its instructions when it runs, and adds up its sums in an order of its own.

    seconds: never 0 for compiling, so that the proof includes drills.
    """
    file = f"engines/peers/models/{driver.module}.py"
    return row(name, idea, "", driver, seconds, takes=takes, error_bound=1e-9, file=file, environment=environment)


def loops(compiler: str, level: Optional[int] = 1, **changes: Any) -> Options:
    """Options of C over recovered loops. Vectors pay off for gcc and Clang only."""
    return Options("loops", compiler=compiler, level=level, native=compiler != "tcc", **changes)


_TCC = {
    "native": "TCC has no such flag",
    "fma": "TCC has no such flag",
    "O": "TCC does not optimise",
    "threads": "vectors gain more",
}
_LEVEL = {"O": "its name says the level"}
_LINES, _LOOPS = ("native", "fma", "frozen"), ("O", "generic", "fma", "threads", "frozen")
_PUBLISHED = {**_LEVEL, "frozen": "the published form stores every node and its gradient"}
_POST = "as first published: two global arrays, one assignment for each node, three huge functions"


def _straight(compiler: str, level: int, compile_row_seconds: float) -> Row:
    name = f"{compiler}-O{level}"
    return compiled(
        name,
        f"the tape as straight-line C, split into functions, by {compiler} O{level}",
        "tcc",
        Options(compiler=compiler, level=level),
        (5e-9, compile_row_seconds),
        takes=_LINES,
        refuses=_LEVEL,
    )


def _published(base: str, options: Options, compile_row_seconds: float) -> Row:
    takes, refuses = ((), _TCC) if options.compiler == "tcc" else (_LINES[:2], _PUBLISHED)
    seconds = (5e-9, compile_row_seconds)
    return compiled(f"{base}-published", _POST, base, options, seconds, takes=takes, refuses={**_PUBLISHED, **refuses})


_MACHINE = {
    **dict.fromkeys(("O", "native", "generic"), "no compiler makes its code, which is for this processor"),
    "fma": "rerolled-machine-fast fuses",
    "threads": "its steps are not divided yet",
    "frozen": "its weights are in memory",
}


def _machine(name: str, idea: str, builds_on: str, **changes: Any) -> Row:
    options = Options("loops", target="machine", native=True, **changes)
    bound = 1e-9 if options.fast else None
    return compiled(name, idea, builds_on, options, (1e-10, 2e-6), refuses=_MACHINE, error_bound=bound)


ENGINES = (
    interpreted(
        "baseline", "micrograd as published: set children, closures", "", baseline.Value, 12e-6, error_bound=1e-9
    ),
    interpreted("tuple", "children as a tuple", "baseline", as_tuple.Value, 9e-6),
    interpreted("slots", "plus __slots__", "tuple", slots.Value, 8e-6),
    interpreted("hoisted", "plus backward functions at module level", "slots", hoisted.Value, 4e-6),
    built("cython", "the text of slots, compiled by Cython", "slots", partial(value, CYTHON), 6e-6),
    built("mypyc", "the text of slots, compiled by mypyc", "slots", partial(value, MYPYC), 4e-6, extensible=False),
    interpreted(
        "local-grads",
        "no backward functions: each Value stores its local derivatives",
        "hoisted",
        local_grads.Value,
        4e-6,
    ),
    row(
        "replay",
        "build the graph once, keep the order, run forward and backward in place",
        "hoisted",
        Interpreted(lambda: hoisted.Value, ReplayingTrainer),
        (1e-6, 0.0),
        rebuilds=False,
    ),
    built(
        "native",
        "Value as a C type: objects, operators and the backward pass without the interpreter",
        "hoisted",
        native.load,
        2e-7,
        extensible=False,
    ),
    compiled(
        "bytecode",
        "runs of one primitive over many values, interpreted by a loop in Python",
        "replay",
        Options(target="bytecode"),
        (2e-7, 7e-6),
    ),
    compiled(
        "rpython",
        "micrograd in RPython, translated ahead of time: nodes allocated anew in each step",
        "native",
        Options("tape", target="RPython"),
        (5e-8, 3e-4),
        takes=("jit",),
    ),
    compiled(
        "rerolled-numpy",
        "loops recovered from the scalar tape, as array operations",
        "bytecode",
        Options("loops", target="NumPy"),
        (2e-9, 3e-6),
    ),
    compiled(
        "python-source",
        "the tape as straight-line Python, split into functions",
        "bytecode",
        Options(target="Python"),
        (1e-7, 2e-5),
    ),
    compiled(
        "tcc",
        "the tape as straight-line C, split into functions, by tcc",
        "python-source",
        Options(compiler="tcc"),
        (5e-9, 6e-6),
        takes=("frozen",),
        refuses=_TCC,
    ),
    compiled(
        "rerolled-tcc",
        "loops recovered from the scalar tape, by TCC",
        "tcc",
        loops("tcc", None),
        (1e-9, 4e-6),
        takes=("frozen",),
        refuses=_TCC,
    ),
    _straight("gcc", 0, 8e-5),
    _straight("gcc", 1, 1.6e-4),
    _straight("gcc", 2, 2e-4),
    _straight("clang", 0, 2e-5),
    _straight("clang", 1, 9e-5),
    _straight("clang", 2, 1.6e-4),
    _published("tcc", Options("tape", compiler="tcc"), 6e-6),
    compiled(
        "tcc-extension",
        "the C wrapped as a CPython extension module, instead of cffi",
        "tcc",
        Options(compiler="tcc", target="module"),
        (5e-9, 1e-5),
        refuses=_TCC,
    ),
    by_hand(
        "handwritten",
        "no graph: C that a good engineer writes by hand for this MLP, with neurons as lanes of vectors",
        "clang-O2",
    ),
    compiled(
        "rerolled-gcc",
        "loops recovered from the scalar tape, in vectors, by gcc",
        "rerolled-tcc",
        loops("gcc"),
        (1e-10, 4e-6),
        takes=_LOOPS,
    ),
    compiled(
        "clang-O1-whole",
        "one function for each pass",
        "clang-O1",
        Options(compiler="clang", level=1, whole=True),
        (5e-9, 2.7e-3),
        takes=_LINES,
        refuses=_LEVEL,
    ),
    _published("clang-O0", Options(compiler="clang", level=0, code="tape"), 6e-5),
    _published("clang-O1", Options(compiler="clang", level=1, code="tape"), 2.7e-3),
    by_hand(
        "handwritten-sparse", "plus skipping, in the first layer, inputs that are exactly 0", "handwritten", sparse=True
    ),
    compiled(
        "rerolled-clang",
        "loops recovered from the scalar tape, in vectors, by Clang",
        "rerolled-gcc",
        loops("clang"),
        (1e-10, 4e-6),
        takes=_LOOPS,
    ),
    compiled(
        "rerolled-clang-sparse",
        "plus skipping, at run time, terms whose input is exactly 0",
        "rerolled-clang",
        loops("clang", sparse=True),
        (1e-10, 4e-6),
        takes=("O", "generic", "fma"),
        refuses={"threads": "its lists of inputs are not divided", "frozen": "a frozen step skips no zeros"},
    ),
    compiled(
        "rerolled-clang-fast",
        "plus fused multiply-add, reassociated sums and reciprocals, and its own exp, common powers and Adam",
        "rerolled-clang",
        loops("clang", 2, fast=True),
        (1e-10, 4e-6),
        takes=("O", "generic", "threads", "frozen"),
        refuses={"fma": "it already fuses"},
        error_bound=1e-9,
    ),
    _machine(
        "rerolled-machine", "loops recovered from the scalar tape, as machine code, without a compiler", "rerolled-tcc"
    ),
    _machine(
        "rerolled-machine-sparse",
        "plus skipping, at run time, terms whose input is exactly 0",
        "rerolled-machine",
        sparse=True,
    ),
    _machine("rerolled-machine-fast", "plus fused multiply-add", "rerolled-machine", fast=True),
    peer("numpy", "NumPy, with derivatives by hand", Peer("with_numpy", "NumpyModel")),
    peer("torch", "PyTorch in eager mode", Peer("with_torch", "TorchModel"), "peers-torch-worker"),
    peer(
        "torch-compile",
        "PyTorch with torch.compile",
        Peer("with_torch", "CompiledTorchModel"),
        "peers-torch-worker",
    ),
    peer("jax", "JAX, one jitted call for each batch", Peer("with_jax", "JaxModel"), "peers-jax-worker"),
    peer("jax-scan", "JAX, one jitted scan over all batches", Peer("with_jax", "ScanModel"), "peers-jax-worker"),
    peer(
        "casadi",
        "CasADi, the scalar graph and its gradient run by a virtual machine",
        Peer("with_casadi", "CasadiModel"),
        "peers-scalar-worker",
        (5e-9, 2e-6),
        (),
    ),
    peer(
        "heyoka",
        "heyoka, the scalar graph and its gradient compiled by LLVM",
        Peer("with_heyoka", "HeyokaModel"),
        "peers-scalar-worker",
        (1e-9, 6e-5),
        (),
    ),
)
