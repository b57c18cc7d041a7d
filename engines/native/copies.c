/* Construction, copies and pickles. */

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

/* A Value with the same numbers, texts and attributes, and with these operands: a tuple as `_prev` gives it. */
static Value *copy_with(Value *v, int op, PyObject *operands) {
    Value *copy = allocate_object(Py_TYPE(v));
    if (copy == NULL || extra_of(copy) == NULL) {
        Py_XDECREF(copy);
        return NULL;
    }
    PyObject *name = op_names[LEAF];
    const int kinds = (IS_INT | IS_OBJECT | IS_NUMPY) << DATA | (IS_INT | IS_OBJECT | IS_NUMPY) << GRAD;
    copy->numbers[DATA] = v->numbers[DATA];
    copy->numbers[GRAD] = v->numbers[GRAD];
    copy->flags = (uint16_t)((v->flags & kinds) | (copy->flags & (STYLE | TRACKED | OF_SUBCLASS)));
    if (v->extra != NULL) {
        *copy->extra = *v->extra;
        copy->extra->children = copy->extra->name = copy->extra->attributes = NULL;
        Py_XINCREF(copy->extra->label);
        Py_XINCREF(copy->extra->constant);
        Py_XINCREF(copy->extra->closure);
        Py_XINCREF(copy->extra->numbers[DATA]);
        Py_XINCREF(copy->extra->numbers[GRAD]);
        if (v->extra->name != NULL)
            name = v->extra->name;
        if (v->extra->attributes != NULL && (copy->extra->attributes = PyDict_Copy(v->extra->attributes)) == NULL) {
            Py_DECREF(copy);
            return NULL;
        }
        if (copy->extra->closure != NULL || copy->extra->attributes != NULL)
            track(copy);
    }
    Py_INCREF(name);
    if (set_operation(copy, op, operands, name) < 0)
        Py_CLEAR(copy);
    Py_DECREF(name);
    return copy;
}

static int refuse_subclass(Value *v) {
    if (!(v->flags & OF_SUBCLASS))
        return 0;
    PyErr_Format(
        PyExc_TypeError, "%R can't copy its own attributes\n  Define __copy__ and __deepcopy__ in it.", Py_TYPE(v));
    return -1;
}

PyDoc_STRVAR(copy_doc, "__copy__()\n--\n\nA Value with the same numbers and the same operands.");

static PyObject *value_copy(Value *self, PyObject *unused) {
    (void)unused;
    if (refuse_subclass(self) < 0)
        return NULL;
    int op = self->op;
    PyObject *operands = operands_of(self);
    Value *copy = operands ? copy_with(self, op, operands) : NULL;
    Py_XDECREF(operands);
    return (PyObject *)copy;
}

/* The copy of a Value, a new reference; NULL if there is none yet, or with an exception. */
static PyObject *copy_in(PyObject *memo, Value *v) {
    PyObject *copy = NULL, *key = PyLong_FromVoidPtr(v);
    if (key != NULL)
        copy = PyDict_GetItemWithError(memo, key);
    Py_XINCREF(copy);
    Py_XDECREF(key);
    if (copy == NULL || IS_VALUE(copy))
        return copy;
    Py_DECREF(copy);
    PyErr_SetString(PyExc_TypeError, "the memo of deepcopy holds something else in place of a Value");
    return NULL;
}

/* Replace a copy's attributes, which are still those of the original, with copies. */
static int copy_attributes(Value *copy, PyObject *memo) {
    PyObject *old = own_attributes(copy);
    if (old == NULL)
        return 0;
    PyObject *module = PyImport_ImportModule("copy");
    PyObject *copies = module ? PyObject_CallMethod(module, "deepcopy", "OO", old, memo) : NULL;
    Py_XDECREF(module);
    if (copies == NULL)
        return -1;
    copy->extra->attributes = copies;
    Py_DECREF(old);
    return 0;
}

/* Copy a Value whose operands have copies. The memo may run code of the program, which may edit the graph, so nothing
   is read from the Value after the first look into the memo. */
static int copy_into(PyObject *memo, Value *v) {
    if (refuse_subclass(v) < 0)
        return -1;
    int op = v->op;
    PyObject *operands = operands_of(v), *copies = NULL, *key = PyLong_FromVoidPtr(v);
    Value *copy = NULL;
    Py_ssize_t count = operands ? PyTuple_Size(operands) : 0;
    int failed = operands == NULL || key == NULL || (copies = PyTuple_New(count)) == NULL;
    for (Py_ssize_t i = 0; i < count && !failed; i++) {
        PyObject *one = copy_in(memo, (Value *)PyTuple_GetItem(operands, i));
        if (one == NULL && !PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "the memo of deepcopy lost a Value");
        failed = one == NULL || PyTuple_SetItem(copies, i, one) < 0;
    }
    failed = failed || (copy = copy_with(v, op, copies)) == NULL || PyDict_SetItem(memo, key, (PyObject *)copy) < 0 ||
             copy_attributes(copy, memo) < 0;
    Py_XDECREF(operands);
    Py_XDECREF(copies);
    Py_XDECREF(key);
    Py_XDECREF(copy);
    return failed ? -1 : 0;
}

PyDoc_STRVAR(deepcopy_doc, "__deepcopy__(memo)\n--\n\nA copy of the whole graph below this Value.");

static PyObject *value_deepcopy(Value *self, PyObject *memo) {
    if (!PyDict_CheckExact(memo)) {
        PyErr_Format(PyExc_TypeError, "the memo of deepcopy is a dict, not %R", memo);
        return NULL;
    }
    Values order;
    int failed = 0;
    if (order_of(self, &order) < 0)
        return NULL;
    for (Py_ssize_t i = 0; i < order.length && !failed; i++) {
        PyObject *known = copy_in(memo, order.values[i]);
        failed = known == NULL && (PyErr_Occurred() || copy_into(memo, order.values[i]) < 0);
        Py_XDECREF(known);
    }
    PyObject *copy = failed ? NULL : copy_in(memo, self);
    if (copy == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "the memo of deepcopy lost a Value");
    drop_references(&order);
    return copy;
}

PyDoc_STRVAR(reduce_doc, "__reduce__()\n--\n\nWhat pickle stores: `_rebuild` and its arguments, then a subclass's attributes.");

static PyObject *value_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    Value *v = (Value *)self;
    if (v->extra != NULL && v->extra->closure != NULL) {
        PyErr_Format(PyExc_TypeError, "%R has its own backward function, which can't be pickled", self);
        return NULL;
    }
    PyObject *rebuild = PyObject_GetAttrString((PyObject *)Py_TYPE(self), "_rebuild");
    PyObject *attributes = PyObject_GetAttrString(self, "__dict__");
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
    for (int op = 1; op <= OPS; op++)
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
