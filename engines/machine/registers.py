"""Free and used registers, and the numbers that they still hold.

A value that is stored, or read from a fixed place, stays known as long as its register is not taken for something
else. A later statement that reads the place then takes the register and not memory, which saves the time of a store
and a load in each link of a chain. What is known ends at a label, where paths join, and at a call.

A vector register has *users*: `vector` takes a register for the first one, `held` and `share` add one, and `release`
ends one. The last user frees the register, which then still holds what is known of it. Whoever gets an operand from a
function is a user of its register, and passes it on or releases it. `fixed` is a user for a whole loop. A general
register has one user: `integer` takes it until the current `scope` ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Optional

from zoomgrad.engines.machine.encode import Assembler, Mem, Reg, Vec
from zoomgrad.engines.machine.target import CALLER_SAVED, POOL, W, vector_registers


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
        """width: doubles in the widest vector. reserved: general registers with addresses, as W has one, so that nobody
        may take them."""
        self.code = code
        self.width = width
        self.has_masks = width == 8
        """Whether a comparison gives a mask register."""
        self.reserved = reserved
        self.reset()

    def reset(self) -> None:
        """Make all registers free and all values unknown."""
        self.free = list(range(vector_registers(self.width)))[::-1]
        """The next one is last. Registers with known values are first, the oldest one of them last."""
        self.integers = [register for register in reversed(POOL) if register not in self.reserved]
        self.users: dict[int, int] = {}
        self.sizes: dict[int, int] = {}
        self._known: dict[Known, int] = {}
        self._values: dict[int, list[Known]] = {}
        """What each register held since it was taken. Not all of these values are still known."""
        self._joins = self.code.joins
        self.fixed: dict[Known, Vec] = {}
        """Values that do not change within a loop, and that were read before it."""

    # --- vectors -----------------------------------------------------------------------------------------------------

    def vector(self, width: int) -> Vec:
        """Take a vector register."""
        if not self.free:
            raise OutOfRegisters("a block needs more vector registers than there are")
        number = self.free.pop()
        for value in self._values.pop(number, ()):
            self._known.pop(value, None)
        self.users[number], self.sizes[number] = 1, 8 * width
        return Vec(number, 8 * width)

    def share(self, vector: Vec, users: int = 1) -> None:
        """Add users of a register in use."""
        self.users[vector.number] += users

    def may_change(self, vector: Vec) -> bool:
        """Whether a register has one user, and holds nothing that a later one may look for."""
        return self.users[vector.number] == 1 and vector.number not in self._values

    def release(self, *vectors: Vec) -> None:
        """End a use of vector registers."""
        for number, _ in vectors:
            self.users[number] -= 1
            if not self.users[number]:
                del self.users[number]
                if number in self._values:
                    self.free.insert(0, number)
                else:
                    self.free.append(number)

    def hold(self, register: Vec, value: Known) -> None:
        """Note that a register holds a value, and will not be changed as long as anybody uses it."""
        place = value.place
        if place.base in (W, *self.reserved, None) and place.index is None:
            self._end_at_joins()
            self._known[value] = register.number
            self._values.setdefault(register.number, []).append(value)

    def held(self, value: Known) -> Optional[Vec]:
        """The register that holds a value, with one more user; None if no register does."""
        if value in self.fixed:
            number = self.fixed[value].number
        else:
            self._end_at_joins()
            known = self._known.get(value)
            if known is None:
                return None
            number = known
        if number in self.users:
            self.users[number] += 1
        else:
            self.free.remove(number)
            self.users[number], self.sizes[number] = 1, max(value.size, self.sizes[number])
        return Vec(number, value.size)

    def stored(self, to: Mem, size: int) -> None:
        """Forget what a store changes."""
        if not self._known:
            return
        if to.base not in (W, *self.reserved) or to.index:
            self._known = {value: number for value, number in self._known.items() if value.place.base is None}
            return
        for value in list(self._known):
            place = value.place
            bytes_ = 8 if value.is_spread else value.size
            if place.base == to.base and place.disp < to.disp + size and to.disp < place.disp + bytes_:
                del self._known[value]

    def _end_at_joins(self) -> None:
        if self._joins != self.code.joins:
            self._joins = self.code.joins
            self._known.clear()
            self._values.clear()

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
