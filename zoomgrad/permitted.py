"""What a function may use and still be compiled: lists of what is known to depend on nothing that can't be watched.

The program's own code is read for names and instructions: `objection` refuses attributes such as `__dict__` and
`f_globals`, functions such as `globals` and `getattr`, imports, and `is` between two variables. What that code calls is
noted while it runs (`tracing.py`). Code of libraries must come from one of MODULES. Whatever is not on a list is
refused, so that an unknown function can't read a clock, a file or a setting unnoticed.
"""

from __future__ import annotations

import dis
import functools
import types
from typing import Any, NamedTuple

BUILTINS = frozenset(
    [
        "abs",
        "all",
        "any",
        "ascii",
        "bin",
        "bool",
        "bytearray",
        "bytes",
        "callable",
        "chr",
        "complex",
        "dict",
        "divmod",
        "enumerate",
        "filter",
        "float",
        "frozenset",
        "hex",
        "int",
        "isinstance",
        "issubclass",
        "iter",
        "len",
        "list",
        "map",
        "max",
        "min",
        "next",
        "object",
        "oct",
        "ord",
        "pow",
        "print",
        "property",
        "range",
        "repr",
        "reversed",
        "round",
        "set",
        "slice",
        "sorted",
        "staticmethod",
        "classmethod",
        "str",
        "sum",
        "super",
        "tuple",
        "zip",
        "Ellipsis",
        "NotImplemented",
        "__debug__",
    ]
)
"""Built-in functions and classes, by their names."""

MODULES = frozenset(
    [
        "abc",
        "bisect",
        "cmath",
        "codecs",
        "collections",
        "contextlib",
        "dataclasses",
        "encodings",
        "engines",
        "enum",
        "fractions",
        "functools",
        "heapq",
        "itertools",
        "math",
        "numbers",
        "operator",
        "statistics",
        "string",
        "typing",
        "zoomgrad",
        "collections_abc",
    ]
)
"""Libraries whose results depend on their arguments only, by the first part of the module's name without `_`."""

NOT_THESE = frozenset(
    [
        "attrgetter",
        "methodcaller",
        "is_",
        "is_not",
        "call",
        "lru_cache",
        "cache",
        "_lru_cache_wrapper",
        "singledispatch",
        "singledispatchmethod",
        "format",
        "format_map",
    ]
)
"""Names in these modules and classes that are refused: they reach attributes, identities or a state of their own."""

ARRAYS = frozenset(
    [
        "arange",
        "argmax",
        "argmin",
        "array",
        "asarray",
        "concatenate",
        "diag",
        "dot",
        "empty",
        "eye",
        "float64",
        "full",
        "hstack",
        "identity",
        "inner",
        "int64",
        "linspace",
        "matmul",
        "maximum",
        "mean",
        "minimum",
        "ndenumerate",
        "ndindex",
        "newaxis",
        "ones",
        "outer",
        "prod",
        "ravel",
        "repeat",
        "reshape",
        "square",
        "squeeze",
        "stack",
        "sum",
        "tile",
        "transpose",
        "vstack",
        "zeros",
        "copy",
        "flatten",
        "item",
        "tolist",
        "array_equal",
        "ndarray",
        "floating",
        "integer",
        "number",
        "generic",
        "bool_",
    ]
)
"""Functions of NumPy and methods of its arrays. All of its element-wise functions are permitted too."""

OF_ARRAYS = frozenset(["base", "ctypes", "dtype", "flags", "imag", "itemsize", "nbytes", "real", "strides"])
"""Attributes of NumPy's arrays that differ in a trace, where their entries are objects."""

METHODS_OF = frozenset(
    [
        "BaseException",
        "Datum",
        "Exception",
        "IntDatum",
        "Value",
        "bool",
        "bytearray",
        "bytes",
        "complex",
        "dict",
        "float",
        "frozenset",
        "generator",
        "int",
        "list",
        "object",
        "range",
        "set",
        "slice",
        "str",
        "tuple",
        "Counter",
        "OrderedDict",
        "defaultdict",
    ]
)
"""Classes in C whose methods depend on the object and the arguments only."""

_OF_OBJECTS = ("new", "init", "post_init", "call", "next", "enter", "exit", "eq", "ne", "lt", "le", "gt", "ge")
_OTHERS = ("debug", "doc", "file", "name", "qualname", "matmul", "itruediv")
DUNDERS = frozenset(
    {name for kind in (int, float, list, set, dict) for name in dir(kind) if name not in dir(object)}
    | {f"__{name}__" for name in _OF_OBJECTS + _OTHERS}
)
"""Attributes with such names that depend on the object and the arguments only."""

