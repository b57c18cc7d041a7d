"""Evaluate terms in vector registers.

An *operand* of an instruction is a register or a place in memory. A value that several sums of a block read is loaded
once; `Values` counts the readers and frees the register after the last one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple, Union

from zoomgrad.engines.graph.expr import Apply, Expr, Leaf, Literal
from zoomgrad.engines.machine.encode import RAX, RSP, Assembler, Mem, Reg, Vec
from zoomgrad.engines.machine.powers import EXPONENTS, Powers
from zoomgrad.engines.machine.target import CALLER_SAVED, POOL, Target

LESS, GREATER = 17, 30
"""Predicates of comparisons: false if an operand is NaN."""


class OutOfRegisters(Exception):
    """A block needs more registers than the processor has."""


class Registers:
    """Free and used registers of both kinds."""

    def __init__(self, target: Target) -> None:
        self.vectors = list(range(target.registers))[::-1]
        self.integers = list(POOL)[::-1]
        self.all = target.registers

    def vector(self, width: int) -> Vec:
        """Take a vector register."""
        if not self.vectors:
            raise OutOfRegisters("a block needs more vector registers than there are")
        return Vec(self.vectors.pop(), 8 * width)

    def free(self, *vectors: Vec) -> None:
        """Give vector registers back."""
        self.vectors += [vector.number for vector in vectors]

    def integer(self) -> Reg:
        """Take a general register."""
        if not self.integers:
            raise OutOfRegisters("a nest needs more general registers than there are")
        return self.integers.pop()

    def release(self, *registers: Reg) -> None:
        """Give general registers back."""
        self.integers += registers

    def used_vectors(self) -> list[int]:
        return [number for number in range(self.all) if number not in self.vectors]

    def used_integers(self) -> list[Reg]:
        return [register for register in POOL if register not in self.integers]


Operand = Union[Vec, Mem]


class Value(NamedTuple):
    """An operand, and whether its register may be overwritten or freed."""

    operand: Operand
    is_ours: bool


class Evaluator:
    """Writes instructions that compute expressions over vectors of one width."""

    def __init__(
        self, code: Assembler, target: Target, registers: Registers, *, fast: bool = False, powers: bool = True
    ) -> None:
        """fast: fuse products and sums, which changes bits. powers: compute some powers as `powers` does."""
        self.code = code
        self.target = target
        self.registers = registers
        self.fast = fast
        self.exponents = EXPONENTS if powers else ()

    # --- moves -------------------------------------------------------------------------------------------------------

    def load(self, to: Vec, source: Operand) -> None:
        """Copy a vector, or one double, into a register."""
        if isinstance(source, Vec):
            self.code.vector("vmovapd", self._whole(to), None, self._whole(source))
        else:
            self.code.vector("vmovsd" if to.size == 8 else "vmovupd", to, None, source)

    def store(self, to: Mem, source: Vec) -> None:
        """Copy a register to memory."""
        self.code.vector("vmovsd_store" if source.size == 8 else "vmovupd_store", source, None, to)

    def spread(self, to: Vec, source: Mem) -> None:
        """Load one double into every lane."""
        if to.size > 8:
            self.code.vector("vmovddup" if to.size == 16 else "vbroadcastsd", to, None, source)
        else:
            self.load(to, source)

    def clear(self, to: Vec) -> None:
        """Set a register to 0.0."""
        small = Vec(to.number, 32 if to.number < 16 else 64)
        self.code.vector("vxorpd", small, small, small)

    def constant(self, number: float, width: int) -> Mem:
        """A number in every lane, in memory."""
        return self.code.constant(struct.pack("<d", number) * width)

    @staticmethod
    def _whole(vector: Vec) -> Vec:
        """The register as at least 16 bytes: a move of one double would merge."""
        return vector._replace(size=max(16, vector.size))

    # --- expressions -------------------------------------------------------------------------------------------------

    def evaluate(self, expr: Expr, leaves: Sequence[Operand], width: int) -> Value:
        """Compute an expression. leaves: an operand for each slot; the caller keeps their registers."""
        if isinstance(expr, Leaf):
            return Value(leaves[int(expr.name)], False)
        if isinstance(expr, Literal):
            return Value(self.constant(expr.number, width), False)
        assert isinstance(expr, Apply)
        if expr.primitive in ("add", "sub", "mul", "div"):
            return self._arithmetic(expr, leaves, width)
        if expr.primitive == "where":
            return self._where(expr, leaves, width)
        if expr.primitive in ("less", "greater"):
            return self._truth(expr, leaves, width)
        return self._call(expr, leaves, width)

    def in_register(self, value: Value, width: int) -> Value:
        """The value in a register."""
        if isinstance(value.operand, Vec):
            return value
        register = self.registers.vector(width)
        self.load(register, value.operand)
        return Value(register, True)

    def free(self, *values: Value) -> None:
        """Free the registers of values that are ours."""
        for operand, is_ours in values:
            if is_ours and isinstance(operand, Vec):
                self.registers.free(operand)

    def binary(self, name: str, first: Value, second: Value, width: int) -> Value:
        """Apply an instruction, in a register of an operand if one of them is ours."""
        if name in ("add", "mul") and isinstance(first.operand, Mem):
            first, second = second, first
        first = self.in_register(first, width)
        assert isinstance(first.operand, Vec)
        if first.is_ours:
            to = first.operand
            self.free(second)
        elif second.is_ours and isinstance(second.operand, Vec):
            to = second.operand
        else:
            to = self.registers.vector(width)
        self.code.vector(f"v{name}{'pd' if width > 1 else 'sd'}", to, first.operand, second.operand)
        return Value(to, True)

    def _arithmetic(self, expr: Apply, leaves: Sequence[Operand], width: int) -> Value:
        first, second = (self.evaluate(operand, leaves, width) for operand in expr.operands)
        return self.binary(expr.primitive, first, second, width)

    def _compared(self, expr: Expr, leaves: Sequence[Operand], width: int) -> Union[int, Vec]:
        """Compare: the number of a mask register, or a register with all bits of each lane set or clear."""
        assert isinstance(expr, Apply)
        predicate = LESS if expr.primitive == "less" else GREATER
        first, second = (self.in_register(self.evaluate(operand, leaves, width), width) for operand in expr.operands)
        one, other = first.operand, second.operand
        assert isinstance(one, Vec)
        assert isinstance(other, Vec)
        self.free(first, second)
        to: Union[int, Vec] = 1 if self.target.masks else self._whole(self.registers.vector(width))
        self.code.vector("vcmppd", to, self._whole(one), self._whole(other), immediate=predicate)
        return to

    def _where(self, expr: Apply, leaves: Sequence[Operand], width: int) -> Value:
        condition, then, otherwise = expr.operands
        taken, rest = (self.in_register(self.evaluate(one, leaves, width), width) for one in (then, otherwise))
        mask = self._compared(condition, leaves, width)
        one, other = taken.operand, rest.operand
        assert isinstance(one, Vec)
        assert isinstance(other, Vec)
        to = self.registers.vector(width)
        if isinstance(mask, int):
            self.code.vector("vblendmpd", self._whole(to), self._whole(other), self._whole(one), mask=mask)
        else:
            blended = self._whole(to), self._whole(other), self._whole(one)
            self.code.vector("vblendvpd", *blended, immediate=mask.number << 4)
            self.registers.free(mask)
        self.free(taken, rest)
        return Value(to, True)

    def _truth(self, expr: Apply, leaves: Sequence[Operand], width: int) -> Value:
        """1.0 where the comparison holds, else 0.0."""
        mask = self._compared(expr, leaves, width)
        ones = self.constant(1.0, max(2, width))
        if isinstance(mask, int):
            to = self.registers.vector(width)
            self.code.vector("vmovapd", self._whole(to), None, ones, mask=mask, zero=True)
            return Value(to, True)
        self.code.vector("vandpd", mask, mask, ones)
        return Value(mask._replace(size=8 * width), True)

    def _call(self, expr: Apply, leaves: Sequence[Operand], width: int) -> Value:
        """Call a function of libm. Such loops are scalar, as in C."""
        assert width == 1, expr
        arguments = [self.in_register(self.evaluate(operand, leaves, 1), 1) for operand in expr.operands]
        registers = [argument.operand for argument in arguments]
        to = self.registers.vector(1)
        exponent = expr.operands[-1]

        def call() -> None:
            self.call(expr.primitive, registers, to)

        if expr.primitive == "pow" and isinstance(exponent, Literal) and exponent.number in self.exponents:
            x = registers[0]
            assert isinstance(x, Vec)
            Powers(self).write(x, exponent.number, to, call)
        else:
            call()
        self.free(*arguments)
        return Value(to, True)

    def call(self, function: str, arguments: Sequence[Operand], to: Vec) -> None:
        """Call a function of doubles, and keep all registers in use."""
        code = self.code
        kept = [register for register in self.registers.used_integers() if register in CALLER_SAVED]
        vectors = [number for number in self.registers.used_vectors() if number != to.number]
        for_vectors, for_arguments = 8 * len(kept), 8 * len(kept) + 64 * len(vectors)
        frame = for_arguments + 16
        frame += -frame % 16  # routines begin at a multiple of 16
        code.integer("sub", RSP, frame)
        for at, register in enumerate(kept):
            code.move(Mem(RSP, 8 * at), register)
        whole = 8 * self.target.width
        for at, number in enumerate(vectors):
            self.store(Mem(RSP, for_vectors + 64 * at), Vec(number, whole))
        for at, argument in enumerate(arguments):  # by way of memory, because a register may be another argument's
            assert isinstance(argument, Vec)
            self.store(Mem(RSP, for_arguments + 8 * at), argument)
        for at in range(len(arguments)):
            self.load(Vec(at, 8), Mem(RSP, for_arguments + 8 * at))
        code.plain("vzeroupper")
        code.move(RAX, code.function(function))
        code.call(RAX)
        if to.number:
            self.load(to, Vec(0, 8))
        for at, number in enumerate(vectors):
            self.load(Vec(number, whole), Mem(RSP, for_vectors + 64 * at))
        for at, register in enumerate(kept):
            code.move(register, Mem(RSP, 8 * at))
        code.integer("add", RSP, frame)
