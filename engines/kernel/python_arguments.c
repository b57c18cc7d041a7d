/* Python objects as arguments of a kernel. Sizes and types are checked, so that no call can corrupt memory.

   INPUTS, MOST_COLUMNS, Python.h and a kernel come before this file. */

/* The buffer that an argument must be. length: at least this many doubles. */
struct expected {
    const char *name;
    Py_ssize_t length;
    int writable;
};

static void release(Py_buffer *views, Py_ssize_t count)
{
    while (count-- > 0)
        PyBuffer_Release(&views[count]);
}

/* Take one buffer of at least `length` doubles. For anything else, sets an exception and returns -1. */
static __attribute__((unused)) int take_one(PyObject *object, const struct expected *wanted, Py_buffer *view)
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

struct columns {
    struct column described[MOST_COLUMNS];
    Py_buffer views[MOST_COLUMNS];
    Py_ssize_t count;
    Py_ssize_t width, rows; /* of all columns together, and in each */
};

/* Take (data, width, divisor, one_hot). Types must match exactly: converting an object of any other class would run the
   caller's code, which could even resize a buffer. */
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
    else if (width < (one_hot ? 0 : 1) || view->len / view->itemsize % (one_hot ? 1 : width))
        PyErr_SetString(PyExc_ValueError, "a column must hold a whole number of rows");
    else if (width > INPUTS) /* a sum of larger widths could wrap around */
        PyErr_Format(PyExc_ValueError, "columns must have %d inputs per row; one has %zd", (int)INPUTS, width);
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

/* Take a tuple of columns with INPUTS inputs together, or with `fewer`. */
static int take_columns(PyObject *tuple, struct columns *columns, Py_ssize_t fewer)
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
    columns->width = width;
    if ((width == INPUTS || width == fewer) && columns->rows > 0)
        return 0;
    PyErr_Format(PyExc_ValueError, "columns must have %d inputs per row and hold a row; they have %zd and hold %zd",
                 (int)INPUTS, width, columns->rows);
failed:
    release(columns->views, columns->count);
    return -1;
}
