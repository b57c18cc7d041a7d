"""Sampled stack -> kind of work, such as allocation or garbage collection, by the names of functions.

The names are those of CPython 3.9 to 3.14. A sample anywhere below a function of BELOW is of that group. Otherwise the
innermost function decides: by the file that it lies in, then by its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from zoomgrad.engines.graph.expr import calls
from zoomgrad.engines.graph.ops import OPS


class Frame(NamedTuple):
    """A function on a sampled stack, and the file name of its library or program."""

    symbol: str
    object: str


COLLECTOR, OTHERS = "garbage collector", "others"

TRANSPARENT = re.compile(r"^__tls_get_addr|^_*mem(set|move|cpy|cmp)|@plt$")
"""Helpers that work for their callers. A sample in them counts for the caller."""

LIBM = "|".join(sorted({name for op in OPS.values() for expr in op.exprs for name, _ in calls(expr)}))
"""The functions of libm that the op table calls, as a pattern."""


def _compiled(patterns: Mapping[str, str]) -> dict[str, re.Pattern[str]]:
    return {group: re.compile(pattern) for group, pattern in patterns.items()}


BELOW = _compiled(
    {
        # gc_collect_main was named collect until 3.11. The C compiler may have inlined either.
        COLLECTOR: r"^(_?Py)?_?gc_collect|^collect(_main|_generations|_with_callback|_increment|_young|_full)?(\.|$)"
        r"|^pypy_g_\w*(GC_|GCBase|MiniMark|Nursery|collect_and_reserve)",
        "tracing and compiling": r"^pypy_g_\w*(MetaInterp|MIFrame|[oO]ptimiz|[rR]eg[aA]lloc|Assembler|[rR]esume)",
    }
)
BY_FILE = _compiled(
    {
        "machine code of the JIT": r"^(//anon|\[anon|\[unknown|anon_inode|perf-\d+\.map)",
        "PyPy's runtime": r"^(lib)?pypy",  # distributions strip its symbol names
        "compiled code": r"^program\.so",
        "C compiler": r"^(lib(LLVM|clang|bfd|opcodes|gmp|mpfr|mpc|isl)|cc1|gcc|clang|collect2|ld$|ld\.|as$|tcc)",
        "NumPy": r"^_multiarray_umath|openblas",
        "system": r"^\[(kernel|vdso)|\.ko$|^ld-(linux|musl)",
    }
)
BY_NAME = _compiled(
    {
        COLLECTOR: r"^visit_(decref|reachable|move|add)|_?traverse(\.|$)|^(subtract|update)_refs"
        r"|^(move|deduce|untrack|clear|handle|finalize)_(unreachable|legacy|tuples|dicts|weakrefs|garbage)"
        r"|^gc_(list|get|set|is)|^PyObject_IS_GC|^_PyGC|^_?PyObject_Visit(ManagedDict|InstanceAttributes)",
        "sets": r"^_?(set_|PySet_|frozenset_|make_new_set)",
        "dictionaries": r"[dD]ict|unicodekeys_lookup|InstanceAttribute|inline_values|new_keys_object|build_indices",
        "allocation": r"[aA]lloc|^_?PyObject_(GC_)?(New|Free|Del|Track|UnTrack|Link)|^_int_(malloc|free)|^c?free"
        r"|_Py_Dealloc|^_PyMem_|arena|^_Py_NewReference|^_?mi_|^m(un)?map|^madvise|^PyTuple_New|^PyFloat_FromDouble",
        "evaluation loop": r"^_PyEval_EvalFrame|^_?PyEval_|^_Py_HandlePending|^py::",
        "calls": r"[vV]ectorcall|PyFunction|^func_|^_PyFrame_|^_PyEvalFrame|^_PyThreadState_P|^initialize_locals"
        r"|^slot_tp_|^type_call|^_?PyObject_(MakeTpCall|Call)|^cell|^PyCell_|^method_|^_Py_CheckFunctionResult|^wrap_",
        "attributes and types": r"Generic[GS]etAttr|^_?PyType_|[gGsS]etattro|^type_|descr|^member_"
        r"|^_?PyObject_(Get|Set|Lookup)(Attr|Method)|^PyObject_Is(Instance|True)",
        "arithmetic": r"^(float|long|int|bool)_|^PyNumber_|^_?PyLong_|^_?PyFloat_|binary_op|RichCompare"
        rf"|^(__)?(ieee754_)?({LIBM}|exp1|expm1)(@|_fma|$)",  # libm itself calls the last two
        "containers": r"^(list|tuple|array|zip|enum|range)|^_?Py(List|Tuple|Iter|Sequence)|^PyObject_[GS]etItem",
    }
)
"""Group -> its functions. The first match decides."""


def group_of(stack: Sequence[Frame]) -> str:
    """Group of a sample. stack: innermost frame first."""
    innermost = next((frame for frame in stack if not TRANSPARENT.search(frame.symbol)), stack[0])
    for group, pattern in BELOW.items():
        if any(pattern.search(frame.symbol) for frame in stack):
            return group
    for table, text in ((BY_FILE, innermost.object), (BY_NAME, innermost.symbol)):
        for group, pattern in table.items():
            if pattern.search(text):
                return group
    return OTHERS
