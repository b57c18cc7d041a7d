"""Does a program's class compute what Value in C computes? Small expressions tell.

`probe` runs in a copy of the program's process, so it leaves no trace there: no output, no random numbers, no counts,
and it ends in any case. It evaluates each expression with the program's class and with the class in C that would stand
in for it, and compares the data and the gradients of all nodes. An expression that the program's class can't evaluate
says nothing.

An operation that differs stays the program's own, which works on objects of the class in C as well. Example: with a
leaky `relu`, `a.relu()` gives -0.03 for -3.0 where micrograd gives 0. Without the same sums and products, and the same
backward pass, the class stays as it is.
"""

from __future__ import annotations

import contextlib
import io
import marshal
import math
import os
import random
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from typing import Any, NamedTuple, Union

from zoomgrad.engines.native.dress import Look, dress, let_find, namespace
from zoomgrad.engines.native.forms import METHODS
from zoomgrad.harness.worker.programs.observe import Differs, fields, observe

LIMIT_SECONDS = 10
VARIABLE = 0x0C
"""Flags of code that takes `*args` or `**kwargs`."""
OPERANDS = (
    *((0.37, -1.29), (-3.1, 2.3), (0.0, 0.0), (30.0, 1e-12), (-600.0, 600.0), (3, -2)),
    *((1.565, 2.644), (-2.132, 1.492), (-1.755, 0.618)),
)
"""Numbers for a and b. Variants of an operation may differ at limits, leaks and small terms. The last three pairs
distinguish the forms of tanh: 1 - t*t and 1 - t**2 differ for one number in 1,200."""

DERIVED = ("__neg__", "__sub__", "__rsub__", "__truediv__", "__rtruediv__")
UNARY = ("relu", "tanh", "sigmoid", "exp", "log")
OPERATORS = {
    "__add__": ("a + b", "a + 2.0", "a + 1", "a + a"),
    "__radd__": ("2.0 + a", "1 + a"),
    "__mul__": ("a * b", "a * 2.0", "a * 3", "a * a"),
    "__rmul__": ("2.0 * a", "3 * a"),
    "__neg__": ("-a",),
    "__sub__": ("a - b", "a - 2.0", "a - a"),
    "__rsub__": ("2.0 - a",),
    "__pow__": ("a**2", "a**3", "a**-1", "a**0.5", "a**2.0"),
    "__truediv__": ("a / b", "a / 4.0", "a / a"),
    "__rtruediv__": ("4.0 / a",),
    "max": ("a.max(b)", "a.max(1.0)"),
    **{name: (f"a.{name}()",) for name in UNARY},
}
"""Operation -> expressions."""
GRAPHS = (
    "a * b + a",
    "(a + b) * (a * b)",
    "[c := a * b, c * c + c]",
    "[c := a + b, d := c * c, d * c + d + a]",
    "[c := a * b, d := c * a, e := c + d, e * d + c]",
    "[c := a + b, d := a * b, e := c * d, f := c + e, f * e]",
)
"""Expressions with shared operands, for the order and the sums of the backward pass. The last part is the root."""

Result = Union[dict[str, Any], Exception]


class Sample(NamedTuple):
    """An expression over Values a and b with these numbers. It gives a list of nodes, the root last."""

    text: str
    operands: tuple[float, float]

    def evaluate(self, make: Any, look: Look, *, again: bool = False) -> dict[str, Any]:
        """Data and gradient of each node, by name. Raises what the class raises. again: a second backward pass."""
        a, b = (make(number) for number in self.operands)
        nodes = eval(self.text, {"a": a, "b": b})  # noqa: S307  (text of this file)
        *others, root = nodes if isinstance(nodes, list) else [nodes]
        for _ in range(1 + again):
            getattr(root, look.backward)()
        values = {"the result": root, "a": a, "b": b, **{f"node {n}": v for n, v in enumerate(others, 1)}}
        parts = {"data": look.data, "gradient": look.grad}
        return {f"the {part} of {name}": getattr(v, parts[part]) for part in parts for name, v in values.items()}

    def shared(self) -> Sample:
        """The same operation, whose operand has another use, so that its gradient is a sum."""
        return self._replace(text=f"[c := {self.text}, c * a]")

    def difference(self, own: Result, ours: Result, equal: Callable[[Any, Any], bool]) -> str:
        """The first difference, in words; empty if there is none, or if the program's class can't evaluate it."""
        if isinstance(own, Exception):
            return ""
        numbers = {} if isinstance(ours, Exception) else ours
        other = type(ours).__name__
        name = next((name for name, x in own.items() if not equal(x, numbers.get(name, ours))), "")
        case = f"with a = {self.operands[0]} and b = {self.operands[1]}, {name} in {self.text}"
        return f"{case} is {own[name]} and not {numbers.get(name, other)}" if name else ""


