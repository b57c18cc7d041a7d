"""Tour de micrograd: a network by its activation, trained by `update_parameters`."""

import random

from micrograd.nn import MLP

for activation in ("relu", "tanh", "sigmoid"):
    random.seed(3)
    model = MLP(2, [3, 1], activation=activation, step=0.1)
    print(model)
    for _ in range(10):
        model.zero_grad()
        loss = (model([0.5, -1.0]) - 1.0) ** 2
        loss.backward()
        model.update_parameters()
    print(f"{loss.data:.6f}")
