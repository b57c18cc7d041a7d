/* The graph as a tape, then the type and its module.

   `_record` does what `engines/graph/linearize.py` does, for Values of this file. It returns None if that file
   would refuse the graph; its caller then asks that file, which raises the error. */

typedef struct {
    unsigned char *ops;
    int32_t *left, *right, *index;
    Py_ssize_t length, capacity;
} Tape;

static int grow(void *column, Py_ssize_t rows, size_t bytes) {
    void *moved = PyMem_Realloc(*(void **)column, (size_t)rows * bytes);
    if (moved == NULL)
        return -1;
    *(void **)column = moved;
    return 0;
}

static int append_row(Tape *tape, int op, int32_t left, int32_t right, int32_t index) {
    if (tape->length == tape->capacity) {
        Py_ssize_t rows = tape->capacity ? 2 * tape->capacity : 1024;
        if (rows > INT32_MAX || grow(&tape->ops, rows, 1) < 0 || grow(&tape->left, rows, 4) < 0 ||
            grow(&tape->right, rows, 4) < 0 || grow(&tape->index, rows, 4) < 0)
            return -1;
        tape->capacity = rows;
    }
    tape->ops[tape->length] = (unsigned char)op;
    tape->left[tape->length] = left;
    tape->right[tape->length] = right;
    tape->index[tape->length] = index;
    tape->length++;
    return 0;
}

/* Mark named leaves with this walk, and store each one's index as its row. Returns -1 if one can't be named. */
static int name_leaves(PyObject *leaves, uint64_t named, int parameters) {
    Py_ssize_t count = PyTuple_Size(leaves);
    if (count > INT32_MAX)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        Value *v = (Value *)PyTuple_GetItem(leaves, i);
        if (!IS_VALUE(v) || v->op != LEAF || v->mark == named || (v->flags & IS_OBJECT << DATA) ||
            (v->extra != NULL && v->extra->closure != NULL))
            return -1;
        v->mark = named;
        v->row = (int32_t)i;
        v->flags = (uint8_t)((v->flags & ~IS_PARAMETER) | (parameters ? IS_PARAMETER : 0));
    }
    return 0;
}

/* Append the row of a Value whose operands have rows. Returns -1 if it can't be recorded. */
static int append_value(Tape *tape, const Value *v, int is_named, PyObject *constants) {
    if (v->op == CUSTOM || (v->extra != NULL && v->extra->closure != NULL))
        return -1;
    if (is_named)
        return append_row(tape, v->flags & IS_PARAMETER ? PARAMETER_ROW : INPUT_ROW, -1, -1, v->row);
    int32_t index = (int32_t)PyList_Size(constants);
    if (v->op == LEAF) {
        if (v->flags & IS_OBJECT << DATA || !isfinite(v->numbers[DATA]))
            return -1;
        PyObject *number = PyFloat_FromDouble(v->numbers[DATA]);
        int failed = number == NULL || PyList_Append(constants, number) < 0;
        Py_XDECREF(number);
        return failed ? -1 : append_row(tape, CONSTANT_ROW, -1, -1, index);
    }
    PyObject *constant = v->extra != NULL ? v->extra->constant : NULL;
    if (constant != NULL && PyList_Append(constants, constant) < 0)
        return -1;
    return append_row(tape, CONSTANT_ROW + v->op, v->left->row, v->right ? v->right->row : -1, constant ? index : -1);
}

/* Give a row to each Value below the root that has none, operands first. */
static int number_below(Value *root, uint64_t named, Walk *walk, Tape *tape, PyObject *constants) {
    Value *v;
    begin(walk, root);
    while ((v = next_of(walk)) != NULL) {
        if (append_value(tape, v, v->mark == named, constants) < 0)
            return -1;
        v->mark = walk->number;
        v->row = (int32_t)(tape->length - 1);
    }
    return walk->failed ? -1 : 0;
}

