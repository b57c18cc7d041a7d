"""All engines of this package, each after the one that it builds on.

A row says what an engine changes, how it runs (its class) and with which options, which options a name may add, and
roughly how long a step and a compilation take for each row of a tape. An engine of an existing kind needs nothing but
its row here.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, Optional

from zoomgrad.engines.compiled.engine import Compiled
from zoomgrad.engines.handwritten.engine import ByHand
from zoomgrad.engines.interpreted.engine import Interpreted
from zoomgrad.engines.interpreted.once import once
from zoomgrad.engines.interpreted.replay import ReplayingTrainer
from zoomgrad.engines.native import build as native
from zoomgrad.engines.options import Options
from zoomgrad.engines.peers.engine import Peer
from zoomgrad.engines.row import Row
from zoomgrad.engines.translated.build import CYTHON, MYPYC, Translator, value


def loops(compiler: str, level: Optional[int] = 1, **changes: Any) -> Options:
    """Options of C over recovered loops. Vectors pay off for gcc and Clang only."""
    return Options("loops", compiler=compiler, level=level, native=compiler != "tcc", **changes)


_LEVEL = {"O": "its name says the level"}
_TCC = {
    "native": "TCC has no such flag",
    "fma": "TCC has no such flag",
    "O": "TCC does not optimise",
    "threads": "vectors gain more",
}
_MACHINE = {
    **dict.fromkeys(("O", "native", "generic"), "no compiler makes its code, which is for this processor"),
    "fma": "rerolled-machine-fast fuses",
    "threads": "its steps are not divided yet",
    "frozen": "its weights are in memory",
}
_LINES, _LOOPS = ("native", "fma", "frozen"), ("O", "generic", "fma", "threads", "frozen")
_PUBLISHED = {**_LEVEL, "frozen": "the published form stores every node and its gradient"}
_POST = "as first published: two global arrays, one assignment for each node, three huge functions"
_STRAIGHT, _RECOVERED = "the tape as straight-line {}, split into functions", "loops recovered from the scalar tape"
_SKIPPING = "plus skipping, at run time, terms whose input is exactly 0"
_FUSED = "plus fused multiply-add, reassociated sums, and exp, tanh, powers and Adam without libm"


def _interpreted(name: str, idea: str, builds_on: str, row_seconds: float, file: str, **changes: Any) -> Row:
    seconds, folder = (row_seconds, 0.0), "zoomgrad.engines.interpreted"
    return Interpreted(name, idea, builds_on, seconds, build=lambda: import_module(f"{folder}.{file}").Value, **changes)


def _translated(name: str, row_seconds: float, tool: Translator, **changes: Any) -> Row:
    idea, build = f"the text of slots, compiled by {tool.tool}", once(partial(value, tool))
    return Interpreted(name, idea, "slots", (row_seconds, 0.0), build=build, in_python=False, **changes)


def _by_tcc(name: str, idea: str, builds_on: str, seconds: tuple[float, float], options: Options) -> Row:
    return Compiled(name, idea, builds_on, seconds, options, takes=("frozen",), refuses=_TCC)


def _straight(compiler: str, level: int, compile_row_seconds: float, *, whole: bool = False) -> Row:
    name, idea = f"{compiler}-O{level}", f"{_STRAIGHT.format('C')}, by {compiler} O{level}"
    name, idea, base = (f"{name}-whole", "one function for each pass", name) if whole else (name, idea, "tcc")
    options = Options(compiler=compiler, level=level, whole=whole)
    return Compiled(name, idea, base, (5e-9, compile_row_seconds), options, takes=_LINES, refuses=_LEVEL)


def _published(base: str, options: Options, compile_row_seconds: float) -> Row:
    takes, refuses = ((), _TCC) if options.compiler == "tcc" else (_LINES[:2], _PUBLISHED)
    seconds = (5e-9, compile_row_seconds)
    return Compiled(f"{base}-published", _POST, base, seconds, options, takes=takes, refuses={**_PUBLISHED, **refuses})


def _vectors(name: str, idea: str, builds_on: str, options: Options, *takes: str, **refuses: str) -> Row:
    seconds, bound = (1e-10, 4e-6), 1e-9 if options.fast else None
    return Compiled(name, idea, builds_on, seconds, options, takes=takes, refuses=refuses, error_bound=bound)


def _machine(name: str, idea: str, builds_on: str, code: str = "loops", **changes: Any) -> Row:
    options = Options(code, target="machine", native=True, **changes)
    return replace(_vectors(name, idea, builds_on, options, **_MACHINE), typical_row_seconds=(1e-10, 2e-6))


_TORCH, _JAX, _SCALARS = (f"peers-{library}-worker" for library in ("torch", "jax", "scalar"))


def _scalars(name: str, idea: str, seconds: tuple[float, float]) -> Row:
    model = f"with_{name}.{name.title()}Model"
    return Peer(name, idea, model=model, environment=_SCALARS, typical_row_seconds=seconds, takes=())


ENGINES = (
    _interpreted("baseline", "micrograd as published: set children, closures", "", 12e-6, "baseline", error_bound=1e-9),
    _interpreted("tuple", "children as a tuple", "baseline", 9e-6, "tuple"),
    _interpreted("slots", "plus __slots__", "tuple", 8e-6, "slots"),
    _interpreted("hoisted", "plus backward functions at module level", "slots", 4e-6, "hoisted"),
    _translated("cython", 6e-6, CYTHON),
    _translated("mypyc", 4e-6, MYPYC, extensible=False),
    _interpreted(
        "local-grads", "no backward functions: each Value stores its local derivatives", "hoisted", 4e-6, "local_grads"
    ),
    _interpreted(
        "replay",
        "build the graph once, keep the order, run forward and backward in place",
        "hoisted",
        1e-6,
        "hoisted",
        rebuilds=False,
        trainer=ReplayingTrainer,
    ),
    Interpreted(
        "native",
        "Value as a C type: objects, operators and the backward pass without the interpreter",
        "hoisted",
        (2e-7, 0.0),
        build=native.load,
        in_python=False,
        extensible=False,
    ),
    Compiled(
        "bytecode",
        "runs of one primitive over many values, interpreted by a loop in Python",
        "replay",
        (2e-7, 7e-6),
        Options(target="bytecode"),
    ),
    Compiled(
        "rpython",
        "micrograd in RPython, translated ahead of time: nodes allocated anew in each step",
        "native",
        (5e-8, 3e-4),
        Options("tape", target="RPython"),
        takes=("jit",),
    ),
    Compiled(
        "rerolled-numpy",
        f"{_RECOVERED}, as array operations",
        "bytecode",
        (2e-9, 3e-6),
        Options("loops", target="NumPy"),
    ),
    Compiled("python-source", _STRAIGHT.format("Python"), "bytecode", (1e-7, 2e-5), Options(target="Python")),
    _by_tcc("tcc", f"{_STRAIGHT.format('C')}, by tcc", "python-source", (5e-9, 6e-6), Options(compiler="tcc")),
    _by_tcc("rerolled-tcc", f"{_RECOVERED}, by TCC", "tcc", (1e-9, 4e-6), loops("tcc", None)),
    _straight("gcc", 0, 8e-5),
    _straight("gcc", 1, 1.6e-4),
    _straight("gcc", 2, 2e-4),
    _straight("clang", 0, 2e-5),
    _straight("clang", 1, 9e-5),
    _straight("clang", 2, 1.6e-4),
    _published("tcc", Options("tape", compiler="tcc"), 6e-6),
    Compiled(
        "tcc-extension",
        "the C wrapped as a CPython extension module, instead of cffi",
        "tcc",
        (5e-9, 1e-5),
        Options(compiler="tcc", target="module"),
        refuses=_TCC,
    ),
    ByHand(
        "handwritten",
        "no graph: C that a good engineer writes by hand for this MLP, with neurons as lanes of vectors",
        "clang-O2",
    ),
    _vectors("rerolled-gcc", f"{_RECOVERED}, in vectors, by gcc", "rerolled-tcc", loops("gcc"), *_LOOPS),
    _straight("clang", 1, 2.7e-3, whole=True),
    _published("clang-O0", Options(compiler="clang", level=0, code="tape"), 6e-5),
    _published("clang-O1", Options(compiler="clang", level=1, code="tape"), 2.7e-3),
    ByHand(
        "handwritten-sparse",
        "plus skipping, in the first layer, inputs that are exactly 0",
        "handwritten",
        options=Options(compiler="clang", native=True, sparse=True),
    ),
    _vectors("rerolled-clang", f"{_RECOVERED}, in vectors, by Clang", "rerolled-gcc", loops("clang"), *_LOOPS),
    _vectors(
        "rerolled-clang-sparse",
        _SKIPPING,
        "rerolled-clang",
        loops("clang", sparse=True),
        *("O", "generic", "fma"),
        threads="its lists of inputs are not divided",
        frozen="a frozen step skips no zeros",
    ),
    _vectors(
        "rerolled-clang-fast",
        f"{_FUSED}, and reciprocals",
        "rerolled-clang",
        loops("clang", 2, fast=True),
        *("O", "generic", "threads", "frozen"),
        fma="it already fuses",
    ),
    _machine("machine", "straight lines as machine code, copied and patched, without a compiler", "tcc", "lines"),
    _machine("rerolled-machine", f"{_RECOVERED}, as machine code, without a compiler", "rerolled-tcc"),
    _machine("rerolled-machine-sparse", _SKIPPING, "rerolled-machine", sparse=True),
    _machine("rerolled-machine-fast", _FUSED, "rerolled-machine", fast=True),
    Peer("numpy", "NumPy, with derivatives by hand", model="with_numpy.NumpyModel"),
    Peer("torch", "PyTorch in eager mode", model="with_torch.TorchModel", environment=_TORCH),
    Peer("torch-compile", "PyTorch with torch.compile", model="with_torch.CompiledTorchModel", environment=_TORCH),
    Peer("jax", "JAX, one jitted call for each batch", model="with_jax.JaxModel", environment=_JAX),
    Peer("jax-scan", "JAX, one jitted scan over all batches", model="with_jax.ScanModel", environment=_JAX),
    _scalars("casadi", "CasADi, the scalar graph and its gradient run by a virtual machine", (5e-9, 2e-6)),
    _scalars("heyoka", "heyoka, the scalar graph and its gradient compiled by LLVM", (1e-9, 6e-5)),
)
