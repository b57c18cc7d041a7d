"""`slots` -> the Python text that the tools compile: its Value, with the mixin of derived operators written into it.

mypyc can't compile a class whose base it does not compile. It enforces annotations, but a program may pass a set of
children, or a Fraction as an exponent, and it does not know `Self`. It stops at `reversed` over a list of any type, so
two loops walk a reversed copy instead. Everything else is the text of `engines/interpreted/slots.py` and
`engines/value_base.py`, word for word.
"""

from __future__ import annotations

from functools import cache

from zoomgrad.engines.kernel.c_text import read

_CHANGES = (
    ("from zoomgrad.engines.api import Number\n", "from zoomgrad.engines.api import CyclicGraph, Number\n"),
    ("import Derived, check_exponent", "import check_exponent"),
    ("class Value(Derived):", "class Value:"),
    ("def __pow__(self, other: Number)", "def __pow__(self, other: Any)"),
    (
        '_children: tuple[Value, ...] = (), _op: str = "", label: str = ""',
        '_children: Any = (), _op: Any = "", label: Any = ""',
    ),
    ("reversed(tuple(v._prev))", "list(v._prev)[::-1]"),
    ("reversed(self.topo())", "self.topo()[::-1]"),
)


@cache
def source() -> str:
    """The text of a module that defines Value."""
    own = read("interpreted/slots.py")
    _, first, derived = read("value_base.py").partition("    def topo(")
    text = f"{own}\n{first}{derived.replace('-> Self:', '-> Any:')}"
    for old, new in _CHANGES:
        assert text.count(old) == 1, f"{old!r} must occur once in slots.py and value_base.py together"
        text = text.replace(old, new)
    return text
