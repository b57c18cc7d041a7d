"""Does a program's class compute what Value in C computes? Small expressions tell.

`probe` runs in a copy of the program's process, so it leaves no trace there: no output, no random numbers, no counts,
and it ends in any case. It evaluates each expression with the program's class and with the class in C that would stand
in for it, and compares the data and the gradients of all nodes. An expression that the program's class can't evaluate
says nothing.

An operation whose bits differ in rounding only, or that the class in C can't compute, stays the program's own. Example:
with a leaky `relu`, `a.relu()` gives -0.03 for -3.0 where micrograd gives 0, so the class differs.
"""

from __future__ import annotations

import ast
import contextlib
import marshal
import math
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Optional, Union

from zoomgrad.engines.native.forms import METHODS
from zoomgrad.harness.worker.programs.dress import dress, let_super_find
from zoomgrad.harness.worker.programs.observe import Differs, Look, fields, namespace, observe

LIMIT_SECONDS = 10
VARIABLE = 0x0C
"""Flags of code that takes `*args` or `**kwargs`."""
OPERANDS = (
    *((0.37, -1.29), (-3.1, 2.3), (0.0, 0.0), (30.0, 1e-12), (-600.0, 600.0), (3, -2)),
    *((1.565, 2.644), (-2.132, 1.492), (-1.755, 0.618)),
)
"""Numbers for a and b, with those at which a variant of an operation may differ: limits, leaks and small terms. At the
last ones the forms of tanh differ, where 1 - t*t and 1 - t**2 are one in 1,200."""

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

Numbers = list[Optional[Union[int, float]]]


