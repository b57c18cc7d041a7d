"""Compiling ML models to C for fun: the network that learns XOR."""

import random

from micrograd.nn import MLP

random.seed(3)
model = MLP(2, [4, 1])
table = [((0, 0), 0), ((0, 1), 1), ((1, 0), 1), ((1, 1), 0)]
for epoch in range(100):
    model.zero_grad()
    total = 0.0
    for row, expected in table:
        loss = (model(row) - expected) ** 2
        total += loss.data
        loss.backward()
    for p in model.parameters():
        p.data -= 0.1 * p.grad / len(table)
    if epoch % 33 == 0:
        print(f"epoch {epoch:2d} loss {total / len(table):.4f}")
