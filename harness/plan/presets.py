"""Presets: named choices of engines, workloads, interpreters, number of blocks and settings."""

from __future__ import annotations

from dataclasses import dataclass

from zoomgrad import engines
from zoomgrad.engines.api import UnknownName
from zoomgrad.engines.discovery import is_peer
from zoomgrad.harness.workloads import WORKLOADS
from zoomgrad.results.record import Settings

HEADLINE = ("baseline", "tcc", "rerolled-gcc")
"""Engines that also run on interpreters other than the newest CPython and PyPy."""

LADDER = ("baseline", "tuple", "slots", "hoisted")
"""Interpreted engines of the published analysis, one idea each."""

NATIVE = "native"
"""Value in C. Like interpreted engines, it builds the graph for every step."""

REROLLED_C = ("rerolled-tcc", "rerolled-gcc", "rerolled-clang")
"""Recovered loops as C that computes every term and gives the reference's bits."""

HANDWRITTEN = ("handwritten", "handwritten-sparse")
"""Handwritten C for the MLP, as a yardstick."""

TRADE_OFF = ("baseline", "tcc", "clang-O0", "clang-O1", *REROLLED_C, "rerolled-clang-sparse", *HANDWRITTEN)
"""The engines of the published trade-off between compile time and epoch time, and those that win on both."""

GROWTH_SHAPES = ("mlp-16x16x4", "mlp-64x45x10", "mlp-256x125x10", "mlp-784x420x10")
"""About 10³, 10⁴, 10⁵ and 10⁶ rows."""

GROWTH_ENGINES = (
    *("bytecode", "python-source", "tcc", "tcc-extension", "gcc-O0", "gcc-O1", "clang-O0", "clang-O1"),
    *REROLLED_C,
)

SHAPES = tuple(name for name, workload in WORKLOADS.items() if workload.network is None)
"""Workloads that are not plain MLPs: with loops of other shapes, without loops, or in shuffled order."""


SLOW_TO_COMPILE = ("clang-O1-whole", "clang-O1-published")
"""Engines that take minutes to compile the larger workloads. They run only where a preset or the user names them."""

TRANSLATED = ("cython", "mypyc", "rpython")
"""Engines that need packages which no environment has by default. They run only where a preset or the user names them.
"""

PEERS = tuple(name for name in engines.names() if is_peer(engines.load(name)))
"""Other libraries, as context. They run only where a preset or the user names them."""

OF_SCALARS = ("casadi", "heyoka")
"""Peers that compile the scalar graph. For a wide net, that takes minutes and gigabytes."""

WIDTHS, BATCHES = (16, 64, 256, 1024), (1, 10, 100, 1000)
"""Of the map that compares the best engine with the best peer."""

PUBLISHED = ("tcc-published", "clang-O0-published", "clang-O1-published")
"""The published trade-off, with exactly the C of the post."""

FREEZABLE = ("tcc", "gcc-O1", "clang-O1", *REROLLED_C)
"""Engines that take the option `frozen`, one for each compiler and form."""

ABLATION = (
    *(f"rerolled-{compiler}+O={level}" for compiler in ("gcc", "clang") for level in (0, 2, 3)),
    *("rerolled-gcc+generic", "rerolled-clang+generic", "handwritten+generic"),
    *("rerolled-clang+fma", "rerolled-clang-fast", "rerolled-clang+threads"),
)
"""Engines of recovered loops with one choice changed: -O, -march, what may be fused, threads."""

STRAIGHT_LINE = ("gcc-O1", "gcc-O2", "clang-O2", "clang-O1+native")
"""The other straight-line engines: to claim that an engine beats them all, a run must include them all."""


@dataclass(frozen=True)
class Part:
    """Cells of a preset: engines × workloads, on the newest CPython and PyPy or on all interpreters."""

    workloads: tuple[str, ...]
    engines: tuple[str, ...] = ()
    """Empty for every engine that is neither slow to compile nor translated nor a peer."""
    everywhere: bool = False
    cpython_only: bool = False
    """Skip PyPy unless the user names it, because the part is only about C compilers, or takes minutes."""


@dataclass(frozen=True)
class Preset:
    """A named choice of cells and of how to measure them."""

    description: str
    blocks: int
    settings: Settings
    parts: tuple[Part, ...]
    peers: bool = False
    """Whether to make the environments of peers, as `--peers` does."""


