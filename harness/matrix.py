"""Presets -> cells. What a run is to measure, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import engines
from engines import Engine
from engines.api import UnknownName
from engines.kernel.c_engine import KEPT_FROM_SECONDS
from harness import workloads
from harness.interpreters import Interpreter
from harness.vouching import CANDIDATES, TRUSTED, TRUSTED_SECONDS, TRUSTED_STEPS
from harness.worker.evidence import DRILLS, MOST_STEPS
from harness.worker.measure import JIT_SECONDS
from harness.workloads import Workload
from results.record import Cell, Settings

HEADLINE = ("baseline", "tcc", "rerolled-gcc")
"""The engines that also race on interpreters other than the newest CPython and PyPy."""

LADDER = ("baseline", "tuple", "slots", "hoisted")
"""The interpreted engines of the published analysis, an idea each."""

REROLLED_C = ("rerolled-tcc", "rerolled-gcc", "rerolled-clang")
"""Recovered loops as C, every term computed, the reference's bits."""

REROLLED = ("rerolled-numpy", *REROLLED_C, "rerolled-clang-sparse", "rerolled-clang-fast")

HANDWRITTEN = ("handwritten", "handwritten-sparse")
"""C by hand, for this MLP: a reference line."""

TRADE_OFF = ("baseline", "tcc", "clang-O0", "clang-O1", *REROLLED_C, "rerolled-clang-sparse", *HANDWRITTEN)
"""The published trade-off of compile time against epoch time, and what dominates it."""

GROWTH_SHAPES = ("mlp-16x16x4", "mlp-64x45x10", "mlp-256x125x10", "mlp-784x420x10")
"""About 10³, 10⁴, 10⁵ and 10⁶ rows."""

GROWTH_ENGINES = (
    *("bytecode", "python-source", "tcc", "tcc-extension", "gcc-O0", "gcc-O1", "clang-O0", "clang-O1"),
    *REROLLED_C,
)

SHAPES = ("recurrent", "conv-1d", "conv-2d", "attention", "polynomial", "random-dag", "shuffled")
"""Loops of other shapes than an MLP's, none at all, and an MLP whose order is lost."""


def _variants(*suffixes: str) -> tuple[str, ...]:
    """Each of the compilers, in each form."""
    return tuple(f"{compiler}{suffix}" for compiler in ("tcc", "gcc-O0", "gcc-O1", "clang-O1") for suffix in suffixes)


SLOW_TO_COMPILE = ("clang-O1-whole", "clang-O1-published")
"""Take minutes to compile the larger workloads: only where they are named, or where everything is measured."""

PUBLISHED = ("tcc-published", "clang-O0-published", "clang-O1-published")
"""The published trade-off with the very C of the post."""

STRAIGHT_LINE = ("gcc-O1", "gcc-O2", "clang-O2", "clang-O1-native")
"""What a claim to beat all straight-line engines must beat, besides those of TRADE_OFF."""


def _all_but(*names: str) -> tuple[str, ...]:
    return tuple(name for name in engines.names() if name not in names)


@dataclass(frozen=True)
class Part:
    """Some cells of a preset: engines × workloads, on the newest CPython and PyPy or everywhere."""

    workloads: tuple[str, ...]
    engines: tuple[str, ...] = ()
    """Empty: every engine that is not slow to compile."""
    everywhere: bool = False
    cpython_only: bool = False
    """On no PyPy, unless it is named: the question is the compiler's alone, or takes minutes."""


@dataclass(frozen=True)
class Preset:
    """A named choice of cells and of the care they are measured with."""

    description: str
    blocks: int
    settings: Settings
    parts: tuple[Part, ...]
    every_patch: bool = False
    """Whether interpreters count that differ from another only in their patch version or build."""


