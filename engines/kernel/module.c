/* A kernel as a CPython extension module: each function checks its arguments, so that no call can corrupt memory, and
   calls the kernel.

   Python.h, a complete kernel, the starting parameters and these macros come before this file:
     NAME, INIT                 the module's name, in quotes, and the name of the function that makes the module
     INPUTS, WORKSPACE, OUTPUTS sizes in doubles
     MOST_COLUMNS               the most columns of a call
     STARTING_PARAMETERS        how many `starting_parameters` there are */

/* The columns of a call, and all its buffers. */
struct parts {
    Py_buffer views[7 + MOST_COLUMNS]; /* x, p, w, y, q, rates and losses, then the columns */
    struct column columns[MOST_COLUMNS];
    double quotients[MOST_COLUMNS][256];
    Py_ssize_t count, rows;
};

/* What a call holds until it ends. It is on the stack, so it is small: Python code that exports a buffer may call the
   module again, as deep as Python allows. So `parts` is on the heap; NULL for a call without columns. */
struct taken {
    struct parts *parts;
    Py_buffer *views;
    Py_ssize_t count;
};

static PyObject *end(struct taken *t, PyObject *result)
{
    while (t->count > 0)
        PyBuffer_Release(&t->views[--t->count]);
    PyMem_Free(t->parts);
    return result;
}

/* Take a buffer of at least `length` doubles. For anything else, sets an exception and returns 0. */
static int take(struct taken *t, PyObject *object, const char *name, Py_ssize_t length, int writable)
{
    Py_buffer *view = &t->views[t->count];
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) < 0)
        return 0;
    t->count++;
    if (!view->format || view->format[0] != 'd' || view->format[1])
        PyErr_Format(PyExc_TypeError, "%s must hold doubles", name);
    else if (view->len && (size_t)view->buf % sizeof(double))
        PyErr_Format(PyExc_ValueError, "%s must begin at a multiple of %d bytes", name, (int)sizeof(double));
    else if (view->len / (Py_ssize_t)sizeof(double) < length) /* a product could wrap around */
        PyErr_Format(PyExc_ValueError, "%s must hold %zd doubles; it holds %zd", name, length,
                     view->len / (Py_ssize_t)sizeof(double));
    else
        return 1;
    return 0;
}

/* Take the first three arguments of every function. */
static int take_xpw(struct taken *t, PyObject *const *args)
{
    return take(t, args[0], "x", INPUTS, 1) && take(t, args[1], "p", PARAMETERS, 1)
           && take(t, args[2], "w", WORKSPACE, 1);
}

/* Take (data, width, divisor, one_hot). Types must match exactly: converting an object of any other class would run the
   caller's code, which could even resize a buffer. */
static int take_column(struct taken *t, PyObject *fields, struct column *column, Py_ssize_t *rows)
{
    PyObject *data;
    Py_ssize_t width;
    double divisor;
    int one_hot;
    Py_buffer *view = &t->views[t->count];
    if (!PyTuple_Check(fields) || PyTuple_Size(fields) != 4 || !PyLong_CheckExact(PyTuple_GetItem(fields, 1))
        || !PyFloat_CheckExact(PyTuple_GetItem(fields, 2)) || !PyBool_Check(PyTuple_GetItem(fields, 3))) {
        PyErr_SetString(PyExc_TypeError, "a column must be a tuple (data, width: int, divisor: float, one_hot: bool)");
        return 0;
    }
    if (!PyArg_ParseTuple(fields, "Ondp", &data, &width, &divisor, &one_hot)
        || PyObject_GetBuffer(data, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0)
        return 0;
    t->count++;
    char format = view->format && view->format[0] && !view->format[1] ? view->format[0] : view->format ? '?' : 'B';
    if ((format != 'd' && format != 'B') || (one_hot && format != 'B'))
        PyErr_SetString(PyExc_TypeError, "a column must hold doubles or bytes, and class labels are bytes");
    else if (width < (one_hot ? 0 : 1) || view->len / view->itemsize % (one_hot ? 1 : width))
        PyErr_SetString(PyExc_ValueError, "a column must hold a whole number of rows");
    else if (width > INPUTS) /* a sum of larger widths could wrap around */
        PyErr_Format(PyExc_ValueError, "columns must have %d inputs per row; one has %zd", (int)INPUTS, width);
    else if (format == 'd' && (size_t)view->buf % sizeof(double))
        PyErr_Format(PyExc_ValueError, "a column of doubles must begin at a multiple of %d bytes", (int)sizeof(double));
    else {
        const long long kind = one_hot ? CLASSES : format == 'd' ? DOUBLES : BYTES;
        double *quotients = t->parts->quotients[column - t->parts->columns];
        for (int byte = 0; kind == BYTES && byte < 256; byte++)
            quotients[byte] = byte / divisor;
        *column = (struct column){view->buf, width, divisor, kind, 0.0, 0.0, quotients};
        *rows = view->len / view->itemsize / (one_hot ? 1 : width);
        return 1;
    }
    return 0;
}

/* Take a tuple of columns with INPUTS inputs together, which have that row. */
static int take_columns(struct taken *t, PyObject *tuple, Py_ssize_t row)
{
    struct parts *parts = t->parts;
    Py_ssize_t width = 0, rows;
    parts->rows = -1;
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) > MOST_COLUMNS) {
        PyErr_Format(PyExc_TypeError, "columns must be a tuple of at most %d", MOST_COLUMNS);
        return 0;
    }
    parts->count = PyTuple_Size(tuple);
    for (Py_ssize_t i = 0; i < parts->count; i++) {
        if (!take_column(t, PyTuple_GetItem(tuple, i), &parts->columns[i], &rows))
            return 0;
        width += parts->columns[i].width;
        if (i && rows != parts->rows) {
            PyErr_SetString(PyExc_ValueError, "every column must hold the same number of rows");
            return 0;
        }
        parts->rows = rows;
    }
    if (width != INPUTS || parts->rows <= 0)
        PyErr_Format(PyExc_ValueError, "columns must have %d inputs per row and hold a row; they have %zd and hold %zd",
                     (int)INPUTS, width, parts->rows);
    else if (row < 0 || row >= parts->rows)
        PyErr_Format(PyExc_IndexError, "there is no row %zd among %zd", row, parts->rows);
    else
        return 1;
    return 0;
}

