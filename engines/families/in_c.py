"""The conductor in C, and the update that is written from the optimiser's expressions."""

from __future__ import annotations

import contextlib
import math
import os
import random
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from engines.families.conductor import Conductor, Course, Member, Shared
from engines.graph.expr import ATOM_PRECEDENCE, Apply, C, Expr, Literal
from engines.graph.optimisers import Optimiser, power
from engines.kernel import building, toolchains
from engines.kernel.c_text import libm, read, unit
from engines.kernel.c_tree import Declarations, Define, Include
from engines.kernel.library import Library

POWERS = {2.0: "square", 0.5: "root"}
"""Exponent -> the function of `rounding.h`."""
PROBES = 256
"""Numbers whose powers are compared with libm's before lanes are used."""


def source(optimiser: Optimiser, width: int) -> str:
    """The C of a conductor. width: doubles in a vector, or 1."""
    return unit(
        [
            Define("LANES", width),
            Define("NUMBERS", 1 + len(optimiser.factors)),
            libm([("pow", 2)]),
            Include("families/rounding.h"),
            Declarations(list(_optimise(optimiser, width))),
            Include("kernel/kernel.h"),
            Include("families/conduct.h"),
            Include("families/conduct.c"),
        ]
    )


def _optimise(optimiser: Optimiser, width: int) -> Iterator[str]:
    """The function that updates every parameter: in vectors while they last, then one by one."""
    yield "static void optimise(double *restrict p, const double *restrict q, double *const *states,"
    yield "                     const double *numbers, double batch, long long count)"
    yield "{"
    for index, name in enumerate(("rate", *optimiser.factors)):
        yield f"    const double {name} = numbers[{index}];"
    for index, name in enumerate(optimiser.states):
        yield f"    double *restrict const every_{name} = states[{index}];"
    yield "    long long i = 0;"
    yield "    (void)states;"
    yield "    if (batch == 1.0) { /* dividing by 1.0 changes nothing, but takes time */"
    yield from _loops(optimiser, width, single=True)
    yield "    } else {"
    yield from _loops(optimiser, width, single=False)
    yield "    }"
    yield "}"


def _loops(optimiser: Optimiser, width: int, *, single: bool) -> Iterator[str]:
    if width > 1:
        yield "        for (; i + LANES <= count; i += LANES) {"
        yield from _body(optimiser, "lanes", "AT({})", "_lanes", single)
        yield "        }"
    yield "        for (; i < count; i++) {"
    yield from _body(optimiser, "double", "*({})", "", single)
    yield "        }"


def _body(optimiser: Optimiser, kind: str, at: str, suffix: str, single: bool) -> Iterator[str]:
    """The update of one parameter, or of as many as a vector holds."""
    yield f"            const {kind} one_q = {at.format('q + i')};"
    for name in optimiser.states:
        yield f"            {kind} {name} = {at.format(f'every_{name} + i')};"
    names = {name: (name, ATOM_PRECEDENCE) for name in optimiser.leaves}
    names["q"] = ("one_q", ATOM_PRECEDENCE)
    for name, expr in optimiser.steps(single=single):
        text = C.spell(_with_powers(expr, suffix), names)[0]
        yield f"            {at.format('p + i') + ' -=' if name == 'p' else name + ' ='} {text};"
    for name in optimiser.states:
        yield f"            {at.format(f'every_{name} + i')} = {name};"


def _with_powers(expr: Expr, suffix: str) -> Expr:
    """The expression with the functions of `rounding.h` instead of `pow`."""
    if not isinstance(expr, Apply):
        return expr
    operands = tuple(_with_powers(operand, suffix) for operand in expr.operands)
    if expr.primitive == "pow":
        base, exponent = operands
        assert isinstance(exponent, Literal)
        return Apply(POWERS[exponent.number] + suffix, (base,))
    return Apply(expr.primitive, operands)


@cache
def interface() -> Any:
    """cffi's view of the conductor."""
    import cffi

    parsed = cffi.FFI()
    parsed.cdef(read("kernel/kernel.h"))
    parsed.cdef(read("families/conduct.h"))
    return parsed


def load(tool: toolchains.Toolchain, flags: Sequence[str], optimiser: Optimiser, width: int) -> Any:
    """Compile a conductor, and load it. Raises BuildFailed."""
    with building.build(tool, [source(optimiser, width)], flags) as built, building.loading():
        return interface().dlopen(str(built.path))


def libm_is_known(lib: Any) -> bool:
    """Whether the error of this libm's `pow` has a known bound, and its results are as the bound says."""
    version = ""
    with contextlib.suppress(AttributeError, ValueError, OSError):
        version = os.confstr("CS_GNU_LIBC_VERSION") or ""
    name, _, number = version.partition(" ")
    digits = tuple(int(part) for part in number.split(".")[:2] if part.isdigit())
    return name == "glibc" and digits >= (2, 28) and _are_as_libm(lib)


def _are_as_libm(lib: Any) -> bool:
    rng = random.Random(1)
    found = array("d", bytes(8 * PROBES))
    for root, exponent in ((0, 2.0), (1, 0.5)):
        numbers = array("d", [math.ldexp(1 + rng.random(), rng.randrange(-60, 60)) for _ in found])
        pointers = [interface().from_buffer("double[]", buffer) for buffer in (numbers, found)]
        lib.powers(*pointers, PROBES, root, 1)
        if any(x != power(number, exponent) for x, number in zip(found, numbers)):
            return False
    return True


class ConductorInC(Conductor):
    """Takes the steps of a family whose kernels are loaded through cffi."""

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
            "numbers": self._ffi.from_buffer("double[]", course.numbers),
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
    found = getattr(member.kernel.forward, "__self__", None)
    return found if isinstance(found, Library) else None