PRESETS = {
    "smoke": Preset(
        "one engine of each kind on the newest CPython and PyPy; five blocks, a minute and a half: what the gate runs",
        blocks=5,
        settings=Settings(values=8, jit_warmups=2, value_seconds=0.05, timeout_seconds=60.0, memory_bytes=8 << 30),
        # Not digits: a value of baseline's would be one step, with a collection in it or without.
        parts=(Part(("xor",), ("baseline", "hoisted", "tcc")), Part(("tour",), ("baseline", "rerolled-tcc"))),
    ),
    "quick": Preset(
        "every engine on the newest CPython and PyPy, few on the others; two blocks, up to ten minutes",
        blocks=2,
        settings=Settings(value_seconds=0.25, memory_bytes=8 << 30),
        parts=(Part(("digits",)), Part(("mnist",), TRADE_OFF), Part(("digits",), HEADLINE, everywhere=True)),
    ),
    "full": Preset(
        "what quick has, the published table with C as first published, every straight-line engine; five blocks, hours",
        blocks=5,
        settings=Settings(value_seconds=0.25, timeout_seconds=1800.0),
        parts=(
            Part(("digits",)),
            Part(("mnist",), (*TRADE_OFF, *STRAIGHT_LINE)),
            Part(("mnist-b1000",), (*TRADE_OFF, *(name for name in PUBLISHED if name not in SLOW_TO_COMPILE))),
            Part(("mnist-b1000",), SLOW_TO_COMPILE, cpython_only=True),
            Part(("digits",), HEADLINE, everywhere=True),
        ),
    ),
    "everything": Preset(
        "every engine on every workload and interpreter, ten blocks; days, or as much as --budget gives",
        blocks=10,
        settings=Settings(values=5, warmups=2, jit_warmups=10, value_seconds=1.0, timeout_seconds=3600.0),
        parts=(Part(workloads.names(), engines.names(), everywhere=True),),
        every_patch=True,
    ),
    "growth": Preset(
        "compile time and memory against the size of the graph, from a thousand rows to a million; an hour",
        blocks=1,
        settings=Settings(values=2, warmups=1, jit_warmups=1, value_seconds=0.1, timeout_seconds=1800.0),
        parts=(Part(GROWTH_SHAPES, GROWTH_ENGINES),),
    ),
    "profile": Preset(
        "what `zoomgrad profile` looks at: the interpreted ladder, compiled Python, compilers; here their race",
        blocks=1,
        settings=Settings(timeout_seconds=600.0),
        parts=(
            Part(("mnist",), LADDER, everywhere=True),
            Part(("mnist",), ("local-grads", "replay", "bytecode", "python-source", "rerolled-clang")),
            Part(
                ("digits",),
                (
                    *("gcc-O1", "gcc-O1-whole", "gcc-O1-published", "clang-O1", "clang-O1-whole", "clang-O1-published"),
                    *("clang-O1-whole-static", "clang-O1-whole-globals"),
                    # For what is fused, and what the processor's own vectors are worth to straight-line code.
                    *("clang-O1-fma", "clang-O1-published-fma", "clang-O1-native"),
                ),
            ),
        ),
    ),
    "published": Preset(
        "how the published C should store its values: SROA, registers or neither; three blocks",
        blocks=3,
        settings=Settings(timeout_seconds=1800.0),
        parts=(
            Part(
                ("digits",),
                tuple(
                    f"{compiler}-{form}"
                    for compiler in ("clang-O1", "clang-O0")
                    for form in ("published", "whole", "whole-array", "whole-static", "whole-globals")
                ),
                cpython_only=True,
            ),
        ),
    ),
    "storage": Preset(
        "where compiled values live: locals, the caller's array, static arrays, globals of their own",
        blocks=3,
        settings=Settings(timeout_seconds=600.0),
        parts=(Part(("mnist-b1000",), _variants("", "-array", "-static", "-globals")),),
    ),
    "shapes": Preset(
        "graphs that are not an MLP: do loops survive?",
        blocks=3,
        settings=Settings(),
        parts=(Part(SHAPES, ("baseline", "bytecode", "tcc", "clang-O2", "rerolled-numpy", *REROLLED_C)),),
    ),
    "reroll": Preset(
        "the recovered loops against straight-line code and the C by hand",
        blocks=5,
        settings=Settings(),
        parts=(
            Part(("mnist", "mnist-b1000"), ("tcc", "clang-O1", *REROLLED, *HANDWRITTEN)),
            Part(
                ("digits", "moons", "xor", "tour"),
                ("tcc", "clang-O2", "rerolled-numpy", *REROLLED_C, "rerolled-clang-sparse", *HANDWRITTEN),
            ),
        ),
    ),
    "split": Preset(
        "how large the functions of generated code should be, for each compiler and for Python",
        blocks=3,
        settings=Settings(timeout_seconds=600.0),
        parts=(
            Part(
                ("mnist-b1000",),
                (
                    *_variants(*(f"-p{size}" for size in (50, 100, 400, 1600))),
                    *(f"python-source-p{size}" for size in (25, 50, 100, 400, 1600)),
                ),
            ),
        ),
    ),
}