PRESETS = {
    "smoke": Preset(
        "one engine of each kind on the newest CPython and PyPy; five blocks, a minute and a half; the gate's default",
        blocks=5,
        settings=Settings(values=8, jit_warmups=2, value_seconds=0.05, timeout_seconds=60.0, memory_bytes=8 << 30),
        # Not digits: a value of baseline would be a single step, which may or may not include a garbage collection.
        parts=(Part(("xor",), ("baseline", "hoisted", "tcc")), Part(("tour",), ("baseline", "rerolled-tcc"))),
    ),
    "quick": Preset(
        "the trade-off on MNIST and one engine of each kind; five blocks, about four minutes",
        blocks=5,
        # Six warm-ups of 0.05 s keep a JIT as warm as three of 0.1 s.
        settings=Settings(value_seconds=0.05, jit_warmups=6, memory_bytes=8 << 30),
        parts=(
            Part(("mnist",), ("baseline", "rerolled-clang-sparse")),
            Part(
                ("mnist",),
                (NATIVE, "tcc", "clang-O1", *REROLLED_C, "rerolled-machine", "handwritten-sparse"),
                cpython_only=True,
            ),
            Part(
                ("digits",),
                ("baseline", "slots", "hoisted", "replay", "bytecode", "python-source", "tcc", "rerolled-clang"),
                cpython_only=True,
            ),
        ),
    ),
    "full": Preset(
        "every engine on the newest CPython and PyPy, a few on others, the published table with its original C, "
        "one choice changed at a time, microgpt, and with --peers other libraries; five blocks, hours",
        blocks=5,
        settings=Settings(value_seconds=0.25, timeout_seconds=1800.0),
        parts=(
            Part(("digits",)),
            Part(("digits",), TRANSLATED, cpython_only=True),
            Part(("mnist",), (*TRADE_OFF, NATIVE, *STRAIGHT_LINE)),
            Part(("mnist-b1000",), (*TRADE_OFF, *(name for name in PUBLISHED if name not in SLOW_TO_COMPILE))),
            Part(("mnist-b1000",), SLOW_TO_COMPILE, cpython_only=True),
            Part(("mnist", "mnist-b1000"), (*ABLATION, *PEERS), cpython_only=True),
            Part(("microgpt",), ("baseline", "slots", "rerolled-clang")),
            Part(
                ("microgpt",),
                (NATIVE, "tcc", "rerolled-tcc", "rerolled-gcc", "rerolled-clang-sparse", "rerolled-clang-fast"),
                cpython_only=True,
            ),
            Part(("digits",), HEADLINE, everywhere=True),
        ),
    ),
    "growth": Preset(
        "compile time and memory against graph size, from a thousand rows to a million; an hour",
        blocks=1,
        settings=Settings(values=2, warmups=1, jit_warmups=1, value_seconds=0.1, timeout_seconds=1800.0),
        parts=(Part(GROWTH_SHAPES, GROWTH_ENGINES),),
    ),
    "peers": Preset(
        "other libraries against recovered loops, from one row a batch to wide nets; five blocks",
        blocks=5,
        settings=Settings(timeout_seconds=600.0),
        parts=(
            Part(("mnist", "mnist-b1000"), OF_SCALARS, cpython_only=True),
            Part(
                ("mnist", "mnist-b1000", "mlp-784x512x10-b100"),
                ("rerolled-clang", "rerolled-clang-sparse", *(name for name in PEERS if name not in OF_SCALARS)),
                cpython_only=True,
            ),
        ),
        peers=True,
    ),
    "widths": Preset(
        "where recovered loops or peers win, by width of the net and rows of a batch; three blocks",
        blocks=3,
        settings=Settings(values=2, value_seconds=0.1, timeout_seconds=600.0),
        parts=(
            Part(
                tuple(f"mlp-64x{width}x10{f'-b{batch}' * (batch > 1)}" for width in WIDTHS for batch in BATCHES),
                ("rerolled-clang", "rerolled-gcc", "numpy", "torch", "jax-scan"),
                cpython_only=True,
            ),
        ),
        peers=True,
    ),
    "profile": Preset(
        "the cells that `zoomgrad profile` profiles, but timed: interpreted engines, compiled Python, compilers",
        blocks=1,
        settings=Settings(timeout_seconds=600.0),
        parts=(
            Part(("mnist",), LADDER, everywhere=True),
            Part(("mnist",), ("local-grads", "replay", NATIVE, "bytecode", "python-source", "rerolled-clang")),
            Part(
                ("digits",),
                (
                    *("gcc-O1", "clang-O1", "clang-O1-whole", "clang-O1-published"),
                    "clang-O1+native",
                ),
            ),
        ),
    ),
    "frozen": Preset(
        "weights as constants and only the forward pass, against the trainable program; three blocks, five minutes",
        blocks=3,
        settings=Settings(value_seconds=0.1, timeout_seconds=600.0),
        parts=(
            Part(
                ("digits-forward", "mnist-forward"),
                tuple(name for engine in FREEZABLE for name in (engine, f"{engine}+frozen")),
                cpython_only=True,
            ),
        ),
    ),
    "shapes": Preset(
        "graphs other than MLPs: can their loops be recovered?",
        blocks=3,
        settings=Settings(),
        parts=(Part(SHAPES, ("baseline", "bytecode", "tcc", "clang-O2", "rerolled-numpy", *REROLLED_C)),),
    ),
}


def preset(name: str) -> Preset:
    """Return the preset of that name. Raises UnknownName with the nearest names."""
    if name not in PRESETS:
        raise UnknownName("preset", name, PRESETS)
    return PRESETS[name]
