"""Spell expressions in C, over GNU's vector types or over numbers."""

from __future__ import annotations

from collections.abc import Mapping

from zoomgrad.engines.graph.expr import ATOM_PRECEDENCE, Apply, C, Expr, Literal, Text, number


def spell(expr: Expr, leaves: Mapping[str, Text], width: int) -> Text:
    """Spell an expression over vectors of that width, or over numbers if it is 1."""
    if isinstance(expr, Literal):
        return spread(number(expr.number)[0], width), ATOM_PRECEDENCE
    if not isinstance(expr, Apply):
        return leaves[expr.name]  # type: ignore[attr-defined]
    operands = [spell(operand, leaves, width) for operand in expr.operands]
    if expr.primitive == "where":
        return f"where{width}({', '.join(text for text, _ in operands)})", ATOM_PRECEDENCE
    for at, operand in enumerate(expr.operands):
        if width > 1 and isinstance(operand, Apply) and operand.primitive in ("less", "greater"):
            operands[at] = (f"truth{width}({operands[at][0]})", ATOM_PRECEDENCE)
    return C.apply(expr.primitive, operands)


def vector(width: int) -> str:
    """The C type of a vector of numbers, or of a single one."""
    return f"v{width}" if width > 1 else "number"


def spread(text: str, width: int) -> str:
    """A vector with the same number in every lane."""
    return f"all{width}({text})" if width > 1 else text
