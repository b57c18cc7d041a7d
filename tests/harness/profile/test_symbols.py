"""Sampled stack -> the group of work that it belongs to."""

import pytest

from zoomgrad.harness.profile.symbols import OTHERS, Frame, group_of

PYTHON = "libpython3.13.so.1.0"


def group(*symbols, lies_in=PYTHON):
    """Return the group of a stack. symbols: its functions, innermost first."""
    return group_of([Frame(symbol, lies_in) for symbol in symbols])


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("gc_collect_main", "garbage collector"),
        ("collect.constprop.0", "garbage collector"),  # 3.9 and 3.10
        ("visit_decref", "garbage collector"),
        ("_PyEval_EvalFrameDefault", "evaluation loop"),
        ("py::Value.__init__", "evaluation loop"),
        ("_PyObject_Malloc", "allocation"),
        ("PyFloat_FromDouble", "allocation"),
        ("set_add_entry", "sets"),
        ("PyDict_SetItem", "dictionaries"),
        ("PyFunction_NewWithQualName", "calls"),
        ("_PyType_Lookup", "attributes and types"),
        ("float_mul", "arithmetic"),
        ("tupleiter_next", "containers"),
        ("exp@GLIBC_2.2.5", "arithmetic"),
        ("some_function_of_an_extension", OTHERS),
    ],
)
def test_the_innermost_function_decides(symbol, expected):
    assert group(symbol, "_PyEval_EvalFrameDefault") == expected


def test_everything_below_a_collection_counts_for_the_collector():
    assert group("set_dealloc", "_PyObject_ClearInstanceAttributes", "gc_collect_main", "_PyObject_GC_Link") == (
        "garbage collector"
    )


def test_a_function_on_behalf_of_its_caller_counts_for_the_caller():
    assert group("__tls_get_addr", "_PyObject_Malloc") == "allocation"
    assert group("__memset_avx512_unaligned_erms", "PyDict_New") == "dictionaries"
    assert group("__tls_get_addr@plt", "__tls_get_addr") == OTHERS


def test_some_groups_depend_on_the_file():
    assert group("exc_page_fault", lies_in="[kernel.kallsyms]") == "system"
    assert group("[unknown]", lies_in="program.so") == "compiled code"
    assert group("[unknown]", lies_in="libpypy3.9-c.so") == "PyPy's runtime"
    assert group("[unknown]", lies_in="libLLVM.so.19.1") == group("[unknown]", lies_in="cc1") == "C compiler"
    assert group("PyArray_CumSum", lies_in="_multiarray_umath.cpython-313-x86_64-linux-gnu.so") == "NumPy"
    assert group("_dl_relocate_object", lies_in="ld-linux-x86-64.so.2") == "system"
    assert group("[unknown]", lies_in="perf-123.map") == "machine code of the JIT"
