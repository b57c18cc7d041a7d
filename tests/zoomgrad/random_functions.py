"""Random functions under the decorator.

A case is the text of a program: state in globals, closures and objects, a function `loss` that reads and writes it, and
changes of the state between calls. The program runs twice, as it is and with `loss` compiled. Both runs must agree in
each result, gradient and error, in the state that they leave, and in the next random number. Signs of zeros and kinds
of errors may differ.
"""

import math
import random
import warnings

import numpy as np

from zoomgrad.decorator import Compiled

PROGRAM = """
import contextlib, functools, math, random, threading, types
from array import array
from collections import deque
import numpy as np

SCALE, TABLE, KEYS, LOCK, QUEUE = 1.5, [0.5, -1.25, 2.0], {"a": 0.75, "b": -0.5}, threading.Lock(), deque([2.0])
state, numbers = types.SimpleNamespace(scale=0.5, count=0), np.array([0.25, 3.0])

class Odd(float):
    def __pow__(self, other):
        return 7.0

class Model:
    factor = 1.25
    def __init__(self):
        self.power, self.calls, self.bias, self.row = 2, 0, Value(0.25), [[1.0, 0.75]]
    def __call__(self, v):
        self.calls += COUNT
        return v**self.power * self.factor + self.bias
    @staticmethod
    def twice(v):
        return v * 2.0

def scaled(v, by):
    return v * by

COUNT = 0
model, captured_value = Model(), Value(0.5)

def make():
    captured = 0.75
    def loss(model, ws, xs, rows, flag, n):
        a, b, x, y, count = ws[0], ws[-1], xs[0], xs[-1], len(xs)
        BODY
    return loss

loss = make()
"""


def listed(text):
    """The parts of a text between bars."""
    return [part.strip() for part in text.split("|")]


RETURNED = listed("""
    a | a + b | a + b | a * b + a | a + b | a * b | (a + b) * a, b | a * b, x | a * b, a, 3.0 | [a * b][0] |
    (a * b, {'b': b})
""")
DATA = listed("""
    a * x | x * b | a + x | x - b | -x * a | x * y * a | a / x | x / b | (a - x) / y | b * n | (a + n) * x
""")
VALUES = listed("""
    a + b | a * b | a - b | a / b | a ** 2 | a ** -1 | a ** 0.5 | a.relu() | a.tanh() | a.exp() | a.log() |
    a.sigmoid() | a.max(b) | 2 * a | 1 - b | 3 / a | a * a + b | sum(w * z for w, z in zip(ws, xs)) |
    sum((w * x - y) ** 2 for w in ws) | a * 1e200 | a * (b if flag else 0.5)
""")
STATE = listed("""
    a * SCALE | a * TABLE[1] | a * sum(TABLE) | a * KEYS["a"] | a * captured | a * state.scale | model(a) |
    Model.twice(a) | a * model.factor | scaled(a, SCALE) | captured_value * a | a * numbers[1] | a * QUEUE[0] |
    a * len(KEYS) | a * model.row[0][1]
""")
LOOKS = listed("""
    a * (2.0 if b.data > 0.3 else 0.5) | a if x > 0.2 else -a | a * (x / 3) | a * (x + y) | a * max(x, 0.5) |
    a * math.tanh(x) | a * (2.0 if isinstance(x, float) else 3.0) | a * abs(y) | a * sum(xs) | a * round(x) |
    (b if isinstance(x, Value) else a) * y | a * (x if type(x) is float else 0.5) | a * (1.0 + b.grad)
""")
ARRAYS = listed("""
    a * rows.ravel("K")[1] | a * rows.reshape(-1, order="A")[1] | a * rows[0, 1] | a * rows.T[0, 1] |
    a * rows.flatten("F")[2] | sum(w * z for w, z in zip(ws, rows[1])) | a * rows.T.tolist()[0][1] |
    a * rows.copy("K").ravel("K")[1] | a * rows[::-1].ravel()[0] | a * rows.sum()
""")
DRAWS = listed("random.random() | random.choice((1.0, 2.0)) | np.random.rand() | random.gauss(0, 1)")
WRITES = listed("""
    model.calls += 1; a = a * model.calls | model.row.append([0.5]) | xs[0] = 0.5 | random.seed(3) | a.label = 'a' |
    a.data = a.data + 0.25 | b.grad = 0.0
""")
ERRORS = listed("ValueError | ZeroDivisionError | OverflowError | ArithmeticError | Exception | BaseException")
RAISING = listed("""
    (a * x).log() | (b - 0.5).log() | (a - a) ** -1 | a / (b - b * 1.0) | (a * 1000.0 * x).exp() |
    (a * y) ** 0.5
""")
CHANGES = listed("""
    model.power = 3 | captured_value.data = {} | model.bias = Value({}) | model.bias.data = {} | COUNT = 1 |
    model.row.reverse() | model.row[0][1] = {} | model.unused = {}
""")
"""Changes of what the arguments hold, which are noticed at once."""
NUMBERS = listed("""
    {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | int(3 * {}) | int(3 * {}) | np.float64({}) |
    np.float64({}) | np.float32({}) | Odd({}) | np.int64(3)
""")
LAYOUTS = listed("np.array({}) | np.asfortranarray({}) | np.array({}).T.copy().T | np.array({})[:, ::-1]")


