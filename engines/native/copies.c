/* Construction, and what copies and pickles store. A copy of a graph recurses, as that of a class in Python. */

static PyObject *value_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    (void)arguments;
    (void)named;
    return (PyObject *)allocate_object(type);
}

/* Call the program's constructor, unless one number was given and its class has the rest as defaults. */
static int init_dressed(const Dress *dress, Value *v, PyObject *arguments, PyObject *named) {
    PyObject *first = PyTuple_Size(arguments) == 1 && named == NULL ? PyTuple_GetItem(arguments, 0) : NULL;
    if (dress->plain && first != NULL && v->op == LEAF && v->extra == NULL &&
        (PyFloat_CheckExact(first) || PyLong_CheckExact(first))) {
        put_number(v, GRAD, v->flags & FLOAT_GRAD ? real(0.0) : whole(0.0));
        return put_data(v, first);
    }
    PyObject *none = NULL, *all = PyTuple_Pack(1, v), *joined = all ? PySequence_Concat(all, arguments) : NULL;
    if (joined != NULL)
        none = PyObject_Call(dress->init, joined, named);
    Py_XDECREF(all);
    Py_XDECREF(joined);
    Py_XDECREF(none);
    return none == NULL ? -1 : 0;
}

static int value_init(PyObject *self, PyObject *arguments, PyObject *named) {
    const Dress *dress = Py_TYPE(self) == value_type ? NULL : dress_of(Py_TYPE(self));
    if (dress != NULL)
        return init_dressed(dress, (Value *)self, arguments, named);
    static char *names[] = {"data", "_children", "_op", "label", NULL};
    Value *v = (Value *)self;
    PyObject *data, *given = NULL, *name = op_names[LEAF], *label = op_names[LEAF];
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "O|OUU:Value", names, &data, &given, &name, &label))
        return -1;
    if (put_object(v, DATA, data) < 0)
        return -1;
    put_number(v, GRAD, whole(0.0));
    if (v->extra != NULL) { /* it was initialised before */
        PyObject *closure = v->extra->closure;
        v->extra->closure = NULL;
        Py_XDECREF(closure);
    }
    if ((v->extra != NULL || PyUnicode_GetLength(label) > 0) && set_label(v, label, NULL) < 0)
        return -1;
    if (given == NULL && v->op == LEAF && v->extra == NULL && PyUnicode_GetLength(name) == 0)
        return 0;
    PyObject *children = given ? PySequence_Tuple(given) : PyTuple_New(0), *text = as_text(name, "_op");
    int failed = children == NULL || text == NULL ||
                 set_operation(v, PyTuple_Size(children) ? CUSTOM : LEAF, children, text) < 0;
    Py_XDECREF(children);
    Py_XDECREF(text);
    return failed ? -1 : 0;
}

PyDoc_STRVAR(reduce_doc, "__reduce__()\n--\n\nWhat pickle stores: `_rebuild` and its arguments, then attributes.");

static PyObject *value_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    Value *v = (Value *)self;
    if (v->extra != NULL && v->extra->closure != NULL) {
        PyErr_Format(PyExc_TypeError, "%R has its own backward function, which can't be pickled", self);
        return NULL;
    }
    PyObject *rebuild = PyObject_GetAttrString((PyObject *)Py_TYPE(self), "_rebuild");
    const int has_attributes = v->flags & OF_SUBCLASS || own_attributes(v) != NULL;
    PyObject *attributes = has_attributes ? PyObject_GetAttrString(self, "__dict__") : NULL;
    if (attributes == NULL) {
        PyErr_Clear();
        Py_INCREF(Py_None);
        attributes = Py_None;
    }
    PyObject *data = get_object(v, DATA), *grad = get_object(v, GRAD), *operands = operands_of(v);
    PyObject *name = name_of(v), *constant = get_constant(v, NULL), *label = get_label(v, NULL), *found = NULL;
    if (rebuild != NULL && data != NULL && grad != NULL && operands != NULL)
        found = Py_BuildValue(
            "(O(OOOOOO)O)", rebuild, data, grad, operands, name, constant, label, attributes);
    PyObject *all[] = {rebuild, attributes, data, grad, operands, name, constant, label};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        Py_XDECREF(all[i]);
    return found;
}

/* The op of the table with this name and this many operands; CUSTOM if there is none, LEAF without operands. */
static int op_of(PyObject *name, Py_ssize_t operands) {
    for (int op = 1; op <= ALL_OPS; op++)
        if (ARITY[op] == operands && PyUnicode_Compare(name, op_names[op]) == 0)
            return op;
    return operands ? CUSTOM : LEAF;
}

PyDoc_STRVAR(
    rebuild_doc, "_rebuild(data, grad, operands, name, constant, label)\n--\n\nThe Value that pickle has stored.");

static PyObject *value_rebuild(PyTypeObject *type, PyObject *arguments) {
    PyObject *data, *grad, *operands, *name, *constant, *label;
    if (!PyArg_ParseTuple(
            arguments, "OOO!UOU:_rebuild", &data, &grad, &PyTuple_Type, &operands, &name, &constant, &label))
        return NULL;
    PyObject *made = (PyObject *)allocate_object(type), *text = as_text(name, "_op");
    Value *v = (Value *)made;
    int has_constant = PyFloat_CheckExact(constant) || PyLong_CheckExact(constant);
    int op = text ? op_of(text, PyTuple_Size(operands)) : LEAF;
    if (op == OP_POW && !has_constant)
        op = CUSTOM;
    int failed = made == NULL || text == NULL || set_operation(v, op, operands, text) < 0 ||
                 (op == OP_POW && set_constant(v, constant) < 0) || put_object(v, DATA, data) < 0 ||
                 put_object(v, GRAD, grad) < 0 || (PyUnicode_GetLength(label) > 0 && set_label(v, label, NULL) < 0);
    Py_XDECREF(text);
    if (failed)
        Py_CLEAR(made);
    return made;
}
