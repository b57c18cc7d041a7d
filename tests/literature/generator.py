"""Compiling ML models to C for fun: the C of a whole model, from the lines of its Values."""

import random

import micrograd
from micrograd.engine import Max, Value
from micrograd.nn import MLP

random.seed(4)
model = MLP(2, [3, 1])
inputs = [Value(0, (), "input") for _ in range(2)]
assert [v._id - inputs[0]._id for v in inputs] == [0, 1]
loss = (Max(model(inputs), Value(-1.0, (), "input")) - 0.5) ** 2
order = loss.topo()
size = micrograd.engine.counter

print("#include <math.h>")
print("#include <stdio.h>")
print(f"double data[{size}], grad[{size}];")
print("int main(void) {")
for p in model.parameters():
    print(f"{p.var()} = {round(p.data, 4)};")
for v, number in zip((*inputs, *(v for v in order if v._op == "input" and v not in inputs)), (0.5, -0.25, -1.0)):
    print(f"{v.var()} = {number};")
for v in order:
    if v.compile():
        print(v.compile())
print(f"{loss.getgrad()} = 1;")
for v in reversed(order):
    for line in v.backward_compile():
        print(line)
for v in (model.parameters()[0], model.parameters()[-1]):
    print(f'printf("%.6f\\n", {v.getgrad()});')
print(f'printf("%.6f\\n", {loss.var()});')
print("}")
