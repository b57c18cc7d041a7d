"""The same C as a CPython extension module, in place of cffi: what a call costs, and what Python.h costs to compile.

A modern module: multi-phase initialisation, fastcall methods, no state but its functions, every argument checked. It is
its own Kernel, buffers and all.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import sysconfig
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engines.api import Unavailable
from engines.columns import MOST_COLUMNS, Column
from engines.kernel import building, toolchains
from engines.kernel.c_text import Source
from engines.kernel.program import Buffers, Doubles, Kernel, Stretch
from engines.straight.c_engines import FORMS, StraightC
from engines.straight.c_source import c_source
from engines.straight.lower import Code

MODULE = "zoomgrad_program"

# Python.h of 3.13 compiles under TCC with the limited API only, which has buffers from 3.11 on.
LIMITED_API = "#define Py_LIMITED_API 0x030b0000\n" if sys.version_info >= (3, 11) else ""

TOP = """\
{limited}#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum {{ WORKSPACE = {workspace}, OUTPUTS = {outputs}, MOST_COLUMNS = {most_columns} }};

"""

BOTTOM = r"""
/* --- the module: arguments are checked, then passed on ------------------------------------------------------------ */

struct expected {
    const char *name;
    Py_ssize_t length;
    int writable;
};

static const struct expected x = {"x", INPUTS, 1}, p = {"p", PARAMETERS, 1}, w = {"w", WORKSPACE, 1},
                             y = {"y", OUTPUTS, 1}, q = {"q", PARAMETERS, 1};

enum { MOST_BUFFERS = 7 };

static void release(Py_buffer *views, Py_ssize_t count)
{
    while (count-- > 0)
        PyBuffer_Release(&views[count]);
}

/* One buffer of doubles, at least `length` of them; -1 with an exception set where it is something else. */
static int take_one(PyObject *object, const struct expected *wanted, Py_buffer *view)
{
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (wanted->writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags) < 0)
        return -1;
    if (!view->format || view->format[0] != 'd' || view->format[1])
        PyErr_Format(PyExc_TypeError, "%s must hold doubles", wanted->name);
    else if (view->len && (size_t)view->buf % sizeof(double))
        PyErr_Format(PyExc_ValueError, "%s must begin at a multiple of %d bytes", wanted->name, (int)sizeof(double));
    else if (view->len / (Py_ssize_t)sizeof(double) < wanted->length) /* a product could wrap around */
        PyErr_Format(PyExc_ValueError, "%s must hold %zd doubles; it holds %zd", wanted->name, wanted->length,
                     view->len / (Py_ssize_t)sizeof(double));
    else
        return 0;
    PyBuffer_Release(view);
    return -1;
}

static int take(PyObject *const *args, const struct expected *const *wanted, Py_ssize_t count, Py_buffer *views)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if (take_one(args[i], wanted[i], &views[i]) < 0) {
            release(views, i);
            return -1;
        }
    return 0;
}

static int count_is(const char *name, Py_ssize_t found, Py_ssize_t wanted)
{
    if (found == wanted)
        return 1;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", name, wanted, found);
    return 0;
}

/* Columns: a tuple of (data, width, divisor, one_hot). Rows: how many each must hold, 0 to learn it from the first. */
struct columns {
    struct column described[MOST_COLUMNS];
    Py_buffer views[MOST_COLUMNS];
    Py_ssize_t count;
    Py_ssize_t rows;
};

/* A number may be an object of Python's, which may do anything when asked, even resize a buffer: exact types only. */
static int take_column(PyObject *fields, struct column *described, Py_buffer *view, Py_ssize_t *rows)
{
    PyObject *data;
    Py_ssize_t width;
    double divisor;
    int one_hot;
    if (!PyTuple_Check(fields) || PyTuple_Size(fields) != 4 || !PyLong_CheckExact(PyTuple_GetItem(fields, 1))
        || !PyFloat_CheckExact(PyTuple_GetItem(fields, 2)) || !PyBool_Check(PyTuple_GetItem(fields, 3))) {
        PyErr_SetString(PyExc_TypeError, "a column must be a tuple (data, width: int, divisor: float, one_hot: bool)");
        return -1;
    }
    if (!PyArg_ParseTuple(fields, "Ondp", &data, &width, &divisor, &one_hot))
        return -1;
    if (PyObject_GetBuffer(data, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0)
        return -1;
    char format = view->format && !view->format[1] ? view->format[0] : view->format ? '?' : 'B';
    if ((format != 'd' && format != 'B') || (one_hot && format != 'B'))
        PyErr_SetString(PyExc_TypeError, "a column must hold doubles or bytes, and class labels are bytes");
    else if (width < 1 || view->len / view->itemsize % (one_hot ? 1 : width))
        PyErr_SetString(PyExc_ValueError, "a column must hold a whole number of rows");
    else if (width > INPUTS) /* a sum of wider ones could wrap around */
        PyErr_Format(PyExc_ValueError, "columns must make %d inputs a row; one makes %zd", (int)INPUTS, width);
    else if (format == 'd' && (size_t)view->buf % sizeof(double))
        PyErr_Format(PyExc_ValueError, "a column of doubles must begin at a multiple of %d bytes", (int)sizeof(double));
    else {
        described->data = view->buf;
        described->width = width;
        described->divisor = divisor;
        described->kind = one_hot ? CLASSES : format == 'd' ? DOUBLES : BYTES;
        *rows = view->len / view->itemsize / (one_hot ? 1 : width);
        return 0;
    }
    PyBuffer_Release(view);
    return -1;
}

static int take_columns(PyObject *tuple, struct columns *columns)
{
    Py_ssize_t width = 0;
    columns->count = 0;
    columns->rows = -1;
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) > MOST_COLUMNS) {
        PyErr_Format(PyExc_TypeError, "columns must be a tuple of at most %d", MOST_COLUMNS);
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++) {
        Py_ssize_t rows;
        if (take_column(PyTuple_GetItem(tuple, i), &columns->described[i], &columns->views[i], &rows) < 0)
            goto failed;
        columns->count++;
        width += columns->described[i].width;
        if (columns->rows >= 0 && rows != columns->rows) {
            PyErr_SetString(PyExc_ValueError, "every column must hold the same number of rows");
            goto failed;
        }
        columns->rows = rows;
    }
    if (width == INPUTS && columns->rows > 0)
        return 0;
    PyErr_Format(PyExc_ValueError, "columns must make %d inputs a row and hold a row; they make %zd and hold %zd",
                 (int)INPUTS, width, columns->rows);
