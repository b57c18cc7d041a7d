"""The update as C, written from the optimiser's expressions: in lanes where `rounding.h` has them, else one by one.

The C has one or two *stages*. Each updates some of the states, or the parameters, and has two forms: a function for a
single parameter, which is the text of the expressions, and a part of the loop over vectors. The vectors vouch for
nearly every lane. For the others, the loop calls the function.

An update with one root has two stages, and what waits for the slow root is in the second. An iteration of the loop
takes the first stage of a vector and the second one of the vector before. Neither waits for the other, so the
processor overlaps them.

Example: Adam's `v` is in the first stage, which ends with `base = v / v_share`. The second stage starts with the root
of `base`, and updates `m` and `p`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Optional

from engines.graph.expr import ATOM_PRECEDENCE, Apply, C, Expr, Leaf, Literal
from engines.graph.optimisers import BATCH, RATE, Optimiser, Q

SQUARE, ROOT = Literal(2.0), Literal(0.5)
"""The exponents that occur."""
BASE = Leaf("base")
"""What the first stage hands to the second: the number whose root is taken."""
MEAN = Apply("div", (Q, BATCH))

Statement = tuple[str, Expr]
"""A state and its next value, or `p` and its change."""


class Stage(NamedTuple):
    """A part of the update."""

    name: str
    statements: Sequence[Statement]
    hands_over: Optional[Expr] = None
    """The value of BASE, if another stage follows."""
    takes_over: Optional[Expr] = None
    """The same, in the stage that follows."""


def stages(optimiser: Optimiser) -> list[Stage]:
    """Divide the statements into stages."""
    statements = list(optimiser.steps())
    roots = [(place, base) for place, (_, expr) in enumerate(statements) for base in _bases(expr, ROOT)]
    if len(roots) == 1 and not any(_bases(roots[0][1])):
        (last, base), needed = roots[0], set(leaves(roots[0][1]))
        first: list[int] = []
        for place in reversed(range(last)):
            target, expr = statements[place]
            if target in needed:
                first.insert(0, place)
                needed |= set(leaves(expr))
        later = [place for place in range(len(statements)) if place not in first]
        if not any(statements[k][0] in leaves(statements[j][1]) for j in later for k in first if k > j):
            return [
                Stage("first_stage", [statements[place] for place in first], hands_over=base),
                Stage("last_stage", [statements[place] for place in later], takes_over=base),
            ]
    return [Stage("last_stage", statements)]


def update_in_c(optimiser: Optimiser) -> Iterator[str]:
    """`optimise`, which updates every parameter, and what it needs."""
    buffers = ("p", "q", *optimiser.states)
    numbers = (RATE.name, *optimiser.factors, BATCH.name)
    found = stages(optimiser)
    yield "struct update {"
    yield f"    double {', '.join(f'*{name}' for name in buffers)};"
    yield f"    double {', '.join(numbers)};"
    yield "};"
    names = {name: (f"u->{name}[i]", ATOM_PRECEDENCE) for name in buffers}
    names |= {name: (f"u->{name}", ATOM_PRECEDENCE) for name in numbers}
    for stage in found:
        yield f"static inline void {stage.name}(const struct update *u, long long i)"
        yield "{"
        for target, expr in stage.statements:
            yield f"    u->{target}[i] {'-=' if target == 'p' else '='} {C.spell(expr, names)[0]};"
        if stage is found[-1]:
            yield "    u->q[i] = 0.0;"
        yield "}"
    yield "static void optimise(double *p, double *q, double *const *states, const double *numbers, double batch,"
    yield "                     long long count)"
    yield "{"
    given = {"p": "p", "q": "q", "rate": "numbers[0]", "batch": "batch"}
    given |= {name: f"states[{index}]" for index, name in enumerate(optimiser.states)}
    given |= {name: f"numbers[{index}]" for index, name in enumerate(optimiser.factors, 1)}
    yield f"    const struct update u = {{{', '.join(given[name] for name in (*buffers, *numbers))}}};"
    yield "    long long i = 0;"
    yield "    (void)states;"
    yield "#ifdef IN_LANES"
    powers = [base for _, expr in optimiser.steps() for base in _bases(expr)]
    yield f"    const long long whole = {'!libm_is_known ? 0 : ' if powers else ''}count - count % LANES;"
    yield from _loop(found, buffers, numbers)
    yield "    i = whole;"
    yield "#endif"
    yield "    for (; i < count; i++) {"
    for stage in found:
        yield f"        {stage.name}(&u, i);"
    yield "    }"
    yield "}"


def _loop(found: Sequence[Stage], buffers: Sequence[str], numbers: Sequence[str]) -> Iterator[str]:
    """The loop over whole vectors."""
    vectors = [_Vectors(stage, buffers, numbers) for stage in found]
    texts = [list(vector.text(is_last=vector is vectors[-1])) for vector in vectors]
    for name in sorted({name for vector in vectors for name in vector.divisors}):
        yield f"    const struct divisor by_{name} = divisor(u.{name});"
    if len(found) == 1:
        yield "    for (; i < whole; i += LANES) {"
        yield from (f"        {line}" for line in texts[0])
        yield "    }"
        return
    yield f"    lanes next_{BASE.name} = {{0.0}};"
    yield "    /* The first stage of a vector, then the last one of the vector before, which does not wait for it. */"
    yield "    for (long long start = 0; start < whole + LANES; start += LANES) {"
    yield f"        const lanes {BASE.name} = next_{BASE.name};"
    yield "        if (start < whole) {"
    yield "            i = start;"
    yield from (f"            {line}" for line in texts[0])
    yield "        }"
    yield "        if (start > 0) {"
    yield "            i = start - LANES;"
    yield from (f"            {line}" for line in texts[1])
    yield "        }"
    yield "    }"


class _Vectors:
    """Writes a stage for a vector."""

    def __init__(self, stage: Stage, buffers: Sequence[str], numbers: Sequence[str]) -> None:
        self.divisors: set[str] = set()
        """Numbers that all lanes are divided by."""
        self._stage = stage
        self._names = {name: (f"AT(u.{name} + i)", ATOM_PRECEDENCE) for name in buffers}
        self._names |= {name: (f"u.{name}", ATOM_PRECEDENCE) for name in numbers}
        self._numbers = numbers
        self._found: dict[Expr, Leaf] = {}
        """A part of an expression -> the variable that holds it."""
        self._lines: list[str] = []
        self._count = itertools.count()

    def text(self, is_last: bool) -> Iterator[str]:
        for target, expr in self._stage.statements:
            value = self._reduced(expr)
            change = f"{self._names['p'][0]} - " if target == "p" else ""
            self._define(f"new_{target}", value, change)
            self._names[target] = (f"new_{target}", ATOM_PRECEDENCE)
        handed = self._stage.hands_over
        if handed is not None:
            # The next stage checks it, because its root needs that anyway.
            divided = self._divided(handed)
            self._lines.append(f"next_{BASE.name} = {divided or self._spelled(self._reduced(handed))};")
        yield "bits unsure = {0};"
        yield from self._lines
        targets = [target for target, _ in self._stage.statements]
        yield "if (any(unsure)) {"
        yield "    for (unsigned left = marked(unsure); left; left &= left - 1)"
        yield f"        {self._stage.name}(&u, i + __builtin_ctz(left));"
        yield from (f"    new_{name} = chosen(unsure, AT(u.{name} + i), new_{name});" for name in targets)
        if handed is not None:
            yield f"    next_{BASE.name} = {self._spelled(handed)};"
        yield "}"
        yield from (f"AT(u.{name} + i) = new_{name};" for name in targets)
        if is_last:
            yield "AT(u.q + i) = (lanes){0.0};"

    def _spelled(self, expr: Expr) -> str:
        return C.spell(expr, self._names)[0]

    def _define(self, name: str, value: Expr, change: str = "") -> None:
        """A variable, and a check that it is the same with the other doubles that libm might return."""
        self._lines.append(f"lanes {name} = {change}{self._spelled(value)};")
        results = [leaf for leaf in dict.fromkeys(leaves(value)) if leaf.startswith("result")]
        for some in itertools.product((False, True), repeat=len(results)):
            others = {name: name.replace("result", "other") for name, is_other in zip(results, some) if is_other}
            if others:
                text = self._spelled(_renamed(value, others))
                bits = f"(bits)({change}{text})"
                self._lines.append(f"unsure |= (bits){name} ^ {bits};")

    def _reduced(self, expr: Expr) -> Expr:
        """The expression with variables in place of powers and of quotients by a number. Defines the variables."""
        if not isinstance(expr, Apply):
            return expr
        if expr in self._found:
            return self._found[expr]
        if expr.primitive == "pow":
            found = self._power(*expr.operands)
        elif self._divisor(expr):
            found = Leaf("mean" if expr == MEAN else f"quotient{next(self._count)}")
            dividend = self._variable(self._reduced(expr.operands[0]))
            self._lines.append(f"const lanes {found.name} = over({dividend}, &by_{self._divisor(expr)}, &unsure);")
            self._names[found.name] = (found.name, ATOM_PRECEDENCE)
        else:
            return Apply(expr.primitive, tuple(map(self._reduced, expr.operands)))
        self._found[expr] = found
        return found

    def _power(self, base: Expr, exponent: Expr) -> Leaf:
        assert exponent in (SQUARE, ROOT)
        number = next(self._count)
        kind, exponents = ("square", 128) if exponent == SQUARE else ("root", 256)
        name = BASE.name if base == self._stage.takes_over else self._variable(self._reduced(base))
        self._lines.append(f"unsure |= outside({name}, {exponents});")
        self._lines.append(f"lanes other{number};")
        self._lines.append(f"const lanes result{number} = {kind}({name}, &other{number});")
        for each in (f"result{number}", f"other{number}"):
            self._names[each] = (each, ATOM_PRECEDENCE)
        return Leaf(f"result{number}")

    def _variable(self, expr: Expr) -> str:
        """The text of a variable with this value."""
        if isinstance(expr, Leaf):
            return self._names[expr.name][0]
        name = f"part{next(self._count)}"
        self._define(name, expr)
        self._names[name] = (name, ATOM_PRECEDENCE)
        return name

    def _divided(self, expr: Expr) -> str:
        """A quotient by a number, not checked; empty if it is another expression."""
        if not isinstance(expr, Apply) or not self._divisor(expr):
            return ""
        dividend = self._variable(self._reduced(expr.operands[0]))
        return f"over_in_range({dividend}, &by_{self._divisor(expr)})"

    def _divisor(self, expr: Apply) -> str:
        """The number that a quotient divides by; empty if that is not the same for all lanes."""
        last = expr.operands[-1]
        if expr.primitive == "div" and isinstance(last, Leaf) and last.name in self._numbers:
            self.divisors.add(last.name)
            return last.name
        return ""


def _bases(expr: Expr, exponent: Optional[Expr] = None) -> Iterator[Expr]:
    """What is raised to a power, or to this one."""
    if isinstance(expr, Apply):
        if expr.primitive == "pow" and exponent in (None, expr.operands[1]):
            yield expr.operands[0]
        for operand in expr.operands:
            yield from _bases(operand, exponent)


def leaves(expr: Expr) -> Iterable[str]:
    """The names in an expression, from left to right."""
    if isinstance(expr, Leaf):
        yield expr.name
    elif isinstance(expr, Apply):
        for operand in expr.operands:
            yield from leaves(operand)


def _renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    if isinstance(expr, Leaf):
        return Leaf(names.get(expr.name, expr.name))
    if isinstance(expr, Apply):
        return Apply(expr.primitive, tuple(_renamed(operand, names) for operand in expr.operands))
    return expr