def _close(number: Any, other: Any) -> bool:
    """Whether two numbers differ by no more than rounding, as those of tanh and its formula with exp."""
    are_numbers = isinstance(number, (int, float)) and isinstance(other, (int, float))
    return _equal(number, other) or (are_numbers and math.isclose(number, other, rel_tol=1e-9, abs_tol=1e-12))


def _equal(number: Any, other: Any) -> bool:
    same_kind = type(number).__name__ == type(other).__name__
    return same_kind and (repr(number) == repr(other) or bool(number == other))


def probe(own: Any, value: Any, *, formulas: bool) -> Union[str, Look]:
    """How a class in C can stand in for the program's class, or how it differs.

    formulas: keep the last digits of a program's formula. If not, those of the op table will do, which compilers take.
    """
    if not hasattr(os, "fork"):
        return "this system can't copy a process to compare them"
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fork beside threads
        child = os.fork()
    if not child:
        try:
            os.write(writing, marshal.dumps(_answer(lambda: _Comparison(own, value, formulas).look())))
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    os.set_blocking(reading, False)  # its end may never come, if the class has started processes
    with os.fdopen(reading, "rb") as answer:
        text = answer.read(1 << 16)
    message = marshal.loads(text) if text else f"comparing them did not end in {LIMIT_SECONDS} s"  # noqa: S302  (ours)
    return message if isinstance(message, str) else Look(*message)