static PyObject *module_forward(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer views[4];
    struct taken t = {NULL, views, 0};
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "forward takes 4 arguments, not %zd", count);
    if (!take_xpw(&t, args) || !take(&t, args[3], "y", OUTPUTS, 1))
        return end(&t, NULL);
    return end(&t, PyFloat_FromDouble(forward(t.views[0].buf, t.views[1].buf, t.views[2].buf, t.views[3].buf)));
}

static PyObject *module_backward(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer views[4];
    struct taken t = {NULL, views, 0};
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "backward takes 4 arguments, not %zd", count);
    if (!take_xpw(&t, args) || !take(&t, args[3], "q", PARAMETERS, 1))
        return end(&t, NULL);
    backward(t.views[0].buf, t.views[1].buf, t.views[2].buf, t.views[3].buf);
    end(&t, NULL);
    Py_RETURN_NONE;
}

/* It converts numbers before it takes buffers, because a conversion may run the caller's code. */
static PyObject *module_train(PyObject *self, PyObject *args)
{
    PyObject *named[5], *columns, *rates, *losses;
    Py_ssize_t first_row, steps, batch, taken, y_step;
    int learns;
    if (!PyArg_ParseTuple(args, "OOOOOOnnnnOOpn:train", &named[0], &named[1], &named[2], &named[3], &named[4], &columns,
                          &first_row, &steps, &batch, &taken, &rates, &losses, &learns, &y_step))
        return NULL;
    if (steps < 0 || batch < 1 || taken < 0 || taken >= batch || steps > PY_SSIZE_T_MAX - taken) {
        PyErr_SetString(PyExc_ValueError, "steps must not be negative, batch at least 1, taken below batch");
        return NULL;
    }
    if (y_step != 0 && (learns || y_step != OUTPUTS || steps > PY_SSIZE_T_MAX / y_step)) {
        PyErr_SetString(PyExc_ValueError, "y_step must be 0, or the number of outputs if the steps do not learn");
        return NULL;
    }
    struct parts *parts = PyMem_Malloc(sizeof *parts);
    if (!parts)
        return PyErr_NoMemory();
    struct taken t = {parts, parts->views, 0};
    if (!take_xpw(&t, named) || !take(&t, named[3], "y", y_step ? steps * y_step : OUTPUTS, 1)
        || !take(&t, named[4], "q", PARAMETERS, 1) || !take(&t, rates, "rates", learns ? (taken + steps) / batch : 0, 0)
        || !take(&t, losses, "losses", steps, 1) || !take_columns(&t, columns, first_row))
        return end(&t, NULL);
    const struct buffers buffers = {
        t.views[0].buf, t.views[1].buf, t.views[2].buf, t.views[3].buf, t.views[4].buf,
    };
    const struct stretch stretch = {
        .columns = parts->columns,
        .column_count = parts->count,
        .rows = parts->rows,
        .first_row = first_row,
        .steps = steps,
        .batch = batch,
        .taken = taken,
        .rates = t.views[5].buf,
        .losses = t.views[6].buf,
        .learns = learns,
        .y_step = y_step,
    };
    PyThreadState *state = PyEval_SaveThread();
    long long done = train(&buffers, &stretch);
    PyEval_RestoreThread(state);
    return end(&t, PyLong_FromLongLong(done));
}

static PyMethodDef methods[] = {
    {"forward", (PyCFunction)(void (*)(void))module_forward, METH_FASTCALL, "forward(x, p, w, y) -> loss"},
    {"backward", (PyCFunction)(void (*)(void))module_backward, METH_FASTCALL, "backward(x, p, w, q)"},
    {"train", module_train, METH_VARARGS,
     "train(x, p, w, y, q, columns, first_row, steps, batch, taken, rates, losses, learns, y_step) -> finite losses"},
    {NULL, NULL, 0, NULL},
};

static int add_constants(PyObject *self)
{
    PyObject *start = PyBytes_FromStringAndSize((const char *)starting_parameters, STARTING_PARAMETERS * 8);
    const int failed = !start || PyObject_SetAttrString(self, "START", start) < 0
                       || PyModule_AddIntMacro(self, INPUTS) < 0 || PyModule_AddIntMacro(self, OUTPUTS) < 0
                       || PyModule_AddIntMacro(self, PARAMETERS) < 0 || PyModule_AddIntMacro(self, WORKSPACE) < 0;
    Py_XDECREF(start);
    return failed ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, add_constants}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, NAME, "A compiled Value graph.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC INIT(void)
{
    return PyModuleDef_Init(&definition);
}
