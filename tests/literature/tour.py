"""Tour de micrograd: its modules `nn` and `autograd`, its step size, and its stopping rule."""

import math
import random

from autograd import Value
from nn import MLP

random.seed(11)
for _ in range(3):
    rows = [[round(random.uniform(-3.0, 3.0)) for _ in range(3)] for _ in range(5)]
    targets = [round(random.uniform(-1.0, 1.0)) for _ in rows]
    net = MLP(3, [4, 4, 1], "tanh", 0.05)
    for epoch in range(40):
        loss = Value(0)
        for row, target in zip(rows, targets):
            loss += (net(row) - target) ** 2
        if math.sqrt(loss.data) / len(rows) <= 0.05 or epoch == 39:
            break
        net.zero_grad()
        loss.backward()
        net.update_parameters()
    print(f"epochs {epoch + 1} loss {loss.data:.4f}")
