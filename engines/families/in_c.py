"""The conductor in C, and the update that is written from the optimiser's expressions."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import random
import re
from array import array
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from engines.families.conductor import Conductor, Course, Member, Shared
from engines.graph.expr import ATOM_PRECEDENCE, Apply, C, Expr, Leaf, Literal
from engines.graph.optimisers import BATCH, Optimiser, Q, power
from engines.kernel import building, toolchains
from engines.kernel.c_text import libm, read, unit
from engines.kernel.c_tree import Declarations, Define, Include
from engines.kernel.library import Library

POWERS = {2.0: "squares", 0.5: "roots"}
"""Exponent -> the function of `rounding.h`."""
MEAN = Leaf("mean")
"""A parameter's gradient, divided by the batch."""
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


class Loop(NamedTuple):
    """A loop over the parameters of a block: `target[i] = value`, or `-=`, or a call for all of them."""

    target: str
    value: Expr
    is_change: bool = False
    call: str = ""
    """The function of `rounding.h` that computes a power of `value`, the name of an array."""


def loops(optimiser: Optimiser) -> Iterator[Loop]:
    """The update in the order in which it is computed. A power has loops of its own, for its base and for its result.

    Example: `v = 0.99 * v + pow(q / batch, 2.0)` gives `result0 = squares(mean)`, then `v = 0.99 * v + result0`.
    """
    count = itertools.count()

    def without_powers(expr: Expr) -> Generator[Loop, None, Expr]:
        """Yield the loops of the powers in an expression. Return the rest of it."""
        if not isinstance(expr, Apply):
            return expr
        if expr == Apply("div", (Q, BATCH)):
            return MEAN
        operands = []
        for operand in expr.operands:
            operands.append((yield from without_powers(operand)))
        if expr.primitive != "pow":
            return Apply(expr.primitive, tuple(operands))
        base, exponent = operands
        assert isinstance(exponent, Literal)
        number = next(count)
        if not isinstance(base, Leaf):
            yield Loop(f"base{number}", base)
            base = Leaf(f"base{number}")
        yield Loop(f"result{number}", base, call=POWERS[exponent.number])
        return Leaf(f"result{number}")

    for name, expr in optimiser.steps():
        rest = yield from without_powers(expr)
        yield Loop(name, rest, is_change=name == "p")


def _optimise(optimiser: Optimiser, width: int) -> Iterator[str]:
    """The function that updates every parameter, a block at a time."""
    found = list(loops(optimiser))
    own = [loop.target for loop in found if loop.target not in ("p", *optimiser.states)]
    arrays = ["p", "q", MEAN.name, *optimiser.states, *own]
    yield "static void optimise(double *p, double *q, double *const *states, const double *numbers, double batch,"
    yield "                     long long count)"
    yield "{"
    for index, name in enumerate(("rate", *optimiser.factors)):
        yield f"    const double {name} = numbers[{index}];"
    yield f"    double means[BLOCK]{''.join(f', {name}[BLOCK]' for name in own)};"
    yield "    (void)states;"
    yield "    for (long long start = 0; start < count; start += BLOCK, p += BLOCK, q += BLOCK) {"
    yield "        const long long length = count - start < BLOCK ? count - start : BLOCK;"
    for index, name in enumerate(optimiser.states):
        yield f"        double *const {name} = states[{index}] + start;"
    if any(MEAN in _leaves(loop.value) for loop in found):
        yield "        const double *mean = q; /* dividing by 1.0 changes nothing, but takes time */"
        yield "        if (batch != 1.0) {"
        yield from (f"    {line}" for line in _loop("means[i] = q[i] / batch", ["means", "q"], width))
        yield "            mean = means;"
        yield "        }"
    else:
        yield "        (void)means;"
    for loop in found:
        if loop.call:
            yield f"        {loop.call}({loop.value.name}, {loop.target}, length);"  # type: ignore[attr-defined]
            continue
        names = {name: (f"{name}[i]", ATOM_PRECEDENCE) for name in arrays}
        names |= {name: (name, ATOM_PRECEDENCE) for name in ("rate", "batch", *optimiser.factors)}
        sign = "-=" if loop.is_change else "="
        yield from _loop(f"{loop.target}[i] {sign} {C.spell(loop.value, names)[0]}", arrays, width)
    yield "    }"
    yield "}"


def _leaves(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Apply):
        for operand in expr.operands:
            yield from _leaves(operand)
    else:
        yield expr


def _loop(statement: str, arrays: Sequence[str], width: int) -> Iterator[str]:
    """A statement for each `i` of a block: in vectors while they last, then one by one."""
    yield "        {"
    yield "            long long i = 0;"
    if width > 1:
        pattern = rf"\b({'|'.join(arrays)})\[i\]"
        yield "            for (; i + LANES <= length; i += LANES)"
        yield f"                {re.sub(pattern, lambda found: f'AT({found[1]} + i)', statement)};"
    yield "            for (; i < length; i++)"
    yield f"                {statement};"
    yield "        }"


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
