"""Compiling ML models to C for fun: a classifier with a stable softmax over `Max`, on three drawn digits."""

import functools
import random

from micrograd.engine import Max
from micrograd.nn import MLP

DIGITS = ["###/#.#/#.#/#.#/###", ".#./##./.#./.#./###", "##./..#/.#./#../###"]


def pixels(drawing):
    return [float(pixel == "#") for row in drawing.split("/") for pixel in row]


def loss_of(model, image, label):
    outputs = model(image)
    peak = functools.reduce(Max, outputs)
    exps = [(o - peak).exp() for o in outputs]
    total = sum(exps)
    one_hot = [float(digit == label) for digit in range(len(DIGITS))]
    return -sum(t * (e / total + 0.0001).log() for t, e in zip(one_hot, exps))


random.seed(1337)
model = MLP(15, [8, len(DIGITS)])
images = [pixels(drawing) for drawing in DIGITS]
for epoch in range(20):
    model.zero_grad()
    loss = sum(loss_of(model, image, label) for label, image in enumerate(images))
    loss.backward()
    for p in model.parameters():
        p.data -= 0.1 * p.grad
    if epoch % 5 == 0:
        print(f"epoch {epoch:2d} loss {loss.data:.4f}")
for label, image in enumerate(images):
    outputs = [o.data for o in model(image)]
    print(label, outputs.index(max(outputs)))
