"""Where an operand of a segment is: a pointer or an index, and what to add for lanes and terms."""

from __future__ import annotations

from typing import Optional

from zoomgrad.engines.machine.encode import Reg
from zoomgrad.engines.rerolled.form import Vector
from zoomgrad.engines.rerolled.recover.nest import Stride


class Source:
    """An operand of a segment, and the registers that its address needs."""

    def __init__(self, base: Reg, disp: int, lanes: tuple[Stride, ...], index: Optional[Reg] = None) -> None:
        self.base = base
        self.disp = disp
        self.lanes = lanes
        self.index = index
        """Added to the address, `scale` times."""
        self.scale = 8
        self.terms: tuple[Stride, ...] = ()
        self.list: Optional[Reg] = None
        """Points to a list of places or of offsets, of which each element has 4 bytes."""
        self.list_lanes: tuple[int, ...] = ()
        """From lane to lane in that list."""
        self.list_terms: tuple[int, ...] = ()
        """From term to term in that list."""
        self.owned: list[Reg] = []
        """Registers to release after the segment."""

    def offset(self, lanes: Vector, term: int) -> int:
        """The distance in places from the pointer, for lanes of a block and an unrolled term."""
        total = 0
        for stride, by in zip(self.lanes, lanes.offsets):
            if by:
                assert isinstance(stride, int)
                total += stride * by
        if term and self.terms and isinstance(self.terms[-1], int):
            total += self.terms[-1] * term
        return total

    def is_same(self, width: int) -> bool:
        """Whether all lanes of a vector read the same place."""
        return width > 1 and not self.lanes[-1]

    def element(self, lanes: Vector, term: int) -> int:
        """The distance in bytes from the list's pointer."""
        at = sum(stride * by for stride, by in zip(self.list_lanes, lanes.offsets))
        return 4 * (at + (self.list_terms[-1] * term if self.list_terms and term else 0))