def body(rng):
    """The statements of a function."""
    lines = []
    kinds = [VALUES, VALUES, DATA, ARRAYS, STATE]
    if rng.random() < 0.4:
        kinds.append(rng.choice((LOOKS, DRAWS, WRITES, ERRORS, LOCKS)))
    for _ in range(rng.randint(1, 7)):
        kind, name = rng.choice(kinds), rng.choice("ab")
        if kind is DRAWS:
            lines.append(f"{name} = {name} * {rng.choice(DRAWS)}")
        elif kind is WRITES:
            lines.append(rng.choice(WRITES))
        elif kind is LOCKS:
            lines += [line.format(rng.choice(VALUES + LOOKS)) for line in rng.choice(LOCKS)]
        elif kind is ERRORS:
            raising, error, other = rng.choice(RAISING), rng.choice(ERRORS), rng.choice(VALUES + WRITES[:2])
            if rng.random() < 0.3:
                lines += [f"with contextlib.suppress({error}):", f"    a = {raising}"]
            else:
                assigned = other if "=" in other else f"a = {other}"
                lines += ["try:", f"    a = {raising}", f"except {error}:", f"    {assigned}"]
        else:
            lines.append(f"{name} = {rng.choice(kind)}{rng.choice(('', ' + a', ' * b'))}")
    return "\n        ".join([*lines, f"return {rng.choice(RETURNED)}"])


LOCKS = (
    ("with LOCK:", "    a = {}"),
    ("LOCK.acquire(False)", "a = {}", "a = a * 2.0 if b.data > 0 else a", "LOCK.release()"),
)


def calls(rng):
    """For each call, the change of the state before it, and its arguments as text."""
    number = lambda: rng.choice((0.0, 1.0, -1.0, rng.uniform(-2, 2), rng.uniform(-2, 2), rng.uniform(-2, 2)))  # noqa: E731
    kinds, length, at = rng.choices(NUMBERS, k=3), rng.randint(1, 3), rng.randrange(1, 8)
    values = rng.choice(
        ("ws", "ws", "ws", "[w * 1.25 for w in ws]", "[w * ws[0] + model.bias for w in ws]", "[ws[0] * 2.0]")
    )
    for step in range(8):
        if rng.random() < 0.1:
            kinds = rng.choices(NUMBERS, k=3)
        xs = [kinds[k % 2].format(number()) for k in range(length)]
        layout = rng.choice(LAYOUTS)
        rows = layout.format([[number() for _ in range(3)] for _ in range(2)])
        change = rng.choice(CHANGES).format(number()) if step == at or rng.random() < 0.2 else ""
        flag = rng.random() < 0.9
        yield change, f"model, {values}, [{', '.join(xs)}], {rows}, {flag}, {kinds[2].format(number())}"


