"""The processor's floating-point state, on which every engine's bits depend.

A library built with `-ffast-math` may switch its whole process to flush-to-zero when it is loaded, and `fesetround`
changes how every later operation rounds. Neither shows in the code that is compiled, so whoever runs a kernel asks here
first.
"""

from __future__ import annotations

# A list: constants in the code itself would be folded once, whatever the state is later.
_NUMBERS = [2.0**-1022, 0.5, 2.0, 1.0, 2.0**-53, 0.75 * 2.0**-52]


class ChangedArithmetic(ArithmeticError):
    """The processor flushes subnormal numbers to zero, or does not round to nearest."""


def check_arithmetic() -> None:
    """Raise ChangedArithmetic unless this thread computes as IEEE 754 does by default.

    Half of the smallest normal number is subnormal: an operation that flushes its result gives 0, and one that flushes
    its operand doubles 0. To the nearest, 1 + 2⁻⁵³ is 1, and 1 + 0.75 · 2⁻⁵² is more than 1; rounding upwards breaks
    the first, rounding downwards or towards zero the second.
    """
    smallest, half, two, one, below, above = _NUMBERS
    if smallest * half * two != smallest:
        raise ChangedArithmetic(
            "this processor flushes subnormal numbers to zero, so results would differ from the reference's\n"
            "  Use a new process, without the library that changed it: code built with -ffast-math does when it loads."
        )
    if one + below != one or not one + above > one:
        raise ChangedArithmetic(
            "this processor does not round to nearest, so results would differ from the reference's\n"
            "  Call fesetround(FE_TONEAREST), or use a new process."
        )
