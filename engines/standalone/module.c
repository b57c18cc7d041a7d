/* A model as a CPython extension module, whose functions check their arguments. One model per import, in the module's
   instance.

   Python.h, a kernel, python_arguments.c, model.c and these macros come before this file:
     NAME_TEXT         the module's name, in quotes
     INIT              the name of the function that makes the module, PyInit_ and the name
     ENGINE            the engine, in quotes
     FEATURES          inputs that the outputs depend on, if they are the first ones, else INPUTS
     SHARED            1 if the kernel keeps values in static variables, which all its users share */

struct instance {
    struct model *model;
    PyObject *array, *non_finite;
    int busy; /* whether a training runs without the interpreter's lock */
};

#if SHARED
static int imported;
#endif

/* The instance, or NULL with an exception if there is no model, or if another thread trains it. */
static struct instance *idle(PyObject *self)
{
    struct instance *instance = PyModule_GetState(self);
    if (!instance || !instance->model) { /* before `start`, or after it failed */
        PyErr_SetString(PyExc_RuntimeError, "the module was not initialised\n  Import it.");
        return NULL;
    }
    if (instance->busy) {
        PyErr_SetString(PyExc_RuntimeError, "the model is training in another thread\n  Wait until `train` returns.");
        return NULL;
    }
    return instance;
}

/* Whether this thread computes with the default settings of IEEE 754, on which the bits depend. Sets an exception. */
static int arithmetic_is_usual(void)
{
    volatile double smallest = 2.2250738585072014e-308, half = 0.5, one = 1.0, below = 1.1102230246251565e-16;
    if (smallest * half * 2.0 == smallest && one + below == one && one + below * 1.5 > one)
        return 1;
    PyErr_SetString(PyExc_ArithmeticError, "this processor flushes subnormal numbers, or does not round to nearest\n"
                                           "  Use a new process, without the library that changed it.");
    return 0;
}

static PyObject *doubles(struct instance *instance, const double *numbers, Py_ssize_t count)
{
    if (!instance->array) { /* the interpreter is shutting down */
        PyErr_SetString(PyExc_RuntimeError, "the module is gone");
        return NULL;
    }
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)numbers, count * (Py_ssize_t)sizeof(double));
    PyObject *made = bytes ? PyObject_CallFunction(instance->array, "sO", "d", bytes) : NULL;
    Py_XDECREF(bytes);
    return made;
}

/* Take rows: a tuple of columns, or a flat buffer of doubles or bytes, which is one column. */
static int take_rows(PyObject *rows, struct columns *columns, Py_ssize_t fewer)
{
    if (!PyTuple_Check(rows)) {
        Py_buffer view;
        if (PyObject_GetBuffer(rows, &view, PyBUF_C_CONTIGUOUS) < 0)
            return -1;
        /* Items of other types than doubles and bytes, which are refused below, may even have no size. */
        Py_ssize_t width = view.itemsize && view.len / view.itemsize == fewer ? fewer : INPUTS;
        PyBuffer_Release(&view);
        PyObject *tuple = Py_BuildValue("((OndO))", rows, width, 1.0, Py_False);
        int taken = tuple ? take_columns(tuple, columns, fewer) : -1;
        Py_XDECREF(tuple); /* the columns hold the buffer */
        return taken;
    }
    if (take_columns(rows, columns, fewer) < 0)
        return -1;
    for (Py_ssize_t n = 0; n < columns->count; n++) {
        const struct column *c = &columns->described[n];
        if (c->divisor - c->divisor != 0.0 || c->divisor == 0.0) {
            PyErr_SetString(PyExc_ValueError, "a column's divisor must be finite and not 0");
            goto failed;
        }
        for (Py_ssize_t row = 0; row < columns->rows && c->kind == CLASSES; row++)
            if (((const unsigned char *)c->data)[row] >= c->width) {
                PyErr_Format(PyExc_ValueError, "row %zd has the class label %d; its column has %zd classes", row,
                             (int)((const unsigned char *)c->data)[row], (Py_ssize_t)c->width);
                goto failed;
            }
    }
    return 0;
failed:
    release(columns->views, columns->count);
    return -1;
}

/* Set the inputs from one row, and compute: the loss of a whole row, or the outputs for FEATURES inputs. Releasing the
   row may run code of the caller's, which may call this module again, so the result is made before. */
