"""Does a program's class compute what micrograd's Value computes? Small expressions tell.

`differing` evaluates each of PROBES with both classes, and compares the data and the gradients. An expression that
either class can't evaluate says nothing. Example: with a leaky `relu`, the expression `a.relu()` gives -0.03 for -3.0
where micrograd gives 0, so `relu` differs.
"""

from __future__ import annotations

import contextlib
import copy
import io
import math
import sys
import warnings
from collections.abc import Callable
from typing import Any, Optional

from zoomgrad.engines.interpreted.tuple import Value
from zoomgrad.harness.worker.programs.own_modules import WrongScript


def _again(out: Any) -> Any:
    out.backward()
    return out


PROBES: dict[str, tuple[Callable[[Any, Any], Any], ...]] = {
    "+": (lambda a, b: a + b, lambda a, b: a + 2.0, lambda a, b: 2.0 + b, lambda a, b: a + a),
    "-": (lambda a, b: a - b, lambda a, b: a - 2.0, lambda a, b: 2.0 - b, lambda a, b: -a),
    "*": (lambda a, b: a * b, lambda a, b: a * 2.0, lambda a, b: 2.0 * b, lambda a, b: a * a),
    "/": (lambda a, b: a / b, lambda a, b: a / 4.0, lambda a, b: 4.0 / a),
    "**": (lambda a, b: a**2, lambda a, b: a**3, lambda a, b: a**-1, lambda a, b: a**0.5),
    "relu": (lambda a, b: a.relu(),),
    "tanh": (lambda a, b: a.tanh(),),
    "sigmoid": (lambda a, b: a.sigmoid(),),
    "exp": (lambda a, b: a.exp(),),
    "log": (lambda a, b: a.log(),),
    "max": (lambda a, b: a.max(b), lambda a, b: b.max(1.0)),
    "backward": (lambda a, b: (a + b) * (a * b), lambda a, b: _again(a * b + a)),
}
"""What to compare -> expressions. The second `backward` of a graph adds to its gradients."""

OPERANDS = ((0.5, -1.25), (-3.0, 2.0), (0.0, 0.0), (30.0, 1e-12), (1e-300, -600.0), (600.0, 0.1))
"""Numbers for a and b, with those at which a variant of an operation may differ: limits, leaks and small terms."""

Numbers = list[Optional[float]]  # None for what can't be read


def _observe(
    make: Any, expression: Callable[[Any, Any], Any], operands: tuple[float, float], data: str, grad: str
) -> Numbers:
    """The result's data, then its gradient and those of both operands. Empty if the class lacks the operation."""
    found: Numbers = []
    with contextlib.suppress(Exception):
        leaves = [make(number) for number in operands]
        out = expression(*leaves)
        found.append(_number(out, data))
        out.backward()
        found += [_number(v, grad) for v in (out, *leaves)]
    return found


def _number(v: Any, attribute: str) -> Optional[float]:
    try:
        return float(getattr(v, attribute))
    except (AttributeError, TypeError, ValueError, OverflowError):
        return None


EXPECTED = {
    (name, i, operands): _observe(Value, expression, operands, "data", "grad")
    for name, expressions in PROBES.items()
    for i, expression in enumerate(expressions)
    for operands in OPERANDS
}
"""Computed before an engine's operators create the class of a program."""


def check(name: str, definition: str, names: dict[str, str], place: str) -> None:
    """Raise WrongScript if a program's class computes something else than a Value.

    Called in the program in place of the class's definition. It executes the definition, and those of the functions
    that the class may use, in a copy of the program's names, so that the program is not changed.
    """
    own = {key: copy.copy(each) if type(each) in (dict, list, set) else each for key, each in _caller().items()}
    with contextlib.suppress(Exception):
        exec(compile(definition, place, "exec", dont_inherit=True), own)  # noqa: S102  (the program is the user's)
    if name in own:
        of_role = {role: attribute for attribute, role in names.items()}
        different = differing(own[name], of_role.get("data", "data"), of_role.get("grad", "grad"))
        if different:
            raise WrongScript(
                f"{place}: a Value can't replace {name}, because these operations compute something else there: "
                f"{', '.join(different)}\n  Rename them, or run the program without --replace."
            )


def _caller() -> dict[str, Any]:
    return sys._getframe(2).f_globals


def differing(make: Any, data: str = "data", grad: str = "grad") -> list[str]:
    """Names in PROBES that compute something else with this class. data, grad: the attributes that hold the numbers."""
    names = []
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for (name, i, operands), expected in EXPECTED.items():
            numbers = _observe(make, PROBES[name][i], operands, data, grad)
            if name not in names and not all(map(_same, numbers, expected)):
                names.append(name)
    return names


def _same(number: Optional[float], expected: Optional[float]) -> bool:
    """Whether two numbers differ by no more than rounding, as those of tanh and its formula with exp."""
    if number is None or expected is None or (math.isnan(number) and math.isnan(expected)):
        return True
    return math.isclose(number, expected, rel_tol=1e-9, abs_tol=1e-12)
