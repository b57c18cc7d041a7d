"""Distinguish a Value's domain error, such as log(0), from a mistake in a model or a loss."""

from __future__ import annotations

from zoomgrad.engines.api import NonFiniteLoss

# TypeError, because (-8.0) ** 0.5 is a complex number, which the next comparison or libm function refuses.
DOMAIN_ERRORS = (ArithmeticError, ValueError, TypeError)

_VALUES = (
    "zoomgrad.engines.interpreted",
    "zoomgrad.engines.graph",
    "zoomgrad.engines.native",
    "zoomgrad.engines.value_base",
    "zoomgrad_translated",
)
"""Modules in which Values compute. The last ones are those of `engines.translated`."""


def tell_domain_error(step: int, error: Exception) -> None:
    """Raise NonFiniteLoss if the error comes from a Value's computation; return if it comes from a model or a loss."""
    at = error.__traceback__
    while at and at.tb_next:
        at = at.tb_next
    if at and str(at.tb_frame.f_globals["__name__"]).startswith(_VALUES):
        raise NonFiniteLoss(step, error) from error
