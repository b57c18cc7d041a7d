"""Times of compiled loss functions: `python -m tests.zoomgrad.decorator_times`.

Prints medians over five rounds in one process, in which all sides take turns: a whole training step of the moons demo
(zero_grad, loss over 100 points, backward, update) on `baseline` and under the decorator; one call of a small compiled
loss; and 100 rows of `digits` by `accumulate` and by `train`. It first checks that the losses are the same.
"""

import random
import statistics
from time import perf_counter

import engines
import zoomgrad
from harness import workloads

ROUNDS = 5
ENGINES = ("tcc", "rerolled-gcc", "rerolled-clang")
POINTS = 100


def seconds(function, count):
    """Seconds per call."""
    start = perf_counter()
    for _ in range(count):
        function()
    return (perf_counter() - start) / count


def medians(sides):
    """The median time of each side. sides: function and number of calls."""
    found = [[seconds(*side) for side in sides] for _ in range(ROUNDS)]
    return [statistics.median(times) for times in zip(*found)]


def demo(model, rows, labels):
    """micrograd's demo: a hinge loss with regularization."""
    scores = [model(row) for row in rows]
    losses = [(1 + -label * score).relu() for label, score in zip(labels, scores)]
    return sum(losses) * (1.0 / len(losses)) + 1e-4 * sum(p * p for p in model.parameters())


def moons(name):
    """A training step on `baseline`, and the same under the decorator."""
    rng = random.Random(1337)
    rows = [[rng.uniform(-1, 2), rng.uniform(-1, 1)] for _ in range(POINTS)]
    labels = [rng.choice((-1.0, 1.0)) for _ in rows]
    steps = []
    for engine, loss in ((engines.load("baseline"), demo), (engines.load(name), zoomgrad.compiled(name)(demo))):
        model = engine.nn.MLP(2, [16, 16, 1], rng=random.Random(7))
        # Values in `baseline` take part in the graph; the decorator takes the numbers themselves.
        data = [[engine.Value(x) for x in row] for row in rows] if loss is demo else rows

        def step(model=model, loss=loss, data=data):
            model.zero_grad()
            total = loss(model, data, labels)
            total.backward()
            for p in model.parameters():
                p.data -= 0.01 * p.grad
            return total.data

        steps.append(step)
    losses = [[step() for _ in range(3)] for step in steps]
    assert losses[0] == losses[1], losses
    return steps


def small(name):
    """One call of a loss of two parameters and one number."""
    loss = zoomgrad.compiled(name)(lambda p, x: (p[0] * x + p[1]) ** 2)
    parameters = [zoomgrad.Value(0.5), zoomgrad.Value(-0.25)]
    assert loss(parameters, 1.5).data == 0.25
    return lambda: loss(parameters, 1.5)


def digits(name):
    """100 rows by `accumulate`, and by `train` with a batch of 100."""
    engine, workload = engines.load(name), workloads.load("digits")
    model, x = workload.model(engine.nn), [engine.Value(number) for number in workload.row(0)]
    loss = workload.loss(model, x, workload.outputs(model, x))
    program = engine.compile(loss, inputs=x, parameters=model.parameters())
    columns = workload.columns()
    program.accumulate(columns, steps=100)
    return (
        lambda: program.accumulate(columns, steps=100),
        lambda: program.train(columns, rate=0.0, batch=100, steps=100),
    )


def main():
    """Print all times."""
    for name in ENGINES:
        baseline, compiled = medians([(step, count) for step, count in zip(moons(name), (1, 30))])
        (call,) = medians([(small(name), 10_000)])
        accumulate, train = medians([(use, 20) for use in digits(name)])
        print(
            f"{name:<15} moons {compiled * 1e6:,.0f} µs, baseline {baseline * 1e3:,.0f} ms: "
            f"{baseline / compiled:,.0f}×; a small call {call * 1e6:.2f} µs; "
            f"a row of digits: accumulate {accumulate * 1e4:.2f} µs, train {train * 1e4:.2f} µs",
            flush=True,
        )


if __name__ == "__main__":
    main()
