"""The check of a promise: a compiled function depends on its arguments, on the parameters and on what they hold.

Nobody can prove that of a Python function. So some calls run the function itself beside its program, and compare every
result and every gradient bit for bit; an engine that is not strict may differ by its bound. These are the first
`FIRST` calls of each program, then one at a random place among the next `GAP`, and after call n > `GAP`, one among the
next n. So n calls cost about `FIRST` + 2 log2(n / `GAP`) runs of the function.
"""

from __future__ import annotations

import itertools
import pickle
import random
import sys
from collections.abc import Sequence
from typing import Any, Callable

from zoomgrad.loss import pass_to
from zoomgrad.signature import NotTraced, take_apart

FIRST = 3
"""Number of first calls to check, including the one that compiles."""
GAP = 64


def following(call: int, chance: random.Random) -> int:
    """The number of the next call to check, after this one. chance: not the generator of the program."""
    return call + (1 if call < FIRST else chance.randint(1, max(GAP, call)))


def same(numbers: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether numbers are the same: NaN is equal to NaN, and the sign of zero does not count."""
    return numbers == others or (
        len(numbers) == len(others) and all(a == b or (a != a and b != b) for a, b in zip(numbers, others))
    )


def compare(
    value: Any, plain: Any, result: Any, parameters: tuple[Any, ...], gradients: Callable[[], list[float]], bound: float
) -> None:
    """Raise NotTraced if a compiled result differs from what the function returned, or can't be compared with it.

    gradients: those of the compiled loss by the parameters, if all gradients are 0 before.
    """
    both = (take_apart(value, each) for each in (plain, result))
    numbers, ours = ([("a result", x) for x in (*(v.data for v in s.values), *s.numbers)] for s in both)
    try:
        numbers += [("a gradient", grad) for grad in _gradients(plain, parameters)]
        ours += [("a gradient", grad) for grad in gradients()]
    except (ArithmeticError, ValueError, AttributeError):  # `backward` raises it again when the program calls it
        pass
    for (what, a), (other, b) in itertools.zip_longest(numbers, ours, fillvalue=("a result", None)):
        near = a is not None and b is not None and abs(a - b) <= bound * max(1.0, abs(a))
        if not near and not same((a,), (b,)):
            raise NotTraced(
                f"{what} is {a} when it runs as it is, but {other} is {b} compiled",
                "Let the result depend on the arguments, on the parameters and on what they hold.",
            )


def _gradients(plain: Any, parameters: tuple[Any, ...]) -> list[float]:
    """The gradients of a loss by the parameters. All gradients are left as they are."""
    loss = plain[0] if isinstance(plain, tuple) else plain
    touched = [*parameters, *loss.topo()]
    before = [v.grad for v in touched]
    try:
        for v in touched:
            v.grad = 0.0
        loss.grad = 1.0
        pass_to(parameters, loss)
        return [v.grad for v in parameters]
    finally:
        for v, grad in zip(touched, before):
            v.grad = grad


def drawn() -> bytes:
    """The states of Python's and NumPy's generators of random numbers. A draw changes it."""
    numpy = sys.modules.get("numpy.random")
    return pickle.dumps((random.getstate(), numpy and numpy.get_state()))
