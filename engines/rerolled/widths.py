"""The width of vectors: as ZOOMGRAD_VECTORS says, else the fastest by measurement.

The widest vectors of a machine need not be its fastest. Some processors lower their clock for 512-bit vectors, and some
carry them out in two halves. So a tile of a product of two matrices, with as many sums in registers as recovered loops
have, runs once in each width. The result is remembered with the compiler's other answers. Where none can be remembered,
all processes use the widest vectors, rather than each its own choice.
"""

from __future__ import annotations

import ctypes
import os
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

from zoomgrad.engines.answers import MEMORY
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.asking import one_line
from zoomgrad.engines.kernel import toolchains
from zoomgrad.engines.kernel.building import BuildFailed, build
from zoomgrad.engines.kernel.toolchains import Toolchain
from zoomgrad.engines.rerolled.form import Form

ROWS, LANES, TERMS = 24, 48, 256
"""Shape of the product: ROWS x TERMS by TERMS x LANES. Whole tiles of every size fit in it, and it fits the caches."""
ROUNDS, TIMES = 9, 4
MARGIN = 0.95
"""Narrower vectors must take less than this share of the time, so that noise does not decide."""


SETTING = "ZOOMGRAD_VECTORS"
"""Environment variable: the doubles in a vector, 2, 4 or 8, if the processor and the flags have such wide ones."""


def width_of(tool: Toolchain, flags: tuple[str, ...], form: Form) -> int:
    """The doubles in a vector: as the user says, else the fastest. form: has the machine's widest vectors."""
    setting = os.environ.get(SETTING, "")
    if not setting:
        return fastest(tool, flags, form)
    if setting not in ("2", "4", "8"):
        raise Unavailable(
            f"{SETTING} is {one_line(setting, 40)!r}, but vectors have 2, 4 or 8 doubles",
            f"Unset {SETTING} for the fastest width.",
        )
    return min(int(setting), form.width)


@cache
def fastest(tool: Toolchain, flags: tuple[str, ...], form: Form) -> int:
    """The doubles in a vector with which a tile takes the least time. form: has the machine's widest vectors."""
    widths = [width for width in (8, 4, 2) if width <= form.width]
    if len(widths) == 1 or not MEMORY.keeps(tool.command):
        return form.width
    times = MEMORY.answer(
        tool.command,
        f"time of tiles under {' '.join(flags)}, in {widths}",
        lambda answer: _are_times(answer, widths),
        lambda: measured(tool, flags, form, widths),
    )
    return chosen(times) if times else form.width


def chosen(times: Mapping[str, float]) -> int:
    """The width to use. times: width -> seconds."""
    best = max(map(int, times))
    for width in sorted(map(int, times), reverse=True):
        if times[str(width)] < MARGIN * times[str(best)]:
            best = width
    return best


def _are_times(answer: Any, widths: Sequence[int]) -> bool:
    return (
        isinstance(answer, dict)
        and set(answer) == set(map(str, widths))
        and all(isinstance(seconds, float) and 0.0 < seconds < 1.0 for seconds in answer.values())
    )


def measured(tool: Toolchain, flags: Sequence[str], form: Form, widths: Sequence[int]) -> dict[str, float]:
    """Width -> the shortest time of a product in seconds; empty if the products don't build."""
    x, w, y = (array("d", [1.0]) * size for size in (ROWS * TERMS, TERMS * LANES, ROWS * LANES))
    buffers = [(ctypes.c_double * len(each)).from_buffer(each) for each in (x, w, y)]
    shortest = {str(width): 1.0 for width in widths}
    try:
        with build(tool, [source(form, widths)], [*flags, *toolchains.STRICT]) as built:
            products = ctypes.CDLL(str(built.path))
            for _ in range(ROUNDS):
                for width in widths:
                    product = products[f"product{width}"]
                    start = perf_counter()
                    for _ in range(TIMES):
                        product(*buffers)
                    seconds = (perf_counter() - start) / TIMES
                    shortest[str(width)] = min(shortest[str(width)], seconds)
    except (BuildFailed, OSError):
        return {}
    return shortest


def source(form: Form, widths: Sequence[int]) -> str:
    """C with a function `productN(x, w, y)` for each width N, which stores the product of x and w in y."""
    head = (Path(__file__).parent / "emit" / "vectors.h").read_text(encoding="ascii")
    return "\n".join(
        [f"#define LANES {max(widths)}", head, *(_product(replace(form, width=width)) for width in widths)]
    )


def _product(form: Form) -> str:
    width = form.width
    tall, wide = form.tile(LANES // width)
    tile = [(row, at) for row in range(tall) for at in range(wide)]
    lines = [
        f"void product{width}(const number *x, number *w, number *y)",
        "{",
        f"for (long long i = 0; i < {ROWS}; i += {tall})",
        f"for (long long j = 0; j < {LANES}; j += {wide * width}) {{",
        *(f"v{width} sum{row}_{at} = all{width}(0.0);" for row, at in tile),
        f"for (long long t = 0; t < {TERMS}; t++) {{",
        *(f"const v{width} w{at} = AT{width}(w + {LANES} * t + j + {at * width});" for at in range(wide)),
        *(f"const v{width} x{row} = all{width}(x[{TERMS} * (i + {row}) + t]);" for row in range(tall)),
        *(f"sum{row}_{at} += w{at} * x{row};" for row, at in tile),
        "}",
        *(f"AT{width}(y + {LANES} * (i + {row}) + j + {at * width}) = sum{row}_{at};" for row, at in tile),
        "}",
        "}",
        "",
    ]
    return "\n".join(lines)