PyDoc_STRVAR(
    record_doc,
    "_record(inputs, parameters, outputs)\n--\n\n"
    "The rows below this loss, then below the outputs, in canonical order. The arguments are tuples.\n\n"
    "Returns (ops, left, right, index, constants, row of the loss, rows of the outputs): ops as bytes, then three\n"
    "bytes objects of 32-bit ints; or None for a graph that can't be recorded.");

static PyObject *value_record(Value *loss, PyObject *arguments) {
    PyObject *inputs, *parameters, *outputs, *found = NULL, *rows = NULL;
    if (!PyArg_ParseTuple(
            arguments, "O!O!O!:_record", &PyTuple_Type, &inputs, &PyTuple_Type, &parameters, &PyTuple_Type, &outputs))
        return NULL;
    PyObject *constants = PyList_New(0); /* now, because making a list may run the garbage collector */
    Py_ssize_t output_count = PyTuple_Size(outputs);
    rows = PyTuple_New(output_count);
    if (constants == NULL || rows == NULL) {
        Py_XDECREF(constants);
        Py_XDECREF(rows);
        return NULL;
    }
    Tape tape = {NULL, NULL, NULL, NULL, 0, 0};
    uint64_t named = ++walks;
    Walk walk = {++walks, NULL, 0, 0, 0};
    int failed = name_leaves(inputs, named, 0) < 0 || name_leaves(parameters, named, 1) < 0 ||
                 number_below(loss, named, &walk, &tape, constants) < 0;
    for (Py_ssize_t i = 0; i < output_count && !failed; i++) {
        Value *output = (Value *)PyTuple_GetItem(outputs, i);
        failed = !IS_VALUE(output) || number_below(output, named, &walk, &tape, constants) < 0;
    }
    for (Py_ssize_t i = 0; i < output_count && !failed; i++) {
        PyObject *row = PyLong_FromLong(((Value *)PyTuple_GetItem(outputs, i))->row);
        failed = row == NULL || PyTuple_SetItem(rows, i, row) < 0;
    }
    if (!failed)
        found = Py_BuildValue(
            "(y#y#y#y#OiO)", (char *)tape.ops, tape.length, (char *)tape.left, 4 * tape.length, (char *)tape.right,
            4 * tape.length, (char *)tape.index, 4 * tape.length, constants, (int)loss->row, rows);
    PyMem_Free(tape.ops);
    PyMem_Free(tape.left);
    PyMem_Free(tape.right);
    PyMem_Free(tape.index);
    PyMem_Free(walk.places);
    Py_DECREF(constants);
    Py_DECREF(rows);
    if (!failed)
        return found;
    PyErr_Clear();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    adopt_doc,
    "_adopt(subclass)\n--\n\nMake a subclass of Value the class of all results, in this process. Value undoes it.");

