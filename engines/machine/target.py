"""The processor that code is made for: its vectors and registers, and where things are while code runs."""

from __future__ import annotations

import platform
import re
import sys
from contextlib import suppress
from enum import IntEnum
from functools import cache
from pathlib import Path

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.compiled.machine import most_doubles
from zoomgrad.engines.machine.encode import R8, R9, R10, R11, R12, R13, R14, R15, RBP, RBX, RDI, RDX, RSI, Mem, Reg

W, T = RBX, R15
"""Hold the addresses of the workspace and of the words of a call (`Word`). In the code of `lengths`, W points to the
numbers of an update, and T to the words of `take`."""
BASE = R13
"""In a step that takes rows together, the address of places in x, v, g and u: the workspace, for a row alone, or the
row's own places. A function of libm restores it."""
POOL: tuple[Reg, ...] = (RSI, RDI, R8, R9, R10, R11, RDX, RBP, R12, R13, R14)
"""Registers for counters and pointers. RAX and RCX are free for a few instructions at a time."""
CALLER_SAVED = frozenset((RSI, RDI, R8, R9, R10, R11, RDX))
"""Those that a function of libm may change. It may change all vector registers."""
CALLEE_SAVED = (RBX, RBP, R12, R13, R14, R15)
"""Those that our functions must restore."""

ALTERNATIVE = "Use `rerolled-gcc` or `rerolled-clang`."

AVX2 = frozenset(("avx2", "fma"))
AVX512 = frozenset(("avx512f", "avx512vl", "avx512dq"))


@cache
def features() -> frozenset[str]:
    """The processor's vendor and instruction sets, as Linux names them; empty if they can't be read."""
    with suppress(OSError):
        facts = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").partition("\n\n")[0]
        return frozenset(" ".join(re.findall(r"^(?:vendor_id|flags)\s*:(.*)", facts, re.MULTILINE)).split())
    return frozenset()


def check() -> None:
    """Raise Unavailable unless the processor and the system run our code."""
    here = platform.machine().lower()
    if here not in ("x86_64", "amd64") or sys.platform != "linux":
        raise Unavailable(f"its machine code is for Linux on x86-64, not {sys.platform} on {here}", ALTERNATIVE)
    if not features() >= AVX2:
        raise Unavailable(f"the processor lacks {', '.join(sorted(AVX2 - features()))}", ALTERNATIVE)


def native_width() -> int:
    """The doubles in a vector: 8 with AVX-512, unless the user wants fewer; otherwise 4."""
    return 8 if most_doubles() == 8 and features() >= AVX512 else 4


def vector_registers(width: int) -> int:
    """How many vector registers there are. AVX-512 also has masks."""
    return 32 if width == 8 else 16


# --- the words of a call: what kernel.h passes, then the state of training --------------------------------------------


class Word(IntEnum):
    """The words of 8 bytes at T, in order. Addresses point to doubles."""

    COLUMNS, COLUMN_COUNT, ROWS, ROW, STEPS, BATCH, TAKEN, RATES, LOSSES, LEARNS, Y_STEP = range(11)
    """`struct stretch`. Training advances ROW, TAKEN and RATES."""
    X, P, WORKSPACE, Y, Q = range(11, 16)
    """`struct buffers`."""
    # the state, which is 0 at first
    STEP = 16
    """The number of recorded losses, all finite."""
    RATE = 17
    """A double: the rate of the current or waiting update."""
    DUE = 18
    ZERO = 19
    """Whether all gradients are zero."""
    COUNT = 20
    """The number of rows taken together."""
    CURRENT = 21
    """The number of the current one of these rows."""
    SIZE = 22
    """A double: the rows of a batch."""
    BOUND = 23
    """A double: a bound on the magnitude of the weights that zero inputs would skip."""
    MINUS_RATE = 24
    """A vector: minus the rate of the waiting update, in every lane."""


WORDS = Word.MINUS_RATE + 8
"""The number of words."""


def word(which: int) -> Mem:
    """The word as an operand: one of `Word`, or of the words that `lengths` keeps at T."""
    return Mem(T, 8 * which)
