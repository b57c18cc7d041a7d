"""Sampled stack -> kind of work, such as allocation or garbage collection, by rules on function names.

The names are those of CPython 3.9 to 3.14. A rule with `anywhere` also covers everything that its functions call.
Otherwise the innermost function decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from zoomgrad.engines.graph.expr import calls
from zoomgrad.engines.graph.ops import OPS


class Frame(NamedTuple):
    """A function on a sampled stack, and the file name of its library or program."""

    symbol: str
    object: str


class Rule(NamedTuple):
    """Assigns functions to a group."""

    group: str
    pattern: re.Pattern[str]
    anywhere: bool = False
    by_object: bool = False
    """Whether the pattern matches the file, not the function."""


def _rule(group: str, pattern: str, **options: bool) -> Rule:
    return Rule(group, re.compile(pattern), **options)


OTHERS = "others"

TRANSPARENT = re.compile(r"^__tls_get_addr|^_*mem(set|move|cpy|cmp)|@plt$")
"""Helpers that work for their callers. A sample in them counts for the caller."""

LIBM = "|".join(sorted({name for op in OPS.values() for expr in op.exprs for name, _ in calls(expr)}))
"""The functions of libm that the op table calls, as a pattern."""

RULES = (
    # gc_collect_main was named collect until 3.11. The C compiler may have inlined either.
    _rule(
        "garbage collector",
        r"^(_?Py)?_?gc_collect|^collect(_main|_generations|_with_callback|_increment|_young|_full)?(\.|$)",
        anywhere=True,
    ),
    _rule(
        "garbage collector",
        r"^visit_(decref|reachable|move|add)|_?traverse(\.|$)|^(subtract|update)_refs"
        r"|^(move|deduce|untrack|clear|handle|finalize)_(unreachable|legacy|tuples|dicts|weakrefs|garbage)"
        r"|^gc_(list|get|set|is)|^PyObject_IS_GC|^_PyGC|^_?PyObject_Visit(ManagedDict|InstanceAttributes)",
    ),
    _rule("garbage collector", r"^pypy_g_\w*(GC_|GCBase|MiniMark|Nursery|collect_and_reserve)", anywhere=True),
    _rule(
        "tracing and compiling",
        r"^pypy_g_\w*(MetaInterp|MIFrame|_metainterp|[oO]ptimiz|[rR]eg[aA]lloc|Assembler|[rR]esume)",
        anywhere=True,
    ),
    _rule("machine code of the JIT", r"^(//anon|\[anon|\[unknown|anon_inode|perf-\d+\.map)", by_object=True),
    _rule("PyPy's runtime", r"^(lib)?pypy", by_object=True),  # distributions strip its symbol names
    _rule("compiled code", r"^program\.so", by_object=True),
    _rule(
        "C compiler",
        r"^(lib(LLVM|clang|bfd|opcodes|gmp|mpfr|mpc|isl)|cc1|gcc|clang|collect2|ld$|ld\.|as$|tcc)",
        by_object=True,
    ),
    _rule("NumPy", r"^_multiarray_umath|openblas", by_object=True),
    _rule("system", r"^\[(kernel|vdso)|\.ko$|^ld-(linux|musl)", by_object=True),
    _rule(
        "Python's compiler",
        r"^_PyPegen|_rule(\.|$)|Tokenizer|^tok_|^(compiler|codegen|symtable|ast|astfold|validate)_|^_Py(Cfg|Assemble|Compile|AST)"
        r"|InstructionSequence|^propagate_line|^code_hash|^(optimize|remove|fold)_\w*(code|block|const|unused|redundant)",
    ),
    _rule("sets", r"^_?(set_|PySet_|frozenset_|make_new_set)"),
    _rule(
        "dictionaries",
        r"[dD]ict|unicodekeys_lookup|InstanceAttribute|inline_values|insert_to_emptydict|new_keys_object|build_indices",
    ),
    _rule(
        "allocation",
        r"[aA]lloc|^_?PyObject_(GC_)?(New|Free|Del|Track|UnTrack|Link)|^_int_(malloc|free)|^c?free|_Py_Dealloc|^_PyMem_"
        r"|arena|^_Py_NewReference|^_?mi_|^m(un)?map|^madvise|^PyTuple_New|^PyFloat_FromDouble|^_PyTuple_From",
    ),
    _rule("evaluation loop", r"^_PyEval_EvalFrame|^_?PyEval_|^_Py_HandlePending|^py::"),
    _rule(
        "calls",
        r"[vV]ectorcall|PyFunction|^func_|^_PyFrame_|^_PyEvalFrame|^_PyThreadState_P|^initialize_locals|^slot_tp_"
        r"|^type_call|^_PyObject_(MakeTpCall|Call)|^PyObject_Call|^cell|^PyCell_|^method_|^_Py_CheckFunctionResult"
        r"|^wrap_|^partial_|^v?getargs|^convert(item|simple)|^gen_|^_PyGen|py_trampoline|^object_init|^clear_thread_frame|^_Py_CheckRecursive",
    ),
    _rule(
        "attributes and types",
        r"Generic[GS]etAttr|^_?PyType_|[gGsS]etattro|^type_|descr|^_?PyObject_(Get|Set|Lookup)(Attr|Method)"
        r"|^PyObject_Is(Instance|True)|^member_",
    ),
    _rule(
        "arithmetic",
        r"^(float|long|int|bool)_|^PyNumber_|^_?PyLong_|^_?PyFloat_|binary_op|RichCompare|^do_richcompare"
        rf"|^(__)?(ieee754_)?({LIBM}|exp1|expm1)(@|_fma|$)",  # libm itself calls the last two
    ),
    _rule(
        "containers",
        r"^(list|tuple|array|zip|enum|range|reversed)|^_?Py(List|Tuple|Iter|Sequence)|^PyObject_[GS]etItem|[iI]ter(next)?$",
    ),
)
"""The first matching rule decides."""


def group_of(stack: Sequence[Frame]) -> str:
    """Group of a sample. stack: innermost frame first."""
    innermost = next((n for n, frame in enumerate(stack) if not TRANSPARENT.search(frame.symbol)), 0)
    for rule in RULES:
        for frame in stack if rule.anywhere else stack[innermost : innermost + 1]:
            if rule.pattern.search(frame.object if rule.by_object else frame.symbol):
                return rule.group
    return OTHERS
