"""Sampled stack -> the group of work that it belongs to."""

from zoomgrad.harness.profile.symbols import OTHERS, Frame, group_of

CASES = {
    # the innermost function decides
    ("gc_collect_main",): "garbage collector",
    ("collect.constprop.0",): "garbage collector",  # 3.9 and 3.10
    ("visit_decref",): "garbage collector",
    ("_PyEval_EvalFrameDefault",): "evaluation loop",
    ("py::Value.__init__",): "evaluation loop",
    ("_PyObject_Malloc",): "allocation",
    ("PyFloat_FromDouble",): "allocation",
    ("set_add_entry",): "sets",
    ("PyDict_SetItem",): "dictionaries",
    ("PyFunction_NewWithQualName",): "calls",
    ("_PyType_Lookup",): "attributes and types",
    ("float_mul",): "arithmetic",
    ("tupleiter_next",): "containers",
    ("exp@GLIBC_2.2.5",): "arithmetic",
    ("some_function_of_an_extension",): OTHERS,
    # everything below a collection counts for the collector
    ("set_dealloc", "_PyObject_ClearInstanceAttributes", "gc_collect_main", "_PyObject_GC_Link"): "garbage collector",
    # a function on behalf of its caller counts for the caller
    ("__tls_get_addr", "_PyObject_Malloc"): "allocation",
    ("__memset_avx512_unaligned_erms", "PyDict_New"): "dictionaries",
    ("__tls_get_addr@plt", "__tls_get_addr"): OTHERS,
}
"""Functions on a stack, innermost first -> their group."""

BY_FILE = {
    "[kernel.kallsyms]": "system",
    "program.so": "compiled code",
    "libpypy3.9-c.so": "PyPy's runtime",
    "libLLVM.so.19.1": "C compiler",
    "cc1": "C compiler",
    "_multiarray_umath.cpython-313-x86_64-linux-gnu.so": "NumPy",
    "ld-linux-x86-64.so.2": "system",
    "perf-123.map": "machine code of the JIT",
}


def test_the_group_of_a_stack():
    python = "libpython3.13.so.1.0"
    assert {symbols: group_of([Frame(symbol, python) for symbol in symbols]) for symbols in CASES} == CASES
    assert {file: group_of([Frame("[unknown]", file)]) for file in BY_FILE} == BY_FILE