def preset(name: str) -> Preset:
    """The preset of that name. Raises UnknownName, with the nearest names."""
    if name not in PRESETS:
        raise UnknownName("preset", name, PRESETS)
    return PRESETS[name]


def cells(
    chosen: Preset,
    interpreters: Sequence[str],
    *,
    main: Iterable[str],
    only_engines: Sequence[str] = (),
    only_workloads: Sequence[str] = (),
    only_interpreters: Sequence[str] = (),
) -> list[Cell]:
    """The preset's cells, in the order workload, interpreter, engine.

    interpreters: names that the run knows, missing ones included; main: those of them that every engine runs on. What
    is named in an `only_…` replaces the preset's own choice: then every named engine meets every named interpreter.
    Raises UnknownName for a name that does not exist.
    """
    for name in only_interpreters:
        if name not in interpreters:
            raise UnknownName("interpreter", name, interpreters)
    everywhere = tuple(only_interpreters or interpreters)
    newest = set(only_interpreters or main)
    ordinary = _all_but(*SLOW_TO_COMPILE)
    chosen_cells = {
        Cell(engine=engines.load(engine).name, interpreter=interpreter, workload=workloads.load(workload).name)
        for part in chosen.parts
        for workload in only_workloads or part.workloads
        for interpreter in everywhere
        if part.everywhere or interpreter in newest
        if not part.cpython_only or interpreter.startswith("cpython") or interpreter in only_interpreters
        for engine in only_engines or part.engines or ordinary
    }
    order = [*dict.fromkeys((*only_workloads, *(name for part in chosen.parts for name in part.workloads)))]
    ladder = [*dict.fromkeys((*only_engines, *engines.names(), *(e for part in chosen.parts for e in part.engines)))]
    return sorted(
        chosen_cells,
        key=lambda cell: (order.index(cell.workload), interpreters.index(cell.interpreter), ladder.index(cell.engine)),
    )


@cache
def tape_rows(name: str) -> int:
    """About how many rows a step of that workload has; 0 where its data can't be had, and its cells are skipped."""
    workload = workloads.load(name)
    if workload.network:
        # Three rows a weight: itself, its product, its sum. Samples in one graph share the first.
        weights = sum((nin + 1) * nout for nin, nout in pairwise(workload.network.shape))
        return weights * (1 + 2 * workload.samples_per_step)
    # Other models follow no formula; they are small enough to be counted.
    try:
        row = workload.row(0)
        nn = engines.load("tuple").nn
        model, inputs = workload.model(nn), [nn.Neuron.Value(x) for x in row]
        return len(workload.loss(model, inputs, workload.outputs(model, inputs)).topo())
    except Exception:  # whatever a workload does here, it does in its workers, which record the reason
        return 0


DRILL_STEPS = sum(sum(drill.pieces) for drill in DRILLS)

