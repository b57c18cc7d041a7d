"""Random programs that read texts of any length, from the first position to the last, for tests of `prefix.py`.

Many give graphs that begin one another. Others look as if they did, and their loops must not be cut.
"""

from __future__ import annotations

import functools
import operator
import random

from tests.engines.graphs import Graph

WIDTH = 3
PARAMETERS = 2 * WIDTH * WIDTH + 2 * WIDTH
MOST_INPUTS = 200


def program(seed):
    """A function (length) -> a graph over that many positions and its number of inputs; and the outputs' numbers."""
    rng = random.Random(seed)
    chosen = {name: rng.choice(list(kinds)) for name, kinds in PARTS.items()}
    numbers = [rng.gauss(0.0, 0.5) for _ in range(PARAMETERS)]
    many = [rng.gauss(0.0, 0.7) for _ in range(MOST_INPUTS)]
    outputs = rng.random() < 0.5

    def graph(length):
        inputs = length * (WIDTH + 1) + 1

        def build(Value, leaves):
            x, p = leaves[:inputs], leaves[inputs:]
            columns = LAYOUTS[chosen["layout"]](x, length)
            rows = [p[at : at + WIDTH] for at in range(0, 2 * WIDTH * WIDTH, WIDTH)]
            extra = p[2 * WIDTH * WIDTH :]
            state, states, losses = [Value(0.1)] * WIDTH, [], []
            for token, target in columns:
                state = STATES[chosen["state"]](rows, token, state, states, extra)
                states.append(state)
                losses.append(LOSSES[chosen["loss"]](state, states, target, extra, losses))
            total = TOTALS[chosen["total"]](losses, x, extra)
            loss = ENDS[chosen["end"]](total, length, x, extra, states)
            return [x[0], *(s[0] for s in states), loss] if outputs else [loss]

        return Graph(f"{seed} {length} {chosen}", (*many[:inputs], *numbers), build), inputs

    return graph, (0, 1) if outputs else ()


def _dot(a, b):
    return sum(u * v for u, v in zip(a, b))


LAYOUTS = {
    "side by side": lambda x, n: [(x[4 * t : 4 * t + 3], x[4 * t + 3]) for t in range(n)],
    "targets after tokens": lambda x, n: [(x[3 * t : 3 * t + 3], x[3 * n + t]) for t in range(n)],
    "reversed": lambda x, n: [(x[4 * (n - t - 1) : 4 * (n - t - 1) + 3], x[4 * (n - t - 1) + 3]) for t in range(n)],
    "targets in reverse": lambda x, n: [(x[3 * t : 3 * t + 3], x[4 * n - 1 - t]) for t in range(n)],
}

STATES = {
    "recurrent": lambda rows, token, state, states, extra: [
        (_dot(row, token) + _dot(other, state)).tanh() for row, other in zip(rows[:WIDTH], rows[WIDTH:])
    ],
    "of the token": lambda rows, token, state, states, extra: [_dot(row, token).tanh() for row in rows[:WIDTH]],
    "attention": lambda rows, token, state, states, extra: _heard([_dot(row, token) for row in rows[:WIDTH]], states),
    "largest": lambda rows, token, state, states, extra: [
        functools.reduce(lambda a, b: a.max(b), [past[i] for past in states], _dot(row, token))
        for i, row in enumerate(rows[:WIDTH])
    ],
    "weights alone": lambda rows, token, state, states, extra: [_dot(row, row) + token[0] for row in rows[:WIDTH]],
}


def _heard(query, states):
    every = [*states, query]
    shares = [_dot(query, each).exp() for each in every]
    whole = sum(shares)
    return [sum(share * each[i] for share, each in zip(shares, every)) / whole for i in range(WIDTH)]


LOSSES = {
    "squared": lambda state, states, target, extra, losses: (_dot(state, extra) - target) ** 2,
    "negated": lambda state, states, target, extra, losses: -(_dot(state, state) + 1.0).log(),
    "product": lambda state, states, target, extra, losses: extra[0] * target,
    "a parameter": lambda state, states, target, extra, losses: extra[len(losses) % len(extra)],
    "twice a parameter": lambda state, states, target, extra, losses: extra[0] * 2.0,
    "of the first state": lambda state, states, target, extra, losses: states[0][0] * state[0],
    "a sum": lambda state, states, target, extra, losses: state[0] + state[1],
    "a sum with a parameter": lambda state, states, target, extra, losses: state[0] * target + extra[0],
    "of the loss before": lambda state, states, target, extra, losses: state[0] * (losses[-1] if losses else target),
    "a power": lambda state, states, target, extra, losses: (state[0] + extra[1]) ** 3,
    "the target": lambda state, states, target, extra, losses: target,
    "twice a sum with a parameter": lambda state, states, target, extra, losses: (extra[0] + target) * 2.0,
    "sums of sums": lambda state, states, target, extra, losses: ((states[0][1] + target) * 2.0 + state[0]) * 3.0,
    "a constant": lambda state, states, target, extra, losses: target * 0.0 + 0.25,
    "of the first target": lambda state, states, target, extra, losses: (state[0] - target) * extra[1] * 0.5,
}

TOTALS = {
    "sum": lambda losses, x, extra: sum(losses),
    "sum from the first": lambda losses, x, extra: functools.reduce(operator.add, losses),
    "sum from a parameter": lambda losses, x, extra: sum(losses, extra[1]),
    "sum from an input": lambda losses, x, extra: sum(losses, x[0]),
    "to the right": lambda losses, x, extra: functools.reduce(lambda total, loss: loss + total, losses),
    "product": lambda losses, x, extra: functools.reduce(operator.mul, losses),
    "in pairs": lambda losses, x, extra: sum(a + b for a, b in zip(losses, [*losses[1:], losses[0]])),
    "backwards": lambda losses, x, extra: sum(losses[::-1]),
}

ENDS = {
    "none": lambda total, n, x, extra, states: total,
    "mean": lambda total, n, x, extra, states: (1 / n) * total,
    "mean, then root": lambda total, n, x, extra, states: ((total * (1 / n)) ** 2 + 1.0) ** 0.5,
    "regularised": lambda total, n, x, extra, states: total * (1 / n) + 0.01 * _dot(extra, extra),
    "of the first state": lambda total, n, x, extra, states: total * states[0][0] + (1 / n),
    "of the last state": lambda total, n, x, extra, states: total * states[-1][0],
    "of an input": lambda total, n, x, extra, states: total * x[-1] + x[1] * (0.5 / n),
    "with a power": lambda total, n, x, extra, states: total**n,
    "plus a parameter": lambda total, n, x, extra, states: total + extra[1],
    "plus a product": lambda total, n, x, extra, states: total + x[0] * extra[0],
    "times a sum": lambda total, n, x, extra, states: (total * total + total * extra[1]) * x[0],
    "of two constants": lambda total, n, x, extra, states: (total + n / 7) * (1 / n) + (0.25 if n == 4 else 1 / n),
}

PARTS = {"layout": LAYOUTS, "state": STATES, "loss": LOSSES, "total": TOTALS, "end": ENDS}
