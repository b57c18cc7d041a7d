"""Evaluate terms in vector registers. An *operand* of an instruction is a register or a place in memory."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Union

from zoomgrad.engines.graph.expr import Apply, Expr, Leaf, Literal
from zoomgrad.engines.machine.encode import RSP, Mask, Mem, Vec
from zoomgrad.engines.machine.libm.fast import is_fast, write_fast
from zoomgrad.engines.machine.libm.powers import EXPONENTS, write_rounded_power
from zoomgrad.engines.machine.registers import Known, Registers

PREDICATES = {"less": 17, "greater": 30}
"""Comparison -> the predicate of the instruction. If an operand is NaN, the answer is False."""
NOT_EQUAL = 4
"""The predicate that is true if an operand is NaN."""
MASK = Mask(1)
"""Holds the answers of comparisons, if the processor has masks."""

Operand = Union[Vec, Mem]


class Evaluator:
    """Writes instructions that compute expressions over vectors of one width."""

    def __init__(self, registers: Registers, *, fast: bool = False, powers: bool = True) -> None:
        """fast: fuse products and sums, which changes bits. powers: compute some powers as `powers` does."""
        self.code, self.registers = registers.code, registers
        self.fast = fast
        self.exponents = EXPONENTS if powers else ()

    # --- moves -------------------------------------------------------------------------------------------------------

    def load(self, to: Vec, source: Operand) -> None:
        """Copy a vector, or one double, into a register."""
        if isinstance(source, Vec):
            self.code.vector("vmovapd", _whole(to), None, _whole(source))
        else:
            self.code.vector("vmovsd" if to.size == 8 else "vmovupd", to, None, source)

    def store(self, to: Mem, source: Vec) -> None:
        """Copy a register to memory."""
        self.code.vector("vmovsd_store" if source.size == 8 else "vmovupd_store", source, None, to)

    def spread(self, to: Vec, source: Operand) -> None:
        """Copy one double into every lane."""
        if to.size == 8:
            self.load(to, source)
        else:
            source = source._replace(size=16) if isinstance(source, Vec) else source
            self.code.vector("vmovddup" if to.size == 16 else "vbroadcastsd", to, None, source)

    def clear(self, to: Vec) -> None:
        """Set a register to 0.0."""
        small = to._replace(size=16)  # clears the rest of the register, too
        self.code.vector("vxorpd", small, small, small)

    def constant(self, number: float, width: int) -> Mem:
        """A number in every lane, in memory."""
        return self.code.constant(struct.pack("<d", number) * width)

    def read(self, value: Known) -> Vec:
        """The register of a value in memory, with one more user. It must not be changed."""
        if value in self.registers.fixed:
            register = self.registers.fixed[value]
            self.registers.share(register)
            return register
        register = self.registers.vector(value.size // 8)
        if value.place.label and value.place == self.constant(0.0, value.size // 8):
            self.clear(register)
            return register
        (self.spread if value.is_spread else self.load)(register, value.place)
        return register

    @contextmanager
    def fixed(self, values: Iterable[Known], *, reserve: int = 0) -> Iterator[None]:
        """Read values before loops that do not change them, as long as more registers are free than the reserve."""
        fixed, own = self.registers.fixed, []
        for value in values:
            if value not in fixed and len(self.registers.free) > reserve:
                fixed[value] = self.read(value)
                own.append(value)
        yield
        self.registers.release(*map(fixed.pop, own))

    # --- expressions -------------------------------------------------------------------------------------------------

    def evaluate(self, expr: Expr, leaves: Sequence[Operand], width: int) -> Operand:
        """Compute an expression. leaves: an operand for each slot; a register has a user for each read."""
        if isinstance(expr, Leaf):
            return leaves[int(expr.name)]
        if isinstance(expr, Literal):
            return self.constant(expr.number, width)
        assert isinstance(expr, Apply)
        if expr.primitive in ("add", "sub", "mul", "div"):
            first, second = [self.evaluate(operand, leaves, width) for operand in expr.operands]
            return self.binary(expr.primitive, first, second, width)
        if expr.primitive == "where":
            condition, then, otherwise = expr.operands
            return self._where(condition, then, otherwise, leaves, width)
        if expr.primitive in PREDICATES:
            return self._where(expr, Literal(1.0), Literal(0.0), leaves, width)
        return self._call(expr, leaves, width)

    def in_register(self, operand: Operand, width: int) -> Vec:
        """A register that holds the operand. It must not be changed."""
        return operand if isinstance(operand, Vec) else self.read(Known(operand, 8 * width))

    def in_own_register(self, operand: Operand, width: int) -> Vec:
        """A register that holds the operand, and that nothing else uses."""
        if isinstance(operand, Vec) and self.registers.users[operand.number] == 1:
            return operand
        to = self.registers.vector(width)
        self.load(to, operand)
        self.release(operand)
        return to

    def release(self, *operands: Operand) -> None:
        """End the use of operands that are registers."""
        self.registers.release(*[operand for operand in operands if isinstance(operand, Vec)])

    def binary(self, name: str, first: Operand, second: Operand, width: int) -> Vec:
        """Apply an instruction to two operands, and release them."""
        if name in ("add", "mul") and isinstance(first, Mem):
            first, second = second, first
        one = self.in_register(first, width)
        self.release(one, second)  # first, because the result may take the register of an operand
        to = self.registers.vector(width)
        self.code.vector(f"v{name}{'pd' if width > 1 else 'sd'}", to, one, second)
        return to

    def total(self, vector: Vec) -> Vec:
        """The sum of a vector's numbers. Releases the vector."""
        swaps = [("vshuff64x2", 0x4E), ("vshuff64x2", 0xB1)] if vector.size == 64 else [("vperm2f128", 0x01)]
        for name, immediate in [*swaps, ("vunpckhpd", None)]:  # swap halves, then quarters, and so on
            other, width = self.registers.vector(vector.size // 8), vector.size // 8
            self.code.vector(name, other, vector, vector, immediate=immediate)
            vector = self.binary("add", vector, other, width)
        return vector._replace(size=8)

    def _where(self, condition: Expr, then: Expr, otherwise: Expr, leaves: Sequence[Operand], width: int) -> Vec:
        assert isinstance(condition, Apply)
        one, other = condition.operands
        for first, second, names in ((one, other, ("max", "min")), (other, one, ("min", "max"))):
            if _is_same(then, first, leaves) and _is_same(otherwise, second, leaves):
                # The instruction gives its second operand if the numbers are equal or one of them is NaN.
                a, b, *unused = (self.evaluate(part, leaves, width) for part in (first, second, then, otherwise))
                self.release(*unused)
                return self.binary(names[condition.primitive == "less"], a, b, width)
        taken, rest = (self.evaluate(part, leaves, width) for part in (then, otherwise))
        rest = self.in_register(rest, width)
        if width == 1:
            taken = self.in_register(taken, width)
        left, right = (self.evaluate(part, leaves, width) for part in (one, other))
        left = self.in_register(left, width)
        self.release(left, right)
        # The answers: a bit for each lane, or a register with all bits of each lane set or clear.
        mask: Union[Mask, Vec] = MASK if self.registers.has_masks else self.registers.vector(width)
        name = "vcmppd" if width > 1 else "vcmpsd"
        self.code.vector(name, mask, left, right, immediate=PREDICATES[condition.primitive])
        self.release(taken, rest)
        to = self.registers.vector(width)
        self.blend(_whole(to), _whole(rest), _whole(taken) if isinstance(taken, Vec) else taken, mask)
        if isinstance(mask, Vec):
            self.registers.release(mask)
        return to

    def blend(self, to: Vec, first: Vec, second: Operand, mask: Union[Mask, Vec]) -> None:
        """Set masked lanes to those of the second operand, and other lanes to those of the first."""
        if isinstance(mask, Mask):
            self.code.vector("vblendmpd", to, first, second, mask=mask)
        else:
            self.code.vector("vblendvpd", to, first, second, immediate=mask.number << 4)

    # --- calls -------------------------------------------------------------------------------------------------------

    def _call(self, expr: Apply, leaves: Sequence[Operand], width: int) -> Operand:
        """Call a function of libm for one number, or compute what it would give."""
        exponent = expr.operands[-1]
        values = [self.evaluate(operand, leaves, width) for operand in expr.operands]
        power = exponent.number if expr.primitive == "pow" and isinstance(exponent, Literal) else 0.0
        if power == 1.0 and self.exponents:
            return values[0]  # as in rerolled/emit/powers.h
        if self.fast and is_fast(expr):
            return write_fast(self, expr, self.in_register(values[0], width), width)
        assert width == 1
        if power in self.exponents:
            x, to = self.in_register(values[0], 1), self.registers.vector(1)

            def call_libm() -> None:
                self.release(x)  # before its last use, so that the call does not keep it
                self.call("pow", (x, values[1]), to)

            write_rounded_power(self, x, power, to, call_libm)
            return to
        self.release(*values)
        to = self.registers.vector(1)
        self.call(expr.primitive, values, to)
        return to

    def call(self, function: str, arguments: Sequence[Operand], to: Vec) -> None:
        """Call a function of doubles, and keep all registers in use.

        The upper parts of registers must be clear, as at the start of a nest with calls.
        """
        code = self.code
        used, integers = self.registers.used_before_a_call()
        vectors = [vector for vector in used if vector.number != to.number]
        starts = list(itertools.accumulate((vector.size for vector in vectors), initial=8 * len(integers)))
        frame = starts[-1] + -starts[-1] % 16  # routines begin at a multiple of 16
        kept = [(register, Mem(RSP, 8 * at)) for at, register in enumerate(integers)]
        kept_vectors = [(vector, Mem(RSP, at)) for vector, at in zip(vectors, starts)]
        if frame:
            code.integer("sub", RSP, frame)
        for register, place in kept:
            code.integer("mov", place, register)
        for vector, place in kept_vectors:
            self.store(place, vector)
        for number, argument in enumerate(arguments):
            assert number == 0 or isinstance(argument, Mem)  # the first argument may be in any register
            if argument != Vec(number, 8):
                self.load(Vec(number, 8), argument)
        if any(vector.size > 16 for vector in vectors):
            code.plain("vzeroupper")
        code.integer("call", code.function(function))
        if to.number:
            self.load(to, Vec(0, 8))
        for register, place in kept:
            code.integer("mov", register, place)
        for vector, place in kept_vectors:
            self.load(vector, place)
        if frame:
            code.integer("add", RSP, frame)


def _is_same(one: Expr, other: Expr, leaves: Sequence[Operand]) -> bool:
    """Whether two expressions are the same leaf or number."""
    if isinstance(one, Leaf) and isinstance(other, Leaf):
        return leaves[int(one.name)] == leaves[int(other.name)]
    return isinstance(one, Literal) and isinstance(other, Literal) and repr(one.number) == repr(other.number)


def _whole(vector: Vec) -> Vec:
    """The register as at least 16 bytes: a move of one double would merge."""
    return vector._replace(size=max(16, vector.size))