STARTUP_SECONDS = 0.65
JIT_STARTUP_SECONDS = 1.15
COMPILER_SECONDS = 0.25
"""For the smallest of programs, with what is imported to load it."""
JIT_SPEEDUP = 5.0
"""Roughly, all of them; the plan's estimate needs no more."""


def vouch_seconds(cells: Sequence[Cell], run_seconds: float) -> float:
    """About how long an engine may train that vouches for the others of a workload.

    Two do, after they were compiled and after the reference interpreted a few steps: together a share of the run.
    """
    workloads_there = {cell.workload for cell in cells}
    share = SHARE_OF_PROOF * run_seconds / max(1, len(workloads_there))
    return min(MOST_VOUCH_SECONDS, max(LEAST_VOUCH_SECONDS, (share - BEFORE_VOUCHING_SECONDS) / 2))


def vouching_seconds(workload: str, settings: Settings) -> float:
    """About how long it takes until a workload is vouched for, by the reference and two engines that are compiled."""
    rows, reference, compiled = tape_rows(workload), engines.load(TRUSTED), engines.load(CANDIDATES[0])
    interpreting = min(TRUSTED_SECONDS, settings.vouch_seconds, TRUSTED_STEPS * rows * reference.typical_row_seconds)
    preparing = COMPILER_SECONDS + rows * (compiled.typical_compile_row_seconds + reference.typical_row_seconds)
    training = min(settings.vouch_seconds, MOST_STEPS * rows * compiled.typical_row_seconds)
    return 3 * STARTUP_SECONDS + interpreting + 2 * (preparing + training)


LEAST_VOUCH_SECONDS, MOST_VOUCH_SECONDS = 3.0, 20.0
"""So long that what happens once a call of `train` is nothing beside the steps of a stretch; longer than needed."""
BEFORE_VOUCHING_SECONDS = 10.0
SHARE_OF_PROOF = 0.15
"""Of a run's time; the timed stretches' comparisons take some more. A run of seconds takes what LEAST says."""


def _refuses(engine: Engine, workload: Workload) -> bool:
    """Whether the engine's worker will end at once; one whose `supports` fails does, and records the reason."""
    try:
        return bool(engine.supports(workload))
    except Exception:
        return True


def cell_seconds(cell: Cell, settings: Settings, interpreter: Interpreter | None, blocks: int) -> float:
    """About how long the workers of a cell take, those of all its blocks."""
    return sum(estimate_seconds(cell, settings, interpreter, block) for block in range(blocks))


def estimate_seconds(cell: Cell, settings: Settings, interpreter: Interpreter | None, block: int) -> float:
    """About how long the worker for that cell takes in that block; 0 where its interpreter is missing.

    What is slow to compile compiles in the first block; later ones load its object.
    """
    if interpreter is None:
        return 0.0
    engine, rows = engines.load(cell.engine), tape_rows(cell.workload)
    startup = JIT_STARTUP_SECONDS if interpreter.has_jit else STARTUP_SECONDS
    if _refuses(engine, workloads.load(cell.workload)):
        return startup  # it says why not, and ends
    step = rows * engine.typical_row_seconds / (JIT_SPEEDUP if interpreter.has_jit else 1.0)
    compilation = rows * engine.typical_compile_row_seconds
    if block > 0 and compilation > KEPT_FROM_SECONDS:
        compilation = 0.0
    elif compilation:
        compilation += COMPILER_SECONDS
    # What is compiled goes through the drills; what is interpreted is compared over the steps that are timed.
    proof = DRILL_STEPS * step if engine.typical_compile_row_seconds else 0.0
    warmups = settings.jit_warmups if interpreter.has_jit else settings.warmups
    values = (1 if step > 1.0 else warmups + settings.values) * max(step, settings.value_seconds)
    calibration = max(step, settings.value_seconds, JIT_SECONDS if interpreter.has_jit and block == 0 else 0.0)
    return startup + compilation + proof + calibration + values