class Failure(str):
    """The kind of an error. All kinds are equal, because those of a compiled function may differ."""

    __slots__ = ()

    def __eq__(self, other):
        return isinstance(other, Failure)

    __hash__ = str.__hash__


def run(text, made, start, value, wrap):
    """What a program's run shows: for each call the numbers, gradients and state, or that there was an error."""
    random.seed(5)
    np.random.seed(5)
    world = {"Value": value, "__name__": "world"}
    exec(text, world)
    loss, ws, shown = wrap(world["loss"]), [value(x) for x in start], []
    for change, arguments in made:
        exec(change, world)
        taken = eval(f"({arguments})", {**world, "ws": ws})
        try:
            result = loss(*taken)
        except Exception as error:
            shown.append(Failure(type(error).__name__))
        else:
            results = result if isinstance(result, tuple) else (result,)
            results = [each["b"] if type(each) is dict else each for each in results]
            shown += [each.data if hasattr(each, "backward") else each for each in results]
            if any(isinstance(each, complex) for each in shown):  # a power of a negative number
                return ["complex" if isinstance(each, complex) else each for each in shown]
            try:
                results[0].backward()
            except (ArithmeticError, ValueError) as error:
                return [*shown, Failure(f"{type(error).__name__} of backward")]
            except (AttributeError, TypeError):  # it is no loss
                shown.append("none")
        leaves = [*ws, world["model"].bias, world["captured_value"]]
        if not all(math.isfinite(v.grad) for v in leaves):  # where a compiled function may raise an error
            return [*shown, Failure("not finite of backward")]
        shown += [v.grad for v in leaves]
        for v in leaves:
            # Those of a compiled function are floats, which matters to float32.
            v.grad = float(v.grad)
            v.data = float(v.data - (0.01 * v.grad if abs(v.grad) < 10 else 0.0))
        kept = [world["model"].calls, world["model"].row, taken[2], world["LOCK"].locked()]
        shown += [repr(each) for each in kept]
        shown += [v.data for v in leaves]
        if world["LOCK"].locked():  # after an error; the next call would wait for it
            world["LOCK"].release()
        shown += [random.random(), np.random.rand()]
    return shown


def same(a, b, bound):
    """Whether two runs show the same. bound: relative error of numbers."""
    return len(a) == len(b) and all(x == y or _near(x, y, bound) for x, y in zip(a, b))


def _near(x, y, bound):
    numbers = isinstance(x, (float, np.floating)) and isinstance(y, (float, np.floating))
    return numbers and ((math.isnan(x) and math.isnan(y)) or abs(x - y) <= bound * max(1.0, abs(x)))


def differs(seed, engine):
    """The text of a case whose two runs differ, and whether a program ran.

    engine: with the class Value to use.
    """
    rng = random.Random(seed)
    text, made = PROGRAM.replace("BODY", body(rng)), list(calls(rng))
    start = [rng.uniform(-1.5, 1.5) for _ in range(rng.randint(1, 3))]
    functions = []

    def compile_it(function):
        functions.append(Compiled(function, engine, False, 8))
        return functions[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = run(text, made, start, engine.Value, lambda function: function)
        ours = run(text, made, start, engine.Value, compile_it)
    ran = functions[0].calls > 0
    if same(plain, ours, 0.0 if engine.strict else 1e-6):
        return "", ran
    at = next((k for k, (x, y) in enumerate(zip(plain, ours)) if not same([x], [y], 0.0)), -1)
    shown = "\n".join(f"{change} | {arguments}" for change, arguments in made)
    source = text[text.index("        a, b, x, y") : text.index("    return loss")]
    return f"case {seed} on {engine.name}: {plain[at]} {ours[at]}\n{source}{shown}\n{functions[0].report()}", ran