static PyObject *value_adopt(PyObject *type, PyObject *subclass) {
    (void)type;
    if (!PyType_Check(subclass) || !PyType_IsSubtype((PyTypeObject *)subclass, value_type)) {
        PyErr_Format(PyExc_TypeError, "%R is not a subclass of Value", subclass);
        return NULL;
    }
    PyObject *old = result_class;
    if (subclass == (PyObject *)value_type) {
        result_class = NULL;
    } else {
        Py_INCREF(subclass);
        result_class = subclass;
    }
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

/* --- The type and the module ------------------------------------------------------------------------------------- */

#define METHOD(function) (PyCFunction)(void (*)(void))(function)

static PyGetSetDef attributes[] = {
    {"data", (getter)get_number, (setter)set_number, "The number.", NULL},
    {"grad", (getter)get_number, (setter)set_number, "Its gradient, the int 0 at first.", (void *)"grad"},
    {"label", (getter)get_label, (setter)set_label, "A name for drawings.", NULL},
    {"_prev", (getter)get_prev, (setter)set_prev, "The operands.", NULL},
    {"_op", (getter)get_op, (setter)set_op, "The op's name, with the constant of a power.", NULL},
    {"_name", (getter)get_name, NULL, "The op's name in the table; empty for a leaf.", NULL},
    {"_constant", (getter)get_constant, NULL, "The constant of a power, or None.", NULL},
    {"_backward", (getter)get_backward, (setter)set_backward, "Applies this Value's contributions.", NULL},
    {"_row", (getter)get_row, (setter)set_row, "The row in the tape while `linearize` runs in Python, else -1.", NULL},
    {"_has_own_backward", (getter)get_own_backward, NULL, "Whether a program has set `_backward`.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    UNARY_METHODS BINARY_METHODS
    {"topo", METHOD(value_topo), METH_NOARGS, topo_doc},
    {"backward", METHOD(value_backward), METH_NOARGS, backward_doc},
    {"_contribute", METHOD(value_contribute), METH_NOARGS, contribute_doc},
    {"_record", METHOD(value_record), METH_VARARGS, record_doc},
    {"_adopt", value_adopt, METH_O | METH_CLASS, adopt_doc},
    {"__copy__", METHOD(value_copy), METH_NOARGS, copy_doc},
    {"__deepcopy__", METHOD(value_deepcopy), METH_O, deepcopy_doc},
    {"__reduce__", METHOD(value_reduce), METH_NOARGS, reduce_doc},
    {"_rebuild", METHOD(value_rebuild), METH_VARARGS | METH_CLASS, rebuild_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(value_doc, "Value(data, _children=(), _op='', label='')\n--\n\nA scalar, its gradient, and its operation.");

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)value_doc},
    {Py_tp_new, value_new},
    {Py_tp_init, value_init},
    {Py_tp_dealloc, value_dealloc},
    {Py_tp_traverse, value_traverse},
    {Py_tp_clear, value_clear},
    {Py_tp_free, PyObject_GC_Del},
    {Py_tp_repr, value_repr},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {Py_nb_add, value_add},
    {Py_nb_subtract, value_subtract},
    {Py_nb_multiply, value_multiply},
    {Py_nb_true_divide, value_divide},
    {Py_nb_negative, value_negative},
    {Py_nb_power, value_power},
    {0, NULL},
};

static PyType_Spec spec = {
    "Value", sizeof(Value), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots,
};

PyDoc_STRVAR(
    configure_doc,
    "configure(forward, contribute, check_exponent, CyclicGraph)\n--\n\n"
    "Give this module what it calls in Python: for each op a function of (a, b, k), and one of (a, b, k, out, g).\n\n"
    "Returns the class Value, which can't be reached before.");

static PyObject *configure(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *given[HELPERS];
    if (!PyArg_ParseTuple(
            arguments, "O!O!OO:configure", &PyTuple_Type, &given[FORWARD], &PyTuple_Type, &given[CONTRIBUTE],
            &given[CHECK_EXPONENT], &given[CYCLIC_GRAPH]))
        return NULL;
    if (PyTuple_Size(given[FORWARD]) != OPS || PyTuple_Size(given[CONTRIBUTE]) != OPS) {
        PyErr_Format(PyExc_ValueError, "there are %d ops, so configure takes as many functions", OPS);
        return NULL;
    }
    if (helpers[FORWARD] != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "configure was called before");
        return NULL;
    }
    for (int i = 0; i < HELPERS; i++) {
        Py_INCREF(given[i]);
        helpers[i] = given[i];
    }
    Py_INCREF(value_type);
    return (PyObject *)value_type;
}

static PyMethodDef functions[] = {
    {"configure", configure, METH_VARARGS, configure_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "zoomgrad_value", "Value as a C type, and its recorder.", -1, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_zoomgrad_value(void) {
    if (value_type != NULL) {
        PyErr_SetString(PyExc_ImportError, "this file of zoomgrad_value is loaded already, and has one Value type");
        return NULL;
    }
    for (int op = 0; op <= OPS; op++) {
        op_names[op] = PyUnicode_InternFromString(NAME[op]);
        if (op_names[op] == NULL)
            return NULL;
    }
    value_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return value_type == NULL ? NULL : PyModule_Create(&definition);
}
