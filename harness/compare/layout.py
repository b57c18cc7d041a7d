"""A random number -> the layout of one process: its environment's size, hash seed, heap, and the code that it links.

Each process of each block has its own draw, so a difference between two sides is not the accident of one layout.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.kernel import building, toolchains
from zoomgrad.harness.run.isolate import MOST_PADDING, Draw

MOST_HEAP_OBJECTS = 1000
CODE_ALIGNMENT, CODE_PLACES = 16, 256
"""Code begins at multiples of 16 bytes, so these are all its places within a page."""


class Layout(NamedTuple):
    """One process's draw: `draw` for its environment, and `job` for what the player applies."""

    draw: Draw
    job: dict[str, Any]


@contextlib.contextmanager
def drawn(rng: random.Random) -> Iterator[Layout]:
    """Draw a layout. Its padding is removed afterwards."""
    draw = Draw(rng.randrange(1, 2**32), rng.randrange(MOST_PADDING))
    job: dict[str, Any] = {"link_seed": rng.randrange(2**32), "heap_objects": rng.randrange(MOST_HEAP_OBJECTS)}
    with padding(CODE_ALIGNMENT * rng.randrange(1, CODE_PLACES + 1)) as file:
        yield Layout(draw, {**job, "code_padding": str(file or "")})


@contextlib.contextmanager
def padding(size: int) -> Iterator[Path | None]:
    """An object with that many bytes in its code section, to be linked before others; None without a compiler.

    Its name is local, so that it can be linked several times.
    """
    unit = f'__attribute__((section(".text"), used)) static const char zoomgrad_padding[{size}] = {{1}};\n'
    with contextlib.ExitStack() as stack:
        made = None
        for family in ("gcc", "clang", "tcc"):
            with contextlib.suppress(Unavailable, building.BuildFailed):
                made = stack.enter_context(building.compile_unit(toolchains.find(family), unit, ["-w"])).path
                break
        yield made