static PyObject *run_forward(PyObject *self, PyObject *row, int predicts)
{
    struct columns columns;
    PyObject *result = NULL;
    if (take_rows(row, &columns, predicts ? FEATURES : INPUTS) < 0)
        return NULL;
    struct instance *instance = idle(self);
    if (instance && columns.rows != 1) {
        PyErr_Format(PyExc_ValueError, "this takes one row of %d inputs, not %zd", (int)INPUTS, columns.rows);
        instance = NULL;
    }
    if (instance && !arithmetic_is_usual())
        instance = NULL;
    if (instance) {
        for (Py_ssize_t i = columns.width; i < INPUTS; i++)
            instance->model->x[i] = 0.0;
        set_input(instance->model->x, columns.described, columns.count, 0);
        double loss = forward_model(instance->model);
        result = predicts ? doubles(instance, instance->model->y, OUTPUTS) : PyFloat_FromDouble(loss);
#if !FROZEN
        instance->model->ran_forward = !predicts;
#endif
    }
    release(columns.views, columns.count);
    return result;
}

static PyObject *call_forward(PyObject *self, PyObject *row)
{
    return run_forward(self, row, 0);
}

#if OUTPUTS
static PyObject *call_outputs(PyObject *self, PyObject *ignored)
{
    struct instance *instance = idle(self);
    (void)ignored;
    return instance ? doubles(instance, instance->model->y, OUTPUTS) : NULL;
}

static PyObject *call_predict(PyObject *self, PyObject *row)
{
    return run_forward(self, row, 1);
}
#endif

#if !FROZEN
static PyObject *call_backward(PyObject *self, PyObject *ignored)
{
    struct instance *instance = idle(self);
    (void)ignored;
    if (!instance || !arithmetic_is_usual())
        return NULL;
    if (!instance->model->ran_forward) {
        PyErr_SetString(PyExc_RuntimeError, "backward before forward\n  Call `forward(row)` first.");
        return NULL;
    }
    backward(instance->model->x, instance->model->p, instance->model->w, instance->model->q);
    Py_RETURN_NONE;
}

static PyObject *call_zero_grad(PyObject *self, PyObject *ignored)
{
    struct instance *instance = idle(self);
    (void)ignored;
    if (!instance)
        return NULL;
    zero_grad_model(instance->model);
    Py_RETURN_NONE;
}

static PyObject *call_restart(PyObject *self, PyObject *ignored)
{
    struct instance *instance = idle(self);
    (void)ignored;
    if (!instance)
        return NULL;
    restart_model(instance->model);
    Py_RETURN_NONE;
}

static PyObject *call_parameters(PyObject *self, PyObject *ignored)
{
    struct instance *instance = idle(self);
    (void)ignored;
    return instance ? doubles(instance, instance->model->p, PARAMETERS) : NULL;
}

static PyObject *call_gradients(PyObject *self, PyObject *ignored)
{
    struct instance *instance = idle(self);
    (void)ignored;
    return instance ? doubles(instance, instance->model->q, PARAMETERS) : NULL;
}

static PyObject *call_set_parameters(PyObject *self, PyObject *numbers)
{
    static const struct expected parameters = {"parameters", PARAMETERS, 0};
    Py_buffer view;
    if (take_one(numbers, &parameters, &view) < 0)
        return NULL;
    struct instance *instance = idle(self);
    if (instance && view.len != PARAMETERS * (Py_ssize_t)sizeof(double)) {
        PyErr_Format(PyExc_ValueError, "parameters must hold %d doubles, not more", (int)PARAMETERS);
        instance = NULL;
    }
    if (instance)
        set_parameters_model(instance->model, view.buf);
    PyBuffer_Release(&view);
    if (!instance)
        return NULL;
    Py_RETURN_NONE;
}

static int is_finite(double number, const char *name)
{
    if (number - number == 0.0)
        return 1;
    PyErr_Format(PyExc_ValueError, "%s must be finite", name);
    return 0;
}

