"""The update as C, written from the optimiser's expressions: in lanes where `rounding.h` has them, else one by one.

The C has the update twice: as a function for one parameter, which is the text of the expressions, and as a loop over
vectors. A vector proves nearly all of its lanes right. The loop leaves the other lanes as they were and lists them, and
after each block the function updates them. The loop makes no calls, because a call would push all vectors out of their
registers.

An update that need not keep the bits has the same text, but checks no lane. Where `rounding.h` has no lanes, the
compiler makes vectors of its plain loop, with `kernel/fast.h`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from zoomgrad.engines.graph.expr import ATOM_PRECEDENCE, Apply, C, Expr, Leaf, Literal
from zoomgrad.engines.graph.optimisers import BATCH, RATE, UPDATE, Optimiser, Q

SQUARE, ROOT = Literal(2.0), Literal(0.5)
"""The exponents that occur."""
BLOCK = 8192
"""Parameters in a block, a multiple of the lanes. The list of a block takes 32 KB. With shorter blocks, the processor
would wait more often for the slow lanes."""
MEAN = Apply("div", (Q, BATCH))


def update_in_c(optimiser: Optimiser) -> Iterator[str]:
    """`optimise`, which updates every parameter, and what it needs."""
    buffers = ("p", "q", *optimiser.states)
    numbers = (RATE.name, *optimiser.factors, BATCH.name)
    yield "struct update {"
    yield f"    double {', '.join(f'*{name}' for name in buffers)};"
    yield f"    double {', '.join(numbers)};"
    yield "};"
    names = {name: (f"u->{name}[i]", ATOM_PRECEDENCE) for name in buffers}
    names |= {name: (f"u->{name}", ATOM_PRECEDENCE) for name in numbers}
    yield "static inline void update_one(const struct update *u, long long i)"
    yield "{"
    for target, expr in optimiser.steps():
        yield f"    u->{target}[i] {'-=' if target == 'p' else '='} {C.spell(expr, names)[0]};"
    yield "    u->q[i] = 0.0;"
    yield "}"
    yield "static void optimise(double *p, double *q, double *const *states, double update, double rate, double batch,"
    yield "                     long long count)"
    yield "{"
    arguments = {name: name for name in ("p", "q", "rate", "batch")}
    arguments |= {name: f"states[{index}]" for index, name in enumerate(optimiser.states)}
    leaves = {UPDATE.name: ("update", ATOM_PRECEDENCE)}
    arguments |= {name: C.spell(expr, leaves)[0] for name, expr in optimiser.factors.items()}
    yield f"    const struct update u = {{{', '.join(arguments[name] for name in (*buffers, *numbers))}}};"
    yield "    long long i = 0;"
    yield "    (void)states, (void)update;"
    yield "#ifdef IN_LANES"
    yield from (f"    {line}" for line in _loop(optimiser, buffers, numbers))
    yield "#endif"
    yield "    for (; i < count; i++)"
    yield "        update_one(&u, i);"
    yield "}"


def _loop(optimiser: Optimiser, buffers: Sequence[str], numbers: Sequence[str]) -> Iterator[str]:
    """The loop over whole vectors."""
    vectors = _Vectors(buffers, numbers)
    text = list(vectors.text(optimiser))
    powers = any(any(_powers(expr)) for _, expr in optimiser.steps())
    yield f"const long long whole = {'KEEPS_BITS && !libm_is_known ? 0 : ' if powers else ''}count - count % LANES;"
    for name in sorted(vectors.divisors):
        yield f"const struct divisor by_{name} = divisor(u.{name});"
    yield f"enum {{ BLOCK = {BLOCK} }};"
    yield "while (i < whole) {"
    yield "    const long long first = i, end = i + BLOCK < whole ? i + BLOCK : whole;"
    yield "    int again[BLOCK], count_again = 0;"
    yield "    for (; i < end; i += LANES) {"
    yield from (f"        {line}" for line in text)
    yield "    }"
    yield "    while (count_again > 0)"
    yield "        update_one(&u, first + again[--count_again]);"
    yield "}"


class _Vectors:
    """Writes the update of a vector.

    Its expressions are over buffers, numbers and its own variables. The leaf of a variable begins with a dot, because a
    state may have any name.
    """

    def __init__(self, buffers: Sequence[str], numbers: Sequence[str]) -> None:
        self.divisors: set[str] = set()
        """Numbers that all lanes are divided by."""
        self._names = {name: (f"AT(u.{name} + i)", ATOM_PRECEDENCE) for name in buffers}
        self._names |= {name: (f"u.{name}", ATOM_PRECEDENCE) for name in numbers}
        self._numbers = numbers
        self._found: dict[Expr, Leaf] = {}
        """A part of an expression -> the variable that holds it."""
        self._waiting: dict[str, Expr] = {}
        """The leaf of a new state, or of the new parameter, that no line computes yet -> its value."""
        self._lines: list[str] = []
        self._count = itertools.count()

    def text(self, optimiser: Optimiser) -> Iterator[str]:
        """The statements for the vector that begins at i.

        Powers come first, because they take longest. So the new parameter is written first, and `_new` writes what it
        needs before it.
        """
        targets: list[str] = []
        for target, expr in optimiser.steps():
            value = Leaf("p") - expr if target == "p" else expr
            self._waiting[f".new_{target}"] = _renamed(value, {name: f".new_{name}" for name in targets})
            targets.append(target)
        for target in reversed(targets):
            self._new(f".new_{target}")
        yield "bits unsure = {0};"
        yield from self._lines
        yield "lanes new_q = {0.0};"
        yield "if (KEEPS_BITS && any(unsure)) {"
        yield "    for (unsigned marks = marked(unsure); marks; marks &= marks - 1)"
        yield "        again[count_again++] = (int)(i - first) + __builtin_ctz(marks);"
        yield from (f"    new_{name} = chosen(unsure, AT(u.{name} + i), new_{name});" for name in (*targets, "q"))
        yield "}"
        yield from (f"AT(u.{name} + i) = new_{name};" for name in (*targets, "q"))

    def _new(self, leaf: str) -> None:
        """Compute a new state, or the new parameter, unless that is done."""
        if leaf in self._waiting:
            value = self._waiting.pop(leaf)
            for power in _powers(value):
                self._reduced(power)
            self._define(leaf[1:], self._reduced(value))

    def _variable(self, name: str) -> Leaf:
        self._names[f".{name}"] = (name, ATOM_PRECEDENCE)
        return Leaf(f".{name}")

    def _define(self, name: str, value: Expr) -> str:
        """A variable, and a check that it is the same with the other doubles that libm might return."""
        self._lines.append(f"lanes {name} = {self._spelled(value)};")
        results = [leaf for leaf in dict.fromkeys(_leaves(value)) if leaf.startswith(".result")]
        for some in itertools.product((False, True), repeat=len(results)):
            others = {leaf: leaf.replace("result", "other") for leaf, is_other in zip(results, some) if is_other}
            if others:
                bits = f"(bits)({self._spelled(_renamed(value, others))})"
                self._lines.append(f"unsure |= (bits){name} ^ {bits};")
        self._variable(name)
        return name

    def _spelled(self, expr: Expr) -> str:
        text = C.spell(expr, self._names)[0]
        return text if any(leaf not in self._numbers for leaf in _leaves(expr)) else f"all({text})"

    def _reduced(self, expr: Expr) -> Expr:
        """The expression with variables in place of powers and of quotients by a number. Defines the variables."""
        if isinstance(expr, Leaf):
            self._new(expr.name)
        if not isinstance(expr, Apply):
            return expr
        if expr in self._found:
            return self._found[expr]
        if expr.primitive == "pow":
            return self._power(expr)
        if self._divisor(expr):
            return self._quotient(expr, "over({}, &by_{}, &unsure)")
        return Apply(expr.primitive, tuple(map(self._reduced, expr.operands)))

    def _quotient(self, expr: Apply, text: str) -> Leaf:
        """A variable for a quotient by a number."""
        dividend = self._checked(self._reduced(expr.operands[0]))
        name = "mean" if expr == MEAN else f"quotient{next(self._count)}"
        self._lines.append(f"const lanes {name} = {text.format(dividend, self._divisor(expr))};")
        self._found[expr] = self._variable(name)
        return self._found[expr]

    def _power(self, expr: Apply) -> Leaf:
        """A variable for a power, and one for the other double that libm might return."""
        base, exponent = expr.operands
        assert exponent in (SQUARE, ROOT)
        kind, exponents = ("square", 128) if exponent == SQUARE else ("root", 256)
        if isinstance(base, Apply) and base not in self._found and self._divisor(base):
            # Its range is checked next.
            self._quotient(base, "over_in_range({}, &by_{})")
        name, number = self._checked(self._reduced(base)), next(self._count)
        self._lines.append(f"unsure |= outside({name}, {exponents});")
        self._lines.append(f"lanes other{number};")
        self._lines.append(f"const lanes result{number} = {kind}({name}, &other{number});")
        self._variable(f"other{number}")
        self._found[expr] = self._variable(f"result{number}")
        return self._found[expr]

    def _checked(self, expr: Expr) -> str:
        """The text of a vector with this value, whatever libm returned."""
        if isinstance(expr, Leaf) and expr.name not in self._numbers and not expr.name.startswith(".result"):
            return self._names[expr.name][0]
        return self._define(f"part{next(self._count)}", expr)

    def _divisor(self, expr: Apply) -> str:
        """The number that a quotient divides by; empty if that is not the same for all lanes."""
        last = expr.operands[-1]
        if expr.primitive == "div" and isinstance(last, Leaf) and last.name in self._numbers:
            self.divisors.add(last.name)
            return last.name
        return ""


def _powers(expr: Expr) -> Iterator[Apply]:
    """The powers in an expression."""
    if isinstance(expr, Apply):
        if expr.primitive == "pow":
            yield expr
        for operand in expr.operands:
            yield from _powers(operand)


def _leaves(expr: Expr) -> Iterable[str]:
    """The names in an expression, from left to right."""
    if isinstance(expr, Leaf):
        yield expr.name
    elif isinstance(expr, Apply):
        for operand in expr.operands:
            yield from _leaves(operand)


def _renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    if isinstance(expr, Leaf):
        return Leaf(names.get(expr.name, expr.name))
    if isinstance(expr, Apply):
        return Apply(expr.primitive, tuple(_renamed(operand, names) for operand in expr.operands))
    return expr
