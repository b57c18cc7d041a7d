/* A kernel as a CPython extension module: each function checks its arguments, then calls the kernel.

   Python.h, a complete kernel, and the macros WORKSPACE, OUTPUTS and MOST_COLUMNS come before this file. */

/* The buffer that an argument must be. length: at least this many doubles. */
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

/* Take one buffer of at least `length` doubles. For anything else, sets an exception and returns -1. */
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

/* Take all buffers, or none if one is wrong. */
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

struct columns {
    struct column described[MOST_COLUMNS];
    Py_buffer views[MOST_COLUMNS];
    Py_ssize_t count;
    Py_ssize_t rows; /* in each column */
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
    else if (width < 1 || view->len / view->itemsize % (one_hot ? 1 : width))
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

/* Take a tuple of columns with INPUTS inputs together. */
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
    PyErr_Format(PyExc_ValueError, "columns must have %d inputs per row and hold a row; they have %zd and hold %zd",
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
    const struct buffers ours = {views[0].buf, views[1].buf, views[2].buf, views[3].buf, views[4].buf};
    const struct stretch stretch = {
        .columns = columns.described,
        .column_count = columns.count,
        .rows = columns.rows,
        .first_row = first_row,
        .steps = steps,
        .batch = batch,
        .taken = taken,
        .rates = views[5].buf,
        .losses = views[6].buf,
    };
    long long done = -1;
    if (first_row < 0 || first_row >= columns.rows)
        PyErr_Format(PyExc_IndexError, "there is no row %zd among %zd", first_row, columns.rows);
    else {
        PyThreadState *state = PyEval_SaveThread();
        done = train(&ours, &stretch);
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