def _answer(compare: Callable[[], Look]) -> Union[str, tuple[Any, ...]]:
    """The parts of a look, or a difference, of this process, which then ends."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LIMIT_SECONDS)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    sys.stdout = sys.stderr = io.StringIO()  # what is printed counts as a trace
    warnings.simplefilter("ignore")
    try:
        return tuple(compare())
    except Differs as difference:
        return str(difference)
    except BaseException as error:
        return f"it fails to compute: {type(error).__name__}: {error}"[:300]


class _Comparison:
    """The program's class and the class in C that would stand in for it."""

    def __init__(self, own: Any, value: Any, formulas: bool) -> None:
        self.own, self.value, self.formulas = own, value, formulas
        self.names, self.bound = namespace(own), None
        self._bind(own)
        before = self._traces()
        self.known = observe(own)
        traces = [name for name, x in self._traces().items() if x != before.get(name)]
        if traces:
            raise Differs(f"creating and computing with its objects changes {traces[0]}")

    def _traces(self) -> dict[str, Any]:
        """What the methods could change: output, random numbers, and the numbers and sizes in names beside them."""
        places = [vars(self.own), *(getattr(item, "__globals__", {}) for item in self.names.values())]
        named = [(name, x) for place in places for name, x in place.items()]
        traces = {name: x for name, x in named if isinstance(x, (int, float, str))}
        traces.update((name, len(x)) for name, x in named if isinstance(x, (list, dict, set)))
        return {**traces, "the output": sys.stdout.tell(), "the random numbers": random.getstate()}

    def look(self) -> Look:
        """Raises Differs."""
        bare = dress(self.own, self.known._replace(methods={name: name for name in OPERATORS}), self.value)
        choices = {name: self._choose(name, bare) for name in OPERATORS if name in self.names}
        methods = {name: method for name, (method, _) in choices.items()}
        note = "; ".join(f"{name.strip('_')}: {text}" for name, (_, text) in choices.items() if text)
        if choices["__add__"][1] or choices["__mul__"][1]:
            raise Differs(note)
        self._add_texts(self.known.texts, methods)
        look = self.known._replace(methods=methods, note=note)
        cls = dress(self.own, look, self.value)
        for sample in self._samples(methods):
            for again in (False, True):
                own, ours = (self._try(sample, make, again) for make in (self.own, cls))
                difference = sample.difference(own, ours, _close)
                if difference:
                    raise Differs(difference)
        for setting in ("", *(name for name, x in look.constants.items() if type(x) is bool)):
            self._compare_objects(cls, setting)
        return look

    def _choose(self, name: str, bare: Any) -> tuple[str, str]:
        """The method in C for an operation, or none; and how it differs, if by more than rounding."""
        samples = [Sample(text, operands) for text in OPERATORS[name] for operands in OPERANDS]
        samples += [sample.shared() for sample in samples]
        before = self._traces()
        results = [self._try(sample, self.own) for sample in samples]
        can_not = all(isinstance(result, Exception) for result in results)
        if can_not or self._takes_more(name) or self._traces() != before:
            return "", ""
        equal, differences = _equal if self.formulas else _close, []

        def difference(ours: list[Result], equal: Callable[[Any, Any], bool]) -> str:
            return next(filter(None, map(Sample.difference, samples, results, ours, repeat(equal))), "")

        for form in METHODS.get(name, (name,)):
            ours = [self._try(s._replace(text=s.text.replace(f".{name}(", f".{form}(")), bare) for s in samples]
            if not difference(ours, equal):
                return form, ""
            differences.append(difference(ours, _close))
        return "", differences[0] if all(differences) else ""

    def _takes_more(self, name: str) -> bool:
        """Whether a method has parameters that the one in C lacks."""
        code = getattr(self.names[name], "__code__", None)
        operands = 1 if name == "__neg__" or name in UNARY else 2
        return code is None or code.co_argcount != operands or bool(code.co_kwonlyargcount or code.co_flags & VARIABLE)

    def _add_texts(self, texts: dict[str, dict[str, Any]], methods: dict[str, str]) -> None:
        """What the program calls each operation, where that differs.

        A difference or quotient that is one node in the program, and two in C, becomes the program's own.
        """
        cls = dress(self.own, self.known._replace(methods=methods), self.value)
        for name, attribute in ((name, attribute) for name in methods for attribute in texts if methods[name]):
            with contextlib.suppress(Exception):
                own, ours = (self._evaluated(OPERATORS[name][0], make) for make in (self.own, cls))
                if getattr(own, attribute) != getattr(ours, attribute) and name in DERIVED:
                    methods[name] = ""
                elif getattr(own, attribute) != getattr(ours, attribute):
                    texts[attribute][ours._name] = getattr(own, attribute)

    def _samples(self, methods: Mapping[str, str]) -> Iterator[Sample]:
        """Graphs, and the operations that stay the program's own: all methods that create objects of the class."""
        yield from (Sample(text, operands) for text in GRAPHS for operands in (*OPERANDS[:2], OPERANDS[4]))
        kept = [text for name, method in methods.items() if not method for text in OPERATORS[name]]
        for name, item in self.names.items():
            code = getattr(item, "__code__", None)
            if code is not None and name not in OPERATORS and not name.startswith("_"):
                required = code.co_argcount - len(item.__defaults__ or ())
                if required == 1 and self.own.__name__ in (*code.co_names, *code.co_freevars):
                    kept.append(f"a.{name}()")
        for sample in (Sample(text, operands) for text in kept for operands in OPERANDS):
            yield from (sample, sample.shared())

    def _compare_objects(self, cls: Any, setting: str = "") -> None:
        """Raise Differs if objects of both classes have other attributes, or print in another way.

        setting: an attribute to change in leaves, such as `requires_grad`, on which nothing else may depend.
        """
        shown, names = [], fields(self.own(1.0)).keys() - {self.known.children, self.known.rule}
        for make in (self.own, cls):
            self._bind(make)
            a, b = make(2.5), make(-1.5)
            if setting:
                setattr(a, setting, not getattr(a, setting))
                setattr(b, setting, getattr(a, setting))
            product = a * b
            getattr((a + product) * (product + b), self.known.backward)()
            shown.append([{**{name: getattr(v, name) for name in names}, "repr": repr(v)} for v in (a, b, product)])
        case = f" after a change of {setting}" if setting else ""
        for own, ours in zip(*shown):
            for name, x in own.items():
                if x != ours[name] and not (name == "repr" and " at 0x" in x):
                    raise Differs(f"{name} of an object{case} is {x!r} and not {ours[name]!r}")

    def _evaluated(self, text: str, make: Any) -> Any:
        self._bind(make)
        return eval(text, {"a": make(0.37), "b": make(0.5)})  # noqa: S307  (text of this file)

    def _try(self, sample: Sample, make: Any, again: bool = False) -> Result:
        self._bind(make)
        try:
            return sample.evaluate(make, self.known, again=again)
        except Exception as error:
            return error

    def _bind(self, cls: Any) -> None:
        """Let the methods of the program's class see this class under its name, which nothing has yet."""
        if cls is not self.bound:
            self.bound = cls
            for item in self.names.values():
                getattr(item, "__globals__", {})[self.own.__name__] = cls
            let_find(self.own, cls, "__class__", self.own.__name__)