failed:
    release(columns->views, columns->count);
    return -1;
}

static PyObject *module_forward(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    static const struct expected *const wanted[] = {&x, &p, &w, &y};
    Py_buffer views[MOST_BUFFERS];
    (void)self;
    if (!count_is("forward", count, 4) || take(args, wanted, 4, views) < 0)
        return NULL;
    double loss = forward(views[0].buf, views[1].buf, views[2].buf, views[3].buf);
    release(views, 4);
    return PyFloat_FromDouble(loss);
}

static PyObject *module_backward(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    static const struct expected *const wanted[] = {&x, &p, &w, &q};
    Py_buffer views[MOST_BUFFERS];
    (void)self;
    if (!count_is("backward", count, 4) || take(args, wanted, 4, views) < 0)
        return NULL;
    backward(views[0].buf, views[1].buf, views[2].buf, views[3].buf);
    release(views, 4);
    Py_RETURN_NONE;
}

static PyObject *module_zero_grad(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer view;
    (void)self;
    if (!count_is("zero_grad", count, 1) || take_one(args[0], &q, &view) < 0)
        return NULL;
    zero_grad(view.buf);
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

static PyObject *module_update(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    static const struct expected *const wanted[] = {&p, &q};
    Py_buffer views[MOST_BUFFERS];
    (void)self;
    if (!count_is("update", count, 4))
        return NULL;
    double rate = PyFloat_AsDouble(args[2]), batch = PyFloat_AsDouble(args[3]);
    if (PyErr_Occurred() || take(args, wanted, 2, views) < 0)
        return NULL;
    update(views[0].buf, views[1].buf, rate, batch);
    release(views, 2);
    Py_RETURN_NONE;
}

static PyObject *module_set_input(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer view;
    struct columns columns;
    (void)self;
    if (!count_is("set_input", count, 3))
        return NULL;
    Py_ssize_t row = PyLong_AsSsize_t(args[2]);
    if (PyErr_Occurred() || take_one(args[0], &x, &view) < 0)
        return NULL;
    if (take_columns(args[1], &columns) < 0) {
        PyBuffer_Release(&view);
        return NULL;
    }
    int there = row >= 0 && row < columns.rows;
    if (there)
        set_input(view.buf, columns.described, columns.count, row);
    else
        PyErr_Format(PyExc_IndexError, "there is no row %zd among %zd", row, columns.rows);
    PyBuffer_Release(&view);
    release(columns.views, columns.count);
    if (!there)
        return NULL;
    Py_RETURN_NONE;
}

/* train(x, p, w, y, q, columns, first_row, steps, batch, taken, rates, losses) */
static PyObject *module_train(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer views[MOST_BUFFERS];
    struct columns columns;
    Py_ssize_t numbers[4]; /* first_row, steps, batch, taken */
    (void)self;
    if (!count_is("train", count, 12))
        return NULL;
    for (int i = 0; i < 4; i++) {
        numbers[i] = PyLong_AsSsize_t(args[6 + i]);
        if (PyErr_Occurred())
            return NULL;
    }
    Py_ssize_t first_row = numbers[0], steps = numbers[1], batch = numbers[2], taken = numbers[3];
    if (steps < 0 || batch < 1 || taken < 0 || taken >= batch || steps > PY_SSIZE_T_MAX - taken) {
        PyErr_SetString(PyExc_ValueError, "steps must not be negative, batch at least 1, taken below batch");
        return NULL;
    }
    const struct expected rates = {"rates", (taken + steps) / batch, 0}, losses = {"losses", steps, 1};
    const struct expected *const wanted[] = {&x, &p, &w, &y, &q, &rates, &losses};
    PyObject *const buffers[] = {args[0], args[1], args[2], args[3], args[4], args[10], args[11]};
    if (take(buffers, wanted, MOST_BUFFERS, views) < 0)
        return NULL;
    if (take_columns(args[5], &columns) < 0) {
        release(views, MOST_BUFFERS);
        return NULL;
    }
    long long done = -1;
    if (first_row < 0 || first_row >= columns.rows)
        PyErr_Format(PyExc_IndexError, "there is no row %zd among %zd", first_row, columns.rows);
    else {
        PyThreadState *state = PyEval_SaveThread();
        done = train(views[0].buf, views[1].buf, views[2].buf, views[3].buf, views[4].buf, columns.described,
                     columns.count, columns.rows, first_row, steps, batch, taken, views[5].buf, views[6].buf);
        PyEval_RestoreThread(state);
    }
    release(columns.views, columns.count);
    release(views, MOST_BUFFERS);
    return done < 0 ? NULL : PyLong_FromLongLong(done);
}

static PyMethodDef methods[] = {
    {"forward", (PyCFunction)(void (*)(void))module_forward, METH_FASTCALL, "forward(x, p, w, y) -> loss"},
    {"backward", (PyCFunction)(void (*)(void))module_backward, METH_FASTCALL, "backward(x, p, w, q)"},
    {"zero_grad", (PyCFunction)(void (*)(void))module_zero_grad, METH_FASTCALL, "zero_grad(q)"},
    {"update", (PyCFunction)(void (*)(void))module_update, METH_FASTCALL, "update(p, q, rate, batch)"},
    {"set_input", (PyCFunction)(void (*)(void))module_set_input, METH_FASTCALL, "set_input(x, columns, row)"},
    {"train", (PyCFunction)(void (*)(void))module_train, METH_FASTCALL,
     "train(x, p, w, y, q, columns, first_row, steps, batch, taken, rates, losses) -> finite losses"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "zoomgrad_program", "A compiled Value graph.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_zoomgrad_program(void)
{
    return PyModuleDef_Init(&definition);
}
"""


class Extension:
    """Kernel over a loaded extension module."""

    def __init__(self, module: Any, workspace: int) -> None:
        self._workspace = workspace
        self._module = module
        self.forward = module.forward
        self.backward = module.backward
        self.zero_grad = module.zero_grad
        self.update = module.update

    def workspace(self) -> array[float]:
        return array("d", bytes(8 * self._workspace))

    def set_input(self, x: Doubles, columns: Sequence[Column], row: int) -> None:
        self._module.set_input(x, tuple(columns), row)

    def train(self, buffers: Buffers, stretch: Stretch) -> int:
        columns, *rest = stretch
        done: int = self._module.train(*buffers, tuple(columns), *rest)
        return done


class ExtensionEngine(StraightC):
    """The C wrapped as a CPython extension module."""

    def check(self) -> None:
        toolchains.find(self.compiler)
        if sys.implementation.name != "cpython":
            raise Unavailable(
                "an extension module is CPython's; other interpreters only emulate its C API",
                "Use `tcc`: the same C, called through cffi.",
            )
        if LIMITED_API and sysconfig.get_config_var("Py_GIL_DISABLED"):
            raise Unavailable(
                "free-threaded Python has no limited API, and TCC compiles no other",
                "Use `tcc`: the same C, called through cffi.",
            )
        if not (_include() / "Python.h").is_file():
            raise Unavailable(f"there is no Python.h in {_include()}", "Install Python's headers, as in `python3-dev`.")

    def generate(self, code: Code) -> Source:
        source = c_source(code, self.form, title="A Value graph as a CPython extension module.", export="static ")
        top = TOP.format(
            limited=LIMITED_API, workspace=source.workspace, outputs=len(code.outputs), most_columns=MOST_COLUMNS
        )
        (unit,) = source.units
        return source._replace(units=[top + unit + BOTTOM])

    @property
    def abi(self) -> str:
        return f"{sys.version} {sysconfig.get_config_var('SOABI')}"

    def load(self, built: building.Built, source: Source) -> Kernel:
        loader = importlib.machinery.ExtensionFileLoader(MODULE, str(built.path))
        spec = importlib.util.spec_from_loader(MODULE, loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        return Extension(module, source.workspace)


def _include() -> Path:
    return Path(sysconfig.get_path("include"))


def _include_flags() -> tuple[str, ...]:
    """Where Python.h is, and the headers of the platform that it includes."""
    platform = Path("/usr/include") / (sysconfig.get_config_var("MULTIARCH") or "")
    return (f"-I{_include()}", *([f"-I{platform}"] if platform.is_dir() else []))


ENGINES = (
    ExtensionEngine(
        "tcc-extension",
        "tcc",
        _include_flags(),
        FORMS["tcc"],
        idea="the C wrapped as a CPython extension module, instead of cffi",
        builds_on="tcc",
        typical_row_seconds=5e-9,
        typical_compile_row_seconds=1e-5,
    ),
)
