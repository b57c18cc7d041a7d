"""The conductor in C. Machine code updates whole vectors of parameters, and C the other parameters, one by one."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from zoomgrad.engines.graph.expr import ATOM_PRECEDENCE, C
from zoomgrad.engines.graph.optimisers import BATCH, RATE, UPDATE, Optimiser
from zoomgrad.engines.kernel import building, toolchains
from zoomgrad.engines.kernel.buffers import address
from zoomgrad.engines.kernel.c_text import libm, unit
from zoomgrad.engines.kernel.c_tree import Declarations, Define, Include
from zoomgrad.engines.kernel.library import Library
from zoomgrad.engines.lengths.conductor import Conductor, Course, Member, Shared
from zoomgrad.engines.lengths.lanes_in_machine_code import load_lanes


def source(optimiser: Optimiser, *, is_fast: bool = False) -> str:
    """The C of a conductor. is_fast: whether its bits may differ from Python's."""
    return unit(
        [
            libm([("pow", 2)]),
            *([Include("kernel/fast.h")] if is_fast else []),
            Include("kernel/kernel.h"),
            Define("FACTORS", len(optimiser.factors)),
            Include("lengths/conduct.c"),
            Declarations(list(_update(optimiser))),
        ]
    )


def _update(optimiser: Optimiser) -> Iterator[str]:
    """The functions that set the factors of an update, and that update one parameter."""
    numbers = (RATE.name, *optimiser.factors, BATCH.name)
    names = {name: (f"numbers[{index}]", ATOM_PRECEDENCE) for index, name in enumerate(numbers)}
    names |= {name: (f"shared->{name}[i]", ATOM_PRECEDENCE) for name in "pq"}
    names |= {name: (f"shared->states[{index}][i]", ATOM_PRECEDENCE) for index, name in enumerate(optimiser.states)}
    yield "static void set_factors(double *numbers, double update)"
    yield "{"
    yield "    (void)numbers, (void)update;"
    for name, expr in optimiser.factors.items():
        yield f"    {names[name][0]} = {C.spell(expr, {UPDATE.name: ('update', ATOM_PRECEDENCE)})[0]};"
    yield "}"
    yield "static void update_one(const struct shared *shared, const double *numbers, long long i)"
    yield "{"
    for target, expr in optimiser.steps():
        yield f"    {names[target][0]} {'-=' if target == 'p' else '='} {C.spell(expr, names)[0]};"
    yield "    shared->q[i] = 0.0;"
    yield "}"


@cache
def interface() -> Any:
    """cffi's view of the conductor."""
    import cffi

    parsed = cffi.FFI()
    parsed.cdef("long long take(void *shared, void *course);")
    parsed.cdef("void update_shared(void *shared, long long index, double rate, double batch);")
    return parsed


def load(tool: toolchains.Toolchain, flags: Sequence[str], optimiser: Optimiser, *, is_fast: bool = False) -> Any:
    """Compile a conductor, and load it. Raises BuildFailed."""
    with building.build(tool, [source(optimiser, is_fast=is_fast)], flags) as built, building.loading():
        return interface().dlopen(str(built.path))


class ConductorInC(Conductor):
    """Takes the steps over several lengths whose kernels are loaded through cffi."""

    def __init__(
        self,
        lib: Any,
        optimiser: Optimiser,
        members: Sequence[Member],
        shared: Shared,
        *,
        has_lanes: bool = False,
        is_fast: bool = False,
    ) -> None:
        super().__init__(optimiser, members, shared)
        self._lib, self._ffi = lib, interface()
        self._lanes = load_lanes(optimiser, shared.all, is_fast=is_fast) if has_lanes else None
        self._columns = [_library(member).described(member.shape.columns) for member in members]
        self._members = array("q", itertools.chain(*map(self._described, members, self._columns)))
        self._states = array("q", map(_address, shared.states))
        of_lanes = (0, self._lanes.words, self._lanes.list) if self._lanes else (0, 0, 0)
        self._shared = _words(self._members, shared.p, shared.q, self._states, len(shared.p), *of_lanes)

    def take(self, course: Course) -> int:
        self._choose_lanes(course.batch)
        done: int = self._lib.take(self._pointer(self._shared), self._pointer(_words(*course)))
        return done

    def update(self, index: int, rate: float, batch: int) -> None:
        self._choose_lanes(batch)
        self._lib.update_shared(self._pointer(self._shared), index, rate, float(batch))

    def _choose_lanes(self, batch: int) -> None:
        if self._lanes:
            self._shared[LANES] = self._lanes.function(batch)[0].start

    def _described(self, member: Member, described: tuple[Any, Any]) -> array[int]:
        functions = (_library(member).address(name) for name in ("set_input", "forward", "backward"))
        columns = int(self._ffi.cast("uintptr_t", described[0]))
        return _words(*functions, columns, len(member.shape.columns), member.x, member.w, member.y)

    def _pointer(self, words: array[int]) -> Any:
        return self._ffi.from_buffer("char[]", words, True)


LANES = 5
"""The place of the lanes' function in `struct shared`."""


def _words(*fields: Any) -> array[int]:
    """A structure of the C: numbers, and the addresses of buffers."""
    return array("q", (field if isinstance(field, int) else _address(field) for field in fields))


def _address(buffer: Any) -> int:
    return address(memoryview(buffer))


def _library(member: Member) -> Library:
    """The library whose functions a member's kernel calls."""
    library = getattr(member.kernel.forward, "__self__", None)
    assert isinstance(library, Library)
    return library