static PyObject *call_update(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"rate", "batch", NULL};
    double rate;
    Py_ssize_t batch = 1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "d|n:update", names, &rate, &batch) || !is_finite(rate, "rate"))
        return NULL;
    struct instance *instance = idle(self);
    if (!instance || !arithmetic_is_usual())
        return NULL;
    if (batch < 1) {
        PyErr_SetString(PyExc_ValueError, "batch must be at least 1");
        return NULL;
    }
    update_model(instance->model, rate, (double)batch);
    Py_RETURN_NONE;
}

/* Raise NonFiniteLoss, which carries the step and the loss. */
static void tell_non_finite(struct instance *instance, Py_ssize_t step, double loss)
{
    PyObject *value = PyFloat_FromDouble(loss), *at = PyLong_FromSsize_t(step), *text = NULL, *error = NULL;
    if (value && at)
        text = PyUnicode_FromFormat("the loss of step %zd is not a finite number: %R\n"
                                    "  Lower the rate, or start from other parameters.", step, value);
    if (text)
        error = PyObject_CallFunction(instance->non_finite, "O", text);
    if (error && PyObject_SetAttrString(error, "step", at) == 0 && PyObject_SetAttrString(error, "value", value) == 0)
        PyErr_SetObject(instance->non_finite, error);
    Py_XDECREF(value), Py_XDECREF(at), Py_XDECREF(text), Py_XDECREF(error);
}

static PyObject *call_train(PyObject *self, PyObject *args, PyObject *keywords)
{
    static const struct expected schedule = {"rate", 0, 0};
    static char *names[] = {"rows", "rate", "batch", "steps", "first_row", NULL};
    PyObject *rows, *rate, *asked = Py_None, *losses = NULL;
    Py_ssize_t batch = 1, steps = -1, first_row = 0;
    struct columns columns;
    Py_buffer view;
    double number = 0.0, *rates = NULL, *found = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|nOn:train", names, &rows, &rate, &batch, &asked, &first_row))
        return NULL;
    if (asked != Py_None && (steps = PyLong_AsSsize_t(asked)) == -1 && PyErr_Occurred())
        return NULL;
    const int is_schedule = !PyFloat_Check(rate) && PyObject_CheckBuffer(rate);
    if (!is_schedule && (number = PyFloat_AsDouble(rate)) == -1.0 && PyErr_Occurred())
        return NULL;
    if (!is_finite(number, "rate") || (is_schedule && take_one(rate, &schedule, &view) < 0))
        return NULL;
    if (take_rows(rows, &columns, INPUTS) < 0) {
        if (is_schedule)
            PyBuffer_Release(&view);
        return NULL;
    }
    /* From here on no code of the caller's runs, which could train too. */
    if (asked == Py_None)
        steps = columns.rows;
    struct instance *instance = idle(self);
    if (!instance || !arithmetic_is_usual())
        goto end;
    if (batch < 1 || steps < 0 || steps > PY_SSIZE_T_MAX / 16 || first_row < 0 || first_row >= columns.rows) {
        PyErr_Format(PyExc_ValueError, "batch must be at least 1, steps not negative, first_row one of %zd rows",
                     columns.rows);
        goto end;
    }
    const Py_ssize_t updates = ((Py_ssize_t)(instance->model->taken % batch) + steps) / batch;
    if (is_schedule && view.len / (Py_ssize_t)sizeof(double) < updates) {
        PyErr_Format(PyExc_ValueError, "rate must be a number, or hold one double for each of %zd updates", updates);
        goto end;
    }
    rates = PyMem_Calloc((size_t)updates + 1, sizeof(double));
    found = PyMem_Calloc((size_t)steps + 1, sizeof(double));
    if (!rates || !found) {
        PyErr_NoMemory();
        goto end;
    }
    for (Py_ssize_t i = 0; i < updates; i++) {
        rates[i] = is_schedule ? ((const double *)view.buf)[i] : number;
        if (!is_finite(rates[i], "rate"))
            goto end;
    }
    instance->busy = 1;
#if !SHARED
    PyThreadState *thread = PyEval_SaveThread();
#endif
    const Py_ssize_t done = (Py_ssize_t)train_model(instance->model, columns.described, columns.count, columns.rows,
                                                    first_row, steps, batch, rates, found);
#if !SHARED
    PyEval_RestoreThread(thread);
#endif
    instance->busy = 0;
    if (done < steps)
        tell_non_finite(instance, done, found[done]);
    else
        losses = doubles(instance, found, done);
end:
    PyMem_Free(rates);
    PyMem_Free(found);
    release(columns.views, columns.count);
    if (is_schedule)
        PyBuffer_Release(&view);
    return losses;
}
#endif

