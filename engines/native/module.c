/* The type and its module. */

#define METHOD(function) (PyCFunction)(void (*)(void))(function)

static PyGetSetDef attributes[] = {
    {"data", (getter)get_number, (setter)set_number, "The number.", NULL},
    {"grad", (getter)get_number, (setter)set_number, "Its gradient, the int 0 at first.", (void *)"grad"},
    {"_prev", (getter)get_prev, (setter)set_prev, "The operands.", NULL},
    {"_backward", (getter)get_backward, (setter)set_backward, "Applies this Value's contributions.", NULL},
    {"__dict__", (getter)get_attributes, NULL, "Attributes of the program's own.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(Value, attributes), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

#define UNARY_METHOD(name, op) {#name, METHOD(value_##name), METH_NOARGS, NULL},
#define BINARY_METHOD(name, op) {#name, METHOD(value_##name), METH_O, NULL},

static PyMethodDef methods[] = {
    METHODS(UNARY_METHOD, BINARY_METHOD)
    {"topo", METHOD(value_topo), METH_NOARGS,
     "topo()\n--\n\nThis Value and all Values below it, operands first, left before right."},
    {"backward", METHOD(value_backward), METH_NOARGS,
     "backward()\n--\n\nAdd the derivatives of this Value to the gradients of all below it."},
    {"_contribute", METHOD(value_contribute), METH_NOARGS, NULL},
    {"_record", METHOD(value_record), METH_VARARGS, NULL},
    {"_parts", METHOD(value_parts), METH_NOARGS, NULL},
    {"_restore", METHOD(value_restore), METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Value(data, _children=(), _op='', label='')\n--\n\nA scalar, its gradient, and its operation."},
    {Py_tp_new, value_new},
    {Py_tp_init, value_init},
    {Py_tp_dealloc, value_dealloc},
    {Py_tp_traverse, value_traverse},
    {Py_tp_clear, value_clear},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {Py_tp_setattro, value_setattro},
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
    "zoomgrad.engines.native.Value", sizeof(Value), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots,
};

/* `dress(init, heirs, style)`: a new class like Value to stand in for a program's own, whose attributes Python sets.
   init: the program's constructor. heirs and style: as in Dress, with bits such as FLOAT_DATA. */
static PyObject *value_dress(PyObject *unused, PyObject *arguments) {
    PyObject *init;
    int heirs;
    unsigned style;
    if (!PyArg_ParseTuple(arguments, "OpI:dress", &init, &heirs, &style))
        return NULL;
    PyObject *bases = PyTuple_Pack(1, value_type), *type = bases ? PyType_FromSpecWithBases(&spec, bases) : NULL;
    Dress *dress = type ? PyMem_Malloc(sizeof(Dress)) : NULL;
    Py_XDECREF(bases);
    if (dress == NULL) {
        Py_XDECREF(type);
        return PyErr_NoMemory();
    }
    *dress = (Dress){(PyTypeObject *)new_reference(type), new_reference(init), heirs, style & STYLE, dresses};
    dresses = dress;
    return type;
}

/* `configure(*helpers)` gives this module what it calls in Python, and returns the class Value. */
static PyObject *configure(PyObject *module, PyObject *arguments) {
    helpers = new_reference(arguments); /* and former ones stay, because one of them may be running */
    undressed.init = PyTuple_GetItem(helpers, CONSTRUCT);
    return new_reference((PyObject *)value_type);
}

static PyMethodDef functions[] = {
    {"configure", configure, METH_VARARGS, NULL},
    {"dress", value_dress, METH_VARARGS, NULL},
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
    for (int op = 0; op <= ALL_OPS; op++) {
        op_names[op] = PyUnicode_InternFromString(OP_NAME[op]);
        if (op_names[op] == NULL)
            return NULL;
    }
    minus_one = PyLong_FromLong(-1);
    helpers = PyTuple_New(0);
    if (minus_one == NULL || helpers == NULL)
        return NULL;
    value_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return value_type == NULL ? NULL : PyModule_Create(&definition);
}
