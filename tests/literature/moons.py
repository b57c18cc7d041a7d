"""micrograd's demo: a classifier of two half-moons with a hinge loss, L2 and a falling rate."""

import math
import random

from micrograd.engine import Value
from micrograd.nn import MLP

random.seed(1337)
points = []
for i in range(20):
    angle = math.pi * (i // 2) / 9
    x, y = math.cos(angle), math.sin(angle)
    if i % 2:
        x, y = 1 - x, 0.5 - y
    points.append(([x + random.gauss(0, 0.1), y + random.gauss(0, 0.1)], 1 if i % 2 else -1))
model = MLP(2, [8, 8, 1])
print(model)
print("number of parameters", len(model.parameters()))
for step in range(10):
    scores = [model(list(map(Value, point))) for point, _ in points]
    losses = [(1 + -label * score).relu() for score, (_, label) in zip(scores, points)]
    total = sum(losses) * (1.0 / len(losses)) + 1e-4 * sum(p * p for p in model.parameters())
    right = sum((score.data > 0) == (label > 0) for score, (_, label) in zip(scores, points))
    model.zero_grad()
    total.backward()
    for p in model.parameters():
        p.data -= (1.0 - 0.9 * step / 100) * p.grad
    if step % 3 == 0:
        print(f"step {step} loss {total.data:.5f} accuracy {100 * right // len(points)}%")
