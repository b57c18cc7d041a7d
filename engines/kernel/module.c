/* A kernel as a CPython extension module: each function checks its arguments, then calls the kernel.

   Python.h, a complete kernel, python_arguments.c, the starting parameters and these macros come before this file:
     NAME, INIT              the module's name, in quotes, and the name of the function that makes the module
     WORKSPACE, OUTPUTS      sizes in doubles
     STARTING_PARAMETERS     how many `starting_parameters` there are */

static const struct expected x = {"x", INPUTS, 1}, p = {"p", PARAMETERS, 1}, w = {"w", WORKSPACE, 1},
                             y = {"y", OUTPUTS, 1}, q = {"q", PARAMETERS, 1};

enum { MOST_BUFFERS = 7 };

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

static int count_is(const char *name, Py_ssize_t count, Py_ssize_t wanted)
{
    if (count == wanted)
        return 1;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", name, wanted, count);
    return 0;
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
    if (take_columns(args[1], &columns, INPUTS) < 0) {
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

/* train(x, p, w, y, q, columns, first_row, steps, batch, taken, rates, losses, learns, y_step) */
static PyObject *module_train(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer views[MOST_BUFFERS];
    struct columns columns;
    Py_ssize_t numbers[4]; /* first_row, steps, batch, taken */
    (void)self;
    if (!count_is("train", count, 14))
        return NULL;
    int learns = PyObject_IsTrue(args[12]);
    if (learns < 0)
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
    Py_ssize_t y_step = PyLong_AsSsize_t(args[13]);
    if (PyErr_Occurred())
        return NULL;
    if (y_step != 0 && (learns || y_step != OUTPUTS || steps > PY_SSIZE_T_MAX / y_step)) {
        PyErr_SetString(PyExc_ValueError, "y_step must be 0, or the number of outputs if the steps do not learn");
        return NULL;
    }
    const struct expected rates = {"rates", learns ? (taken + steps) / batch : 0, 0}, losses = {"losses", steps, 1};
    const struct expected all_y = {"y", y_step ? steps * y_step : OUTPUTS, 1};
    const struct expected *const wanted[] = {&x, &p, &w, &all_y, &q, &rates, &losses};
    PyObject *const buffers[] = {args[0], args[1], args[2], args[3], args[4], args[10], args[11]};
    if (take(buffers, wanted, MOST_BUFFERS, views) < 0)
        return NULL;
    if (take_columns(args[5], &columns, INPUTS) < 0) {
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
        .learns = learns,
        .y_step = y_step,
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
     "train(x, p, w, y, q, columns, first_row, steps, batch, taken, rates, losses, learns, y_step) -> finite losses"},
    {NULL, NULL, 0, NULL},
};

static int add_constants(PyObject *self)
{
    PyObject *start = PyBytes_FromStringAndSize((const char *)starting_parameters, STARTING_PARAMETERS * 8);
    const int failed = !start || PyObject_SetAttrString(self, "START", start) < 0;
    Py_XDECREF(start);
    if (failed || PyModule_AddIntConstant(self, "INPUTS", INPUTS) < 0
        || PyModule_AddIntConstant(self, "OUTPUTS", OUTPUTS) < 0
        || PyModule_AddIntConstant(self, "PARAMETERS", PARAMETERS) < 0)
        return -1;
    return PyModule_AddIntConstant(self, "WORKSPACE", WORKSPACE);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, add_constants}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, NAME, "A compiled Value graph.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC INIT(void)
{
    return PyModuleDef_Init(&definition);
}
