"""The shape of generated code: vector width, register budget, function size, rearrangements. No bit depends on it."""

from __future__ import annotations

from dataclasses import dataclass

from engines.rerolled.recover.loops import Access, Loop


@dataclass(frozen=True)
class Form:
    """The vectors of the machine, the sizes of functions, and which rearrangements to make."""

    width: int = 1
    """Doubles in a vector; 1: no vectors."""
    registers: int = 16
    """Vectors, or doubles, that the machine holds at once."""
    accumulators: int = 8
    """Lanes, or vectors of them, that a block of sums keeps in registers."""
    piece: int = 60
    """A function ends after this many lines."""
    units: int = 1
    """Translation units, at most."""
    rearrangements: tuple[str, ...] = ("in place", "deferred")
    """Names of `rearrange.PASSES`."""
    rows: int = 4
    """Rows that are taken together."""

    def is_one_block(self, loop: Loop) -> bool:
        """Whether all lanes of a sum are computed side by side, in one pass over its terms."""
        widest = self.width if lies_in_vectors(loop) else 1
        widths = vector_widths(loop.counts[-1], loop.room, widest)
        return len(loop.counts) == 1 and len(set(widths)) == 1 and len(widths) <= self.accumulators


def lies_in_vectors(loop: Loop) -> bool:
    """Whether inner lanes lie side by side, in the target and in every operand that has one for each."""
    return loop.target.lanes[-1] == 1 and all(
        isinstance(operand, float) or (isinstance(operand, Access) and operand.lanes[-1] in (0, 1))
        for segment in loop.segments
        for operand in segment.operands
    )


def vector_widths(lanes: int, room: int, widest: int) -> list[int]:
    """The vectors that cover these lanes, in doubles; the last one may reach into the room behind them.

    5 lanes with room for 8, at most 4 wide, take 4 and 4; with room for 6 they take 4 and 2.
    """
    widths: list[int] = []
    left, width = lanes, widest
    while left > 0:
        while width > room:
            width //= 2
        widths.append(width)
        left, room = left - width, room - width
    return widths
