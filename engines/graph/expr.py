"""Symbolic expressions over doubles: the language of the op table.

An expression is a leaf, a number, or a primitive applied to expressions. A back end knows primitives, not ops. It
spells the few operators below in its own way, and every other primitive as a call to the libm function of that name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Union


def _operator(primitive: str, *, is_reflected: bool = False) -> Callable[[Expr, Operand], Apply]:
    """The method of an operator. is_reflected: for a number as the left operand."""

    def method(self: Expr, other: Operand) -> Apply:
        left, right = (_expr(other), self) if is_reflected else (self, _expr(other))
        return Apply(primitive, (left, right))

    return method


class Expr:
    """An expression. Python's operators build larger ones."""

    __add__, __radd__ = _operator("add"), _operator("add", is_reflected=True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", is_reflected=True)
    __mul__, __rmul__ = _operator("mul"), _operator("mul", is_reflected=True)
    __truediv__, __rtruediv__ = _operator("div"), _operator("div", is_reflected=True)
    __lt__, __gt__ = _operator("less"), _operator("greater")

    def __neg__(self) -> Apply:
        # Only the sign of zero and of NaN can differ from a negation.
        return 0.0 - self


@dataclass(frozen=True)
class Leaf(Expr):
    """A variable of an operation: one of `LEAVES`."""

    name: str


@dataclass(frozen=True)
class Literal(Expr):
    """A number that belongs to the op itself."""

    number: float


@dataclass(frozen=True)
class Apply(Expr):
    """A primitive and its operands."""

    primitive: str
    operands: tuple[Expr, ...]


Operand = Union[Expr, float]

A, B = Leaf("a"), Leaf("b")
"""The operands."""
K = Leaf("k")
"""The constant of a row, if its op takes one."""
OUT = Leaf("out")
"""The result."""
G = Leaf("g")
"""The result's gradient."""
LEAVES = (A, B, K, OUT, G)


def where(condition: Expr, then: Operand, otherwise: Operand) -> Apply:
    """`then` if the condition holds, else `otherwise`."""
    return Apply("where", (condition, _expr(then), _expr(otherwise)))


def call(function: str, *operands: Operand) -> Apply:
    """A call to a libm function. Python's `math` has the same function under the same name."""
    return Apply(function, tuple(_expr(operand) for operand in operands))


def _expr(operand: Operand) -> Expr:
    return operand if isinstance(operand, Expr) else Literal(float(operand))


class Infix(NamedTuple):
    """An operator, spelled the same in C and Python, and its precedence."""

    symbol: str
    precedence: int


INFIX = {
    "less": Infix("<", 1),
    "greater": Infix(">", 1),
    "add": Infix("+", 2),
    "sub": Infix("-", 2),
    "mul": Infix("*", 3),
    "div": Infix("/", 3),
}
WHERE_PRECEDENCE, ATOM_PRECEDENCE = 0, 4

Text = tuple[str, int]
"""A spelled expression and the precedence of its outermost primitive."""


@dataclass(frozen=True)
class Spelling:
    """How a language spells expressions: the points where C and Python differ."""

    where: str
    """Template over {condition}, {then} and {otherwise}."""
    whole_as_int: bool = False
    """Whether a literal such as 1.0 is spelled as an int."""

    def apply(self, primitive: str, operands: Sequence[Any]) -> Text:
        """Spell a primitive over spelled operands, with the parentheses that it needs.

        operands: tuples that begin like a Text.
        """
        infix = INFIX.get(primitive)
        if infix is not None:
            (left, left_binds, *_), (right, right_binds, *_) = operands
            # Operators are left-associative: a - (b - c) needs its parentheses, (a - b) - c does not.
            left = left if left_binds >= infix.precedence else f"({left})"
            right = right if right_binds > infix.precedence else f"({right})"
            return f"{left} {infix.symbol} {right}", infix.precedence
        if primitive == "where":
            condition, then, otherwise = (text if binds else f"({text})" for text, binds, *_ in operands)
            return self.where.format(condition=condition, then=then, otherwise=otherwise), WHERE_PRECEDENCE
        return f"{primitive}({', '.join(text for text, *_ in operands)})", ATOM_PRECEDENCE

    def spell(self, expr: Expr, leaves: Mapping[str, str]) -> Text:
        """Spell an expression, given the spelling of its leaves, which need no parentheses."""
        if isinstance(expr, Apply):
            return self.apply(expr.primitive, [self.spell(operand, leaves) for operand in expr.operands])
        if isinstance(expr, Literal):
            if self.whole_as_int and expr.number.is_integer():
                return str(int(expr.number)), ATOM_PRECEDENCE
            return number(expr.number)
        assert isinstance(expr, Leaf)
        return leaves[expr.name], ATOM_PRECEDENCE


PYTHON = Spelling(where="{then} if {condition} else {otherwise}")
C = Spelling(where="{condition} ? {then} : {otherwise}")
MICROGRAD = Spelling(where=PYTHON.where, whole_as_int=True)
"""Python as in micrograd, where the result of ints is an int."""

NAMES = {leaf.name: leaf.name for leaf in LEAVES}


def calls(expr: Expr) -> Iterator[Apply]:
    """The calls of libm in an expression."""
    if isinstance(expr, Apply):
        if expr.primitive not in INFIX and expr.primitive != "where":
            yield expr
        for operand in expr.operands:
            yield from calls(operand)


def leaves(expr: Expr) -> Iterator[Leaf]:
    """The leaves from left to right, with repetitions."""
    if isinstance(expr, Leaf):
        yield expr
    elif isinstance(expr, Apply):
        for operand in expr.operands:
            yield from leaves(operand)


def number(x: float) -> Text:
    """Spell a double with the fewest digits that reproduce it. C and Python read it; only C reads NaN."""
    if math.isfinite(x):
        return repr(float(x)), ATOM_PRECEDENCE
    # Without a header, C has no name for infinity or NaN. TCC folds operations on finite numbers, even in a table.
    return "0.0 / 0.0" if x != x else "1e308 * 10.0" if x > 0 else "-1e308 * 10.0", INFIX["mul"].precedence


def function(
    *exprs: Expr, spelling: Spelling = PYTHON, functions: Mapping[str, Any] = vars(math)
) -> Callable[..., Any]:
    """Compile expressions to a Python function of a, b, k, out and g. It returns one value, or a tuple of several.

    functions: those that the expressions may call, by name.
    """
    texts = [spelling.spell(expr, NAMES)[0] for expr in exprs]
    body = texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
    made: Callable[..., Any] = eval(  # noqa: S307  (text from the op table, not from input)
        f"lambda a, b=None, k=None, out=None, g=None: {body}", {**functions, "__name__": __name__}
    )
    return made
