"""Where a program leaves the real numbers: telling a Value's domain error from a mistake in a model or a loss."""

from __future__ import annotations

from engines.api import NonFiniteLoss

# (-8.0) ** 0.5 is a complex number, which the next comparison or libm function refuses with a TypeError.
DOMAIN_ERRORS = (ArithmeticError, ValueError, TypeError)

_VALUES = ("engines.interpreted", "engines.graph", "engines.derived")
"""The modules where Values compute."""


def tell_domain_error(step: int, error: Exception) -> None:
    """Raise NonFiniteLoss where the error comes from a Value's computation, not from a mistake in a model or a loss."""
    at = error.__traceback__
    while at and at.tb_next:
        at = at.tb_next
    if at and str(at.tb_frame.f_globals["__name__"]).startswith(_VALUES):
        raise NonFiniteLoss(step, error) from error