class Sample(NamedTuple):
    """An expression over Values a and b with these numbers. It gives a list of nodes, the root last."""

    text: str
    operands: tuple[float, float]

    def evaluate(self, make: Any, look: Look, *, again: bool = False) -> Numbers:
        """Data and gradient of a, b and each node. Raises what the class raises. again: a second backward pass."""
        a, b = (make(number) for number in self.operands)
        nodes = eval(self.text, {"a": a, "b": b})  # noqa: S307  (text of this file)
        nodes = nodes if isinstance(nodes, list) else [nodes]
        for _ in range(1 + again):
            getattr(nodes[-1], look.backward)()
        values = (*nodes, a, b)
        return [getattr(v, part) for part in (look.data, look.grad) for v in values]

    def difference(self, own: Numbers, ours: Union[Numbers, Exception]) -> str:
        """The first difference, in words."""
        case = f"with a = {self.operands[0]} and b = {self.operands[1]}, "
        if isinstance(ours, Exception):
            return f"{case}{self.text} is {own[0]} and not a {type(ours).__name__}"
        at = next(i for i, pair in enumerate(zip(own, ours)) if not _close(*pair))
        kind, node = divmod(at, len(own) // 2)
        values = [*(["a node"] * (len(own) // 2 - 3)), "the result", "a", "b"]
        return (
            f"{case}the {('data', 'gradient')[kind]} of {values[node]} in {self.text} is {own[at]} and not {ours[at]}"
        )


def _close(number: Any, other: Any) -> bool:
    """Whether two numbers differ by no more than rounding, as those of tanh and its formula with exp."""
    are_numbers = isinstance(number, (int, float)) and isinstance(other, (int, float))
    return _equal(number, other) or (are_numbers and math.isclose(number, other, rel_tol=1e-9, abs_tol=1e-12))


def _equal(number: Any, other: Any) -> bool:
    return type(number) is type(other) and bool(number == other or (number != number and other != other))


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
        _answer(writing, lambda: _compare(own, value, formulas))
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as answer:
        # The end of the file may never come, if the class has started processes.
        os.set_blocking(reading, False)
        text = answer.read(1 << 16) or b""
    found = marshal.loads(text) if text else f"comparing them did not end in {LIMIT_SECONDS} s"  # noqa: S302  (ours)
    return found if isinstance(found, str) else Look(*found)


def _answer(writing: int, compare: Callable[[], Any]) -> None:
    """Write the result, and end this process."""
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIMIT_SECONDS)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
        try:
            found = compare()
        except Differs as difference:
            found = str(difference)
        except BaseException as error:
            found = f"it fails to compute: {type(error).__name__}: {error}"[:300]
        os.write(writing, marshal.dumps(found if isinstance(found, str) else tuple(found)))
    finally:
        os._exit(0)


def _compare(own: Any, value: Any, formulas: bool) -> Look:
    warnings.simplefilter("ignore")
    try:
        return _Comparison(own, value, formulas).look()
    except NameError:
        _define_what_follows(own)
        return _Comparison(own, value, formulas).look()


def _define_what_follows(own: Any) -> None:
    """Run the functions, imports and constants below the class, which its methods may use."""
    init = namespace(own)["__init__"]
    with contextlib.suppress(OSError, SyntaxError, ValueError):
        module = ast.parse(Path(init.__code__.co_filename).read_bytes())
        for item in module.body:
            constant = isinstance(item, ast.Assign) and isinstance(item.value, ast.Constant)
            defines = constant or isinstance(item, (ast.FunctionDef, ast.Import, ast.ImportFrom))
            if defines and item.lineno > init.__code__.co_firstlineno:
                with contextlib.suppress(Exception):
                    exec(compile(ast.Module([item], []), "", "exec"), init.__globals__)  # noqa: S102  (the program's)


class _Comparison:
    """The program's class and the class in C that would stand in for it."""

    def __init__(self, own: Any, value: Any, formulas: bool) -> None:
        self.own, self.value, self.formulas = own, value, formulas
        self.names = namespace(own)
        self._bind(own)
        self.known = observe(own)

    def look(self) -> Look:
        """Raises Differs."""
        known, methods, differences, certain = self.known, {}, {}, False
        bare = dress(self.own, known._replace(methods={name: name for name in OPERATORS}), self.value)
        for name in (name for name in OPERATORS if name in self.names):
            methods[name], differences[name], is_certain = self._choose(name, bare)
            certain |= is_certain
        if certain:
            raise Differs("; ".join(f"{name.strip('_')}: {text}" for name, text in differences.items() if text))
        look = known._replace(methods=methods, texts={**known.texts, **self._texts(bare, methods)})
        cls = dress(self.own, look, self.value)
        further = [Sample(f"a.{name}()", operands) for name in self._further() for operands in OPERANDS]
        for sample in (*(Sample(text, operands) for text in GRAPHS for operands in OPERANDS[:2]), *further):
            for again in (False, True):
                own, ours = self._try(sample, self.own, again), self._try(sample, cls, again)
                if isinstance(own, list) and not (isinstance(ours, list) and all(map(_close, own, ours))):
                    raise Differs(sample.difference(own, ours))
        self._same_attributes(cls)
        return look

    def _choose(self, name: str, bare: Any) -> tuple[str, str, bool]:
        """The method in C for an operation, or none; how it differs; and whether it computes something else."""
        samples = [
            Sample(text, operands)
            for expression in OPERATORS[name]
            for operands in OPERANDS
            for text in (expression, f"[c := {expression}, c * a]")
        ]
        pairs = [(sample, self._try(sample, self.own)) for sample in samples]
        able = [(sample, numbers) for sample, numbers in pairs if isinstance(numbers, list)]
        if not able or self._takes_more(name):
            return "", "", False
        problems = []
        for form in METHODS.get(name, (name,)):
            tried = [self._try(s._replace(text=s.text.replace(f".{name}(", f".{form}(")), bare) for s, _ in able]
            results = [(sample, own, ours) for (sample, own), ours in zip(able, tried)]
            raised = [sample.difference(own, ours) for sample, own, ours in results if isinstance(ours, Exception)]
            other = [
                sample.difference(own, ours)
                for sample, own, ours in results
                if isinstance(ours, list) and not all(map(_close, own, ours))
            ]
            exact = all(isinstance(ours, list) and all(map(_equal, own, ours)) for _, own, ours in results)
            if exact or not (raised or other or self.formulas):
                return form, "", False
            problems.append(("", (other or raised or [""])[0], bool(other)))
        return problems[0]

    def _takes_more(self, name: str) -> bool:
        """Whether a method has parameters that the one in C lacks."""
        code = getattr(self.names[name], "__code__", None)
        operands = 1 if name == "__neg__" or name in UNARY else 2
        return code is None or code.co_argcount != operands or bool(code.co_kwonlyargcount or code.co_flags & VARIABLE)

    def _texts(self, bare: Any, methods: Mapping[str, str]) -> dict[str, Any]:
        """Name of an operation in C -> what the program calls it, where that differs."""
        texts = {}
        for name, method in methods.items():
            for operands in OPERANDS if method and self.known.op else ():
                with contextlib.suppress(Exception):
                    text = OPERATORS[name][0]
                    own, ours = (eval(text, dict(zip("ab", map(make, operands)))) for make in (self.own, bare))  # noqa: S307
                    if getattr(own, self.known.op) != ours._op:
                        texts[ours._name] = getattr(own, self.known.op)
                    break
        return texts

    def _further(self) -> Iterator[str]:
        """Operations of the program's own: methods without arguments that create objects of the class."""
        for name, item in self.names.items():
            code = getattr(item, "__code__", None)
            if code is not None and name not in OPERATORS and not name.startswith("_"):
                required = code.co_argcount - len(item.__defaults__ or ())
                if required == 1 and self.own.__name__ in (*code.co_names, *code.co_freevars):
                    yield name

    def _same_attributes(self, cls: Any) -> None:
        """Raise Differs if objects of both classes have other attributes, or print in another way."""
        results = []
        for make in (self.own, cls):
            self._bind(make)
            results.append((make(2.5), make(2.5) * make(-1.5)))
        for own, ours in zip(*results):
            for name, x in fields(own).items():
                known = name in (self.known.children, self.known.rule)
                if not known and getattr(ours, name) != x:
                    raise Differs(f"{name} of a new object is {x!r} and not {getattr(ours, name)!r}")
            texts = [repr(v) for v in (own, ours)]
            if texts[0] != texts[1] and " at 0x" not in texts[0]:
                raise Differs(f"it prints {texts[0]} and not {texts[1]}")

    def _try(self, sample: Sample, make: Any, again: bool = False) -> Union[Numbers, Exception]:
        self._bind(make)
        try:
            return sample.evaluate(make, self.known, again=again)
        except NameError:
            raise
        except Exception as error:
            return error

    def _bind(self, cls: Any) -> None:
        """Let the methods of the program's class see this class under its name, which nothing has yet."""
        for item in self.names.values():
            code = getattr(item, "__code__", None)
            if code is not None:
                item.__globals__[self.own.__name__] = cls
                for name, cell in zip(code.co_freevars, item.__closure__ or ()):
                    if name == self.own.__name__:
                        cell.cell_contents = cls
        let_super_find(self.own, cls)
