"""The processor's floating-point state, on which every engine's bits depend.

Loading a library built with `-ffast-math` may switch the whole process to flush-to-zero, and `fesetround` changes how
every later operation rounds. Neither is visible in the compiled code, so engines call `check_arithmetic` before they
run a kernel.
"""

from __future__ import annotations

# A list, because Python folds a constant expression once, when it compiles the code, and the state may change later.
_NUMBERS = [2.0**-1022, 0.5, 2.0, 1.0, 2.0**-53, 0.75 * 2.0**-52]


class ChangedArithmetic(ArithmeticError):
    """The processor flushes subnormal numbers to zero, or does not round to nearest."""


def check_arithmetic() -> None:
    """Raise ChangedArithmetic unless this thread computes with IEEE 754's default settings.

    Half of the smallest normal number is subnormal. A processor that flushes results computes 0 for it, and one that
    flushes operands doubles 0 afterwards. Rounded to nearest, 1 + 2⁻⁵³ is 1 and 1 + 0.75 · 2⁻⁵² is more than 1.
    Rounding up breaks the first; rounding down or towards zero breaks the second.
    """
    smallest, half, two, one, below, above = _NUMBERS
    if smallest * half * two != smallest:
        raise ChangedArithmetic(
            "this processor flushes subnormal numbers to zero, so results would differ from the reference's\n"
            "  Use a new process, without the library that changed it: loading code built with -ffast-math does."
        )
    if one + below != one or not one + above > one:
        raise ChangedArithmetic(
            "this processor does not round to nearest, so results would differ from the reference's\n"
            "  Call fesetround(FE_TONEAREST), or use a new process."
        )