_ONLY_GLOBAL = frozenset({"__name__", "__file__", "__doc__", "__qualname__", "__debug__"})
_INSIDES = ("gi_", "cr_", "ag_", "tb_", "co_", "f_", "func_", "_Compiled_")
"""Starts of attributes of frames, generators and code."""


class Facts(NamedTuple):
    """What the code of a function and of the functions in it names."""

    names: frozenset[str]
    """Global names."""
    attributes: frozenset[str]
    objection: str
    """Why it is refused; empty if it is not."""


@functools.lru_cache(maxsize=10_000)
def facts_of(code: types.CodeType) -> Facts:
    """Read the code's instructions."""
    names, attributes, objection, line, before = set(), set(), "", code.co_firstlineno, None
    for each in dis.get_instructions(code):
        found, named = "", each.argval
        line = _line(each) or line
        if "GLOBAL" in each.opname or each.opname.startswith(("LOAD_NAME", "LOAD_FROM_DICT")):
            names.add(named)
        elif each.opname.startswith("IMPORT_"):
            found = "imports in a function"
        elif isinstance(named, str) and ("ATTR" in each.opname or "METHOD" in each.opname):
            attributes.add(named)
            dunder = named.startswith("__") and named.endswith("__")
            if (dunder and (named not in DUNDERS or named in _ONLY_GLOBAL)) or named.startswith(_INSIDES):
                found = f"uses .{named}"
        elif (each.opname == "IS_OP" or named in ("is", "is not")) and not _is_constant(before):
            found = "compares identities"
        elif each.opname == "MATCH_CLASS":
            found = "matches a class"
        if found:
            objection = objection or f"{found} in {place(code, line)}"
        if each.opname not in ("EXTENDED_ARG", "CACHE", "NOP"):
            before = each
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            more = facts_of(inner)
            names, attributes = names | more.names, attributes | more.attributes
            objection = objection or more.objection
    return Facts(frozenset(names), frozenset(attributes), objection)


def place(code: types.CodeType, line: int) -> str:
    """A line of code, for messages."""
    return f"{code.co_name}, line {line} of {code.co_filename.replace(chr(92), '/').rpartition('/')[2]}"


def _line(instruction: Any) -> int:
    line = getattr(instruction, "line_number", instruction.starts_line)
    return line if type(line) is int else 0


def _is_constant(instruction: Any) -> bool:
    return instruction is not None and any(
        instruction.opname.startswith("LOAD_CONST") and instruction.argval is each for each in (None, True, False, ...)
    )


def is_permitted(found: Any) -> bool:
    """Whether a function or class that no Python code of the program defines may be used."""
    name = getattr(found, "__name__", "")
    module = getattr(found, "__module__", None) or ""
    if not isinstance(name, str) or not isinstance(module, str) or name in NOT_THESE:
        return False
    if type(found).__name__ == "ufunc" and type(found).__module__.startswith("numpy"):
        return True
    first = module.partition(".")[0]
    if first == "builtins":
        own = isinstance(getattr(found, "__self__", None), (types.ModuleType, type(None)))  # None on PyPy
        if isinstance(found, type) or own:
            return name in BUILTINS or (isinstance(found, type) and issubclass(found, BaseException))
    if first == "numpy":
        return name in ARRAYS
    owner = getattr(found, "__self__", None)
    if not isinstance(found, type) and owner is not None and not isinstance(owner, types.ModuleType):
        return _is_method(found)
    return first.lstrip("_") in MODULES or (not first and _is_method(found))


def _is_method(found: Any) -> bool:
    """Whether a method of a class in C is permitted. Its name says the class."""
    owner, _, name = getattr(found, "__qualname__", "").rpartition(".")
    if owner == "ndarray":
        return name in ARRAYS
    is_inside = name.startswith("__") and name not in DUNDERS
    # The name is that of the object's class, which may derive from the class of the method.
    owners = {owner, *(cls.__name__ for cls in type(getattr(found, "__self__", None)).__mro__)} - {"object"}
    return bool((owners | {owner}) & METHODS_OF) and not is_inside and name not in NOT_THESE


def shown(found: Any) -> str:
    """A function or class with its module, for messages."""
    module = getattr(found, "__module__", None)
    name = getattr(found, "__qualname__", type(found).__name__)
    return f"{module}.{name}" if isinstance(module, str) and module != "builtins" else name
