"""Free and used registers.

A vector register has *users*: `vector` takes a register for the first one, `share` adds some, and `release` ends one.
The last user frees the register. Whoever gets an operand from a function is a user of its register, and passes it on
or releases it. `fixed` is a user for a whole loop. A general register has one user: `integer` takes it until the
current `scope` ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from zoomgrad.engines.machine.encode import Assembler, Mem, Reg, Vec
from zoomgrad.engines.machine.target import CALLER_SAVED, POOL, vector_registers


class OutOfRegisters(Exception):
    """A block needs more registers than the processor has."""


class Known(NamedTuple):
    """A value in memory: `size` bytes, or one double that is copied into every lane of `size` bytes."""

    place: Mem
    size: int
    is_spread: bool = False


class Registers:
    """The registers of a routine. Those in use have a number of users."""

    def __init__(self, code: Assembler, width: int, reserved: tuple[Reg, ...] = ()) -> None:
        """width: doubles in the widest vector. reserved: general registers that hold addresses, like W, and are
        never taken."""
        self.code = code
        self.width = width
        self.has_masks = width == 8
        """Whether a comparison gives a mask register."""
        self.reserved = reserved
        self.reset()

    def reset(self) -> None:
        """Make all registers free."""
        self.free = list(range(vector_registers(self.width)))[::-1]
        """The next one is last."""
        self.integers = [register for register in reversed(POOL) if register not in self.reserved]
        self.users: dict[int, int] = {}
        self.sizes: dict[int, int] = {}
        self.fixed: dict[Known, Vec] = {}
        """Values that do not change within a loop, and that were read before it."""

    # --- vectors -----------------------------------------------------------------------------------------------------

    def vector(self, width: int) -> Vec:
        """Take a vector register."""
        if not self.free:
            raise OutOfRegisters("a block needs more vector registers than there are")
        held, number = self.code.held.values(), self.free[-1]
        if number in held:  # kept, because the next loop may read it
            number = next((other for other in reversed(self.free) if other not in held), number)
        self.free.remove(number)
        self.users[number], self.sizes[number] = 1, 8 * width
        return Vec(number, 8 * width)

    def share(self, vector: Vec, users: int = 1) -> None:
        """Add users of a register in use."""
        self.users[vector.number] += users

    def release(self, *vectors: Vec) -> None:
        """End a use of vector registers."""
        for number, _ in vectors:
            self.users[number] -= 1
            if not self.users[number]:
                del self.users[number]
                self.free.append(number)

    # --- integers ----------------------------------------------------------------------------------------------------

    @contextmanager
    def scope(self) -> Iterator[None]:
        """General registers that are taken within it are free again at its end."""
        free = self.integers.copy()
        yield
        self.integers = free

    def integer(self) -> Reg:
        """Take a general register."""
        if not self.integers:
            raise OutOfRegisters("a nest needs more general registers than there are")
        return self.integers.pop()

    def used_before_a_call(self) -> tuple[Sequence[Vec], Sequence[Reg]]:
        """The registers in use that a function of libm may change."""
        vectors = [Vec(number, self.sizes[number]) for number in sorted(self.users)]
        return vectors, [register for register in POOL if register in CALLER_SAVED and register not in self.integers]

    def prefer_kept(self) -> None:
        """Take those general registers first that functions of libm keep."""
        self.integers.sort(key=CALLER_SAVED.__contains__, reverse=True)
