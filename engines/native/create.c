/* Construction of Values, and of the copies that `helpers.py` makes. */

static PyObject *value_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    return (PyObject *)allocate_object(type);
}

/* Call the program's constructor, unless one number was given and its class has the rest as defaults. */
static int init_dressed(const Dress *dress, Value *v, PyObject *arguments, PyObject *named) {
    PyObject *first = PyTuple_Size(arguments) == 1 && named == NULL ? PyTuple_GetItem(arguments, 0) : NULL;
    if (first != NULL && v->op == LEAF && v->extra == NULL &&
        (PyFloat_CheckExact(first) || PyLong_CheckExact(first))) {
        put_number(v, GRAD, v->flags & FLOAT_GRAD ? real(0.0) : whole(0.0));
        return put_data(v, first);
    }
    PyObject *method = PyObject_CallMethod(dress->init, "__get__", "O", v);
    PyObject *none = method ? PyObject_Call(method, arguments, named) : NULL;
    Py_XDECREF(method);
    Py_XDECREF(none);
    return none == NULL ? -1 : 0;
}

static int value_init(PyObject *self, PyObject *arguments, PyObject *named) {
    const Dress *dress = dress_of(Py_TYPE(self));
    if (dress->init != NULL)
        return init_dressed(dress, (Value *)self, arguments, named);
    static char *names[] = {"data", "_children", "_op", "label", NULL};
    Value *v = (Value *)self;
    PyObject *data, *operands = NULL, *name = op_names[LEAF], *label = op_names[LEAF];
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "O|OUU:Value", names, &data, &operands, &name, &label))
        return -1;
    if (put_object(v, DATA, data) < 0)
        return -1;
    put_number(v, GRAD, whole(0.0));
    if (v->extra != NULL) /* it was initialised before */
        Py_CLEAR(v->extra[CLOSURE]);
    if ((v->attributes != NULL || PyUnicode_GetLength(label)) && PyObject_SetAttrString(self, "label", label) < 0)
        return -1;
    if (operands == NULL && v->op == LEAF && v->extra == NULL && PyUnicode_GetLength(name) == 0)
        return 0;
    return set_operation(v, LEAF, operands, name);
}

PyDoc_STRVAR(parts_doc, "_parts()\n--\n\nThe arguments of `_restore`, then the dict of the program's own attributes or None.");

static PyObject *value_parts(Value *v, PyObject *unused) {
    return Py_BuildValue(
        "(NNNNNO)", get_object(v, DATA), get_object(v, GRAD), get_prev(v, NULL), get_name(v, NULL),
        get_constant(v, NULL), v->attributes ? v->attributes : Py_None);
}

PyDoc_STRVAR(restore_doc, "_restore(data, grad, operands, name, constant)\n--\n\nThe inverse, for a new Value.");

static PyObject *value_restore(Value *self, PyObject *arguments) {
    PyObject *data, *grad, *operands, *name, *constant;
    if (!PyArg_ParseTuple(
            arguments, "OOO!UO:_restore", &data, &grad, &PyTuple_Type, &operands, &name, &constant))
        return NULL;
    const int has_constant = PyFloat_CheckExact(constant) || PyLong_CheckExact(constant);
    int op = ALL_OPS;
    while (op > LEAF && PyUnicode_Compare(name, op_names[op]) != 0)
        op--;
    if ((has_constant && put_extra(self, CONSTANT, new_reference(constant)) < 0) ||
        set_operation(self, op, operands, name) < 0 || put_object(self, DATA, data) < 0 ||
        put_object(self, GRAD, grad) < 0)
        return NULL;
    Py_RETURN_NONE;
}
