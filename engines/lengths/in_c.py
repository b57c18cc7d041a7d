"""The conductor in C, with the update that `update_in_c` writes."""

from __future__ import annotations

import contextlib
import math
import os
import random
from array import array
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from zoomgrad.engines.graph.optimisers import Optimiser, power
from zoomgrad.engines.kernel import building, toolchains
from zoomgrad.engines.kernel.c_text import libm, read, unit
from zoomgrad.engines.kernel.c_tree import Declarations, Define, Include
from zoomgrad.engines.kernel.library import Library
from zoomgrad.engines.lengths.conductor import Conductor, Course, Member, Shared
from zoomgrad.engines.lengths.update_in_c import update_in_c

PROBES = 256
"""Numbers whose powers are compared with libm's before lanes are used."""


def source(optimiser: Optimiser, width: int, *, is_fast: bool = False) -> str:
    """The C of a conductor. width: doubles in a vector, or 1. is_fast: whether its bits may differ from Python's."""
    return unit(
        [
            Define("LANES", width),
            libm([("pow", 2)]),
            Define("KEEPS_BITS", int(not is_fast)),
            *([Include("kernel/fast.h")] if is_fast else []),
            Include("lengths/rounding.h"),
            Declarations(["static long long libm_is_known;", *update_in_c(optimiser)]),
            Include("kernel/kernel.h"),
            Include("lengths/conduct.h"),
            Include("lengths/conduct.c"),
        ]
    )


@cache
def interface() -> Any:
    """cffi's view of the conductor."""
    import cffi

    parsed = cffi.FFI()
    parsed.cdef(read("kernel/kernel.h"))
    parsed.cdef(read("lengths/conduct.h"))
    return parsed


def load(
    tool: toolchains.Toolchain, flags: Sequence[str], optimiser: Optimiser, width: int, *, is_fast: bool = False
) -> Any:
    """Compile a conductor, and load it. Raises BuildFailed."""
    with building.build(tool, [source(optimiser, width, is_fast=is_fast)], flags) as built, building.loading():
        return interface().dlopen(str(built.path))


def libm_is_known(lib: Any) -> bool:
    """Whether the error of this libm's `pow` has a known bound, and its results are as the bound says.

    `rerolled/emit/powers.h` asks the same for its exponents.
    """
    version = ""
    with contextlib.suppress(AttributeError, ValueError, OSError):
        version = os.confstr("CS_GNU_LIBC_VERSION") or ""
    name, _, number = version.partition(" ")
    digits = tuple(int(part) for part in number.split(".")[:2] if part.isdigit())
    return name == "glibc" and digits >= (2, 28) and _are_as_libm(lib)


def _are_as_libm(lib: Any) -> bool:
    rng = random.Random(1)
    results = array("d", bytes(8 * PROBES))
    for root, exponent in ((0, 2.0), (1, 0.5)):
        numbers = array("d", [math.ldexp(1 + rng.random(), rng.randrange(-60, 60)) for _ in results])
        pointers = [interface().from_buffer("double[]", buffer) for buffer in (numbers, results)]
        lib.powers(*pointers, PROBES, root, 1)
        if any(x != power(number, exponent) for x, number in zip(results, numbers)):
            return False
    return True


class ConductorInC(Conductor):
    """Takes the steps over several lengths whose kernels are loaded through cffi."""

    def __init__(self, lib: Any, optimiser: Optimiser, members: Sequence[Member], shared: Shared) -> None:
        super().__init__(optimiser, members, shared)
        self._lib, self._ffi = lib, interface()
        # A structure holds only addresses, so this list keeps their buffers alive.
        self._alive: list[Any] = []
        described = self._new("struct member[]", [self._described(member) for member in members])
        states = self._new("double *[]", [self._pointer(state) for state in shared.states] or 1)
        self._shared = self._new(
            "struct shared *",
            {
                "members": described,
                "p": self._pointer(shared.p),
                "q": self._pointer(shared.q),
                "states": states,
                "parameters": len(shared.p),
                "libm_is_known": libm_is_known(lib),
            },
        )

    def take(self, course: Course) -> int:
        numbers = {name: value for name, value in course._asdict().items() if not isinstance(value, array)}
        buffers = {
            "members": self._ffi.from_buffer("long long[]", course.members),
            "places": self._ffi.from_buffer("long long[]", course.places),
            "rates": self._ffi.from_buffer("double[]", course.rates),
            "losses": self._ffi.from_buffer("double[]", course.losses, True),
        }
        done: int = self._lib.take(self._shared, self._ffi.new("struct course *", {**numbers, **buffers}))
        return done

    def _described(self, member: Member) -> Mapping[str, Any]:
        library = library_of(member)
        assert library
        columns, alive = library.described(member.shape.columns)
        self._alive += [library, columns, alive]
        cast = self._ffi.cast
        return {
            "set_input": cast("void *", library.address("set_input")),
            "forward": cast("void *", library.address("forward")),
            "backward": cast("void *", library.address("backward")),
            "columns": cast("struct column *", int(cast("uintptr_t", columns))),
            "column_count": len(member.shape.columns),
            **{name: self._pointer(getattr(member, name)) for name in "xwy"},
        }

    def _new(self, kind: str, value: Any) -> Any:
        self._alive.append(self._ffi.new(kind, value))
        return self._alive[-1]

    def _pointer(self, buffer: Any) -> Any:
        self._alive.append(self._ffi.from_buffer("double[]", buffer, True))
        return self._alive[-1]


def library_of(member: Member) -> Any:
    """The library whose functions a member's kernel calls; None if they are not called through cffi."""
    owner = getattr(member.kernel.forward, "__self__", None)
    return owner if isinstance(owner, Library) else None
