"""Use everything that the extension type has, for a memory checker.

`python -m tests.engines.native.exercise FILE [ROUNDS]`: FILE is a build of the module, ROUNDS the number of random
programs. Prints `done` at the end.
"""

import contextlib
import copy
import gc
import random
import sys
import warnings
from pathlib import Path

from zoomgrad.engines.api import CyclicGraph
from zoomgrad.engines.native.build import class_in

OPERATIONS = (
    *(lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a.max(b)),
    *(lambda a, b: -a, lambda a, b: a.relu(), lambda a, b: a.tanh(), lambda a, b: a.exp(), lambda a, b: a.log()),
    *(lambda a, b: a.sigmoid(), lambda a, b: a**2, lambda a, b: a**-0.5, lambda a, b: 2 - a, lambda a, b: 1 / b),
    *(lambda a, b: a + "text", lambda a, b: a * {1: b}, lambda a, b: a**a, lambda a, b: "text" + a, lambda a, b: 2**a),
    *(lambda a, b: copy.copy(a), lambda a, b: copy.deepcopy(a), lambda a, b: type(a)(1, (a, b), "own", label="own")),
)
NUMBERS = (0, 1, -3, 2**53, 2**70, 10**400, 0.0, -1.5, 3.0, float("inf"), float("nan"), 1e300, 2j)
with contextlib.suppress(ImportError):
    import numpy

    NUMBERS += (numpy.float64(0.5), numpy.float64(0.0), numpy.float32(1.5), numpy.int64(-2), numpy.array(3.0))


def act(rng, values):
    """A method call, or a change of an attribute, that a program may make, allowed or not."""
    v, w = rng.choice(values), rng.choice(values)
    leaves = tuple(each for each in values[:4] if not each._prev)
    changes = {
        "data": [*NUMBERS, None, {1: v}],
        "grad": NUMBERS,
        "label": ["text", 3],
        "_op": ["text", None],
        "_prev": [(w,), (), [w, v], 3, (1.0,)],
        "_backward": [lambda: setattr(v, "_prev", ()), 3],
        "more": [v, w],
    }
    name = rng.choice(list(changes))
    acts = (
        *(lambda: setattr(v, name, rng.choice(changes[name])), lambda: delattr(v, name), gc.collect),
        *(lambda: repr(v), lambda: v.backward(), lambda: v.topo(), lambda: v._contribute(), lambda: v._backward()),
        *(lambda: v._record(leaves[:1], leaves[1:], (v,)), lambda: v._record((v,), (v,), ())),
        *(lambda: v._record(1, 2, 3), lambda: v._record((1,), (), ()), lambda: v._record((), (), (None,))),
        *(lambda: v.__init__(rng.choice(NUMBERS), (w,), "+"), lambda: v.__init__(1, None), lambda: v.__init__({})),
        *(lambda: v._restore(*w._parts()[:6]), lambda: v._restore(1.0, None, (v,), "+", 2, True)),
        *(lambda: v.__dict__.update(more=v), lambda: (v._op, v._prev, v._name, v.label, dir(v))),
    )
    rng.choice([*acts, *[acts[0]] * len(acts)])()


def is_small(v):
    """Whether it has no cycle, few Values below it, and no large int."""
    try:
        return len(v.topo()) < 500 and not (isinstance(v.data, int) and v.data.bit_length() > 5000)
    except CyclicGraph:
        return False


def main(file, rounds=60):
    Value = class_in(Path(file))

    class Named(Value):
        pass

    class Slotted(Value):
        __slots__ = ("more",)

    warnings.simplefilter("ignore")  # of NumPy
    errors = (TypeError, ValueError, ArithmeticError, AttributeError, RuntimeError)
    for seed in range(int(rounds)):
        rng = random.Random(seed)
        dressed = Value._dress(lambda v, data, *more: Value.data.__set__(v, data), seed % 2, seed)
        heir = type("Heir", (dressed,), {})
        values = [rng.choice([Value, Named, Slotted])(rng.choice(NUMBERS)) for _ in range(3)]
        values += [dressed(rng.random()), heir(rng.random()), dressed(3, 4)]
        for _ in range(120):
            with contextlib.suppress(*errors):
                values.append(rng.choice(OPERATIONS)(rng.choice(values), rng.choice([*values, *NUMBERS])))
            with contextlib.suppress(*errors):
                act(rng, values)
            # Powers of powers of ints, and copies of copies, grow too fast.
            values = [v for v in values if isinstance(v, Value) and is_small(v)][-20:]
    for cls in (Value, dressed, heir):
        chain = cls(1.0)
        for _ in range(20_000):
            chain = chain * 1.5 + 1
        chain.backward()
    del chain, values
    gc.collect()
    print("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