static PyMethodDef methods[] = {
    {"forward", call_forward, METH_O, "forward(row) -> loss"},
#if OUTPUTS
    {"outputs", call_outputs, METH_NOARGS, "outputs() -> array: those of the last forward pass"},
    {"predict", call_predict, METH_O, "predict(row) -> array: the outputs"},
#endif
#if !FROZEN
    {"backward", call_backward, METH_NOARGS, "backward(): add the gradients of the row that `forward` ran on"},
    {"zero_grad", call_zero_grad, METH_NOARGS, "zero_grad(): set the gradients to 0, and discard a partial batch"},
    {"update", (PyCFunction)(void (*)(void))call_update, METH_VARARGS | METH_KEYWORDS,
     "update(rate, batch=1): parameters -= rate * gradients / batch, then gradients = 0"},
    {"train", (PyCFunction)(void (*)(void))call_train, METH_VARARGS | METH_KEYWORDS,
     "train(rows, rate, batch=1, steps=None, first_row=0) -> array: the losses"},
    {"parameters", call_parameters, METH_NOARGS, "parameters() -> array, a copy"},
    {"set_parameters", call_set_parameters, METH_O, "set_parameters(doubles)"},
    {"gradients", call_gradients, METH_NOARGS, "gradients() -> array, a copy"},
    {"restart", call_restart, METH_NOARGS, "restart(): return to the starting parameters"},
#endif
    {NULL, NULL, 0, NULL},
};

static int start(PyObject *self)
{
    struct instance *instance = PyModule_GetState(self);
    const char *missing = missing_instructions();
    if (missing) {
        PyErr_Format(PyExc_ImportError, NAME_TEXT " was compiled for a processor with %s, which this one lacks\n"
                                        "  Build it again on this machine.", missing);
        return -1;
    }
#if SHARED
    if (imported++) {
        PyErr_SetString(PyExc_ImportError, NAME_TEXT " keeps its values in static variables: import it once");
        return -1;
    }
#endif
    PyObject *array = PyImport_ImportModule("array");
    instance->array = array ? PyObject_GetAttrString(array, "array") : NULL;
    Py_XDECREF(array);
    instance->model = PyMem_Calloc(1, sizeof(struct model));
    if (!instance->model)
        PyErr_NoMemory();
    if (!instance->array || !instance->model)
        return -1;
    restart_model(instance->model);
#if !FROZEN
    instance->non_finite = PyErr_NewException(NAME_TEXT ".NonFiniteLoss", PyExc_ArithmeticError, NULL);
    if (PyModule_AddObjectRef(self, "NonFiniteLoss", instance->non_finite) < 0)
        return -1;
#endif
    if (PyModule_AddIntConstant(self, "INPUTS", INPUTS) < 0 || PyModule_AddIntConstant(self, "FEATURES", FEATURES) < 0
        || PyModule_AddIntConstant(self, "OUTPUTS", OUTPUTS) < 0
        || PyModule_AddIntConstant(self, "PARAMETERS", FROZEN ? 0 : PARAMETERS) < 0)
        return -1;
    return PyModule_AddStringConstant(self, "ENGINE", ENGINE);
}

static int visit_state(PyObject *self, visitproc visit, void *arg)
{
    struct instance *instance = PyModule_GetState(self);
    Py_VISIT(instance->array);
    Py_VISIT(instance->non_finite);
    return 0;
}

static int clear_state(PyObject *self)
{
    struct instance *instance = PyModule_GetState(self);
    Py_CLEAR(instance->array);
    Py_CLEAR(instance->non_finite);
    return 0;
}

static void free_state(void *self)
{
    struct instance *instance = PyModule_GetState(self);
    (void)clear_state(self);
    PyMem_Free(instance->model);
    instance->model = NULL;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, start}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, NAME_TEXT, "A Value graph, compiled.", sizeof(struct instance), methods, slots, visit_state,
    clear_state, free_state,
};

PyMODINIT_FUNC INIT(void)
{
    return PyModuleDef_Init(&definition);
}
