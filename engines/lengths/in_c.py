"""The conductor in C. Machine code updates whole vectors of parameters, and C the other parameters, one by one."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from zoomgrad.engines.graph.expr import ATOM_PRECEDENCE, C
from zoomgrad.engines.graph.optimisers import BATCH, RATE, UPDATE, Optimiser
from zoomgrad.engines.kernel import building, toolchains
from zoomgrad.engines.kernel.c_text import libm, read, unit
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
            Include("lengths/conduct.h"),
            Define("FACTORS", len(optimiser.factors)),
            Declarations(list(_update(optimiser))),
            Include("lengths/conduct.c"),
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
    parsed.cdef(read("kernel/kernel.h"))
    parsed.cdef(read("lengths/conduct.h"))
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
            },
        )
        if self._lanes:
            self._shared.words = self._ffi.from_buffer("long long[]", self._lanes.words, True)
            self._shared.list = self._ffi.from_buffer("long long[]", self._lanes.list, True)

    def update(self, index: int, rate: float, batch: int) -> None:
        self._choose_lanes(batch)
        self._lib.update_shared(self._shared, index, rate, float(batch))

    def _choose_lanes(self, batch: int) -> None:
        if self._lanes:
            self._shared.lanes = self._ffi.cast("void *", self._lanes.function(batch)[0].start)

    def take(self, course: Course) -> int:
        self._choose_lanes(course.batch)
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
