/* Construction of Values, their attributes, and changes of their operation. */

static PyObject *value_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    return (PyObject *)allocate(type);
}

/* Call the constructor in Python, unless one number was given and its class has the rest as defaults. */
static int value_init(PyObject *self, PyObject *arguments, PyObject *named) {
    Value *v = (Value *)self;
    const int is_alone = PyTuple_Size(arguments) == 1 && (named == NULL || PyDict_Size(named) == 0);
    PyObject *first = is_alone ? PyTuple_GetItem(arguments, 0) : NULL;
    if (first != NULL && v->op == LEAF && v->extra == NULL && v->attributes == NULL &&
        (PyFloat_CheckExact(first) || PyLong_CheckExact(first))) {
        put_number(v, GRAD, v->flags & FLOAT_GRAD ? real(0.0) : whole(0.0));
        return put_data(v, first);
    }
    PyObject *method = PyObject_CallMethod(dress_of(Py_TYPE(self))->init, "__get__", "O", v);
    PyObject *none = method ? PyObject_Call(method, arguments, named) : NULL;
    Py_XDECREF(method);
    Py_XDECREF(none);
    return none == NULL ? -1 : 0;
}

static int refuse_deletion(const char *attribute) {
    PyErr_Format(PyExc_AttributeError, "a Value's %s can't be deleted\n  Assign a new one instead.", attribute);
    return -1;
}

static PyObject *get_number(Value *v, void *which) { return get_object(v, which == NULL ? DATA : GRAD); }

static int set_number(Value *v, PyObject *number, void *which) {
    if (number == NULL)
        return refuse_deletion(which == NULL ? "data" : "grad");
    return put_object(v, which == NULL ? DATA : GRAD, number);
}

static PyObject *get_prev(Value *v, void *unused) {
    if (v->op == CUSTOM)
        return new_reference(v->extra[CHILDREN]);
    PyObject *left = new_reference((PyObject *)v->left), *right = new_reference((PyObject *)v->right);
    PyObject *operands = right ? PyTuple_Pack(2, left, right) : left ? PyTuple_Pack(1, left) : PyTuple_New(0);
    Py_XDECREF(left);
    Py_XDECREF(right);
    return operands;
}

/* A borrowed reference. */
static PyObject *name_of(const Value *v) {
    PyObject *own = v->op == LEAF || v->op == CUSTOM ? get_extra(v, NAME) : NULL;
    return own ? own : op_names[v->op == CUSTOM ? LEAF : v->op];
}

static int check_children(PyObject *children) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(children); i++) {
        PyObject *child = PyTuple_GetItem(children, i);
        if (!IS_VALUE(child)) {
            PyErr_Format(
                PyExc_TypeError, "_children[%zd] is %R, not a Value of this class\n  Wrap it: Value(...).", i, child);
            return -1;
        }
    }
    return 0;
}

/* Replace a Value's operation. op: one of the table, with as many operands, and with a constant if it is a power. For
   anything else, the Value becomes a leaf or CUSTOM, and keeps the name. operands: an iterable. constant: or NULL. */
static int set_operation(Value *v, int op, PyObject *operands, PyObject *name, PyObject *constant) {
    PyObject *children = PySequence_Tuple(operands);
    if (children == NULL || check_children(children) < 0 || put_extra(v, NAME, new_reference(name)) < 0 ||
        put_extra(v, CONSTANT, new_reference(constant)) < 0) {
        Py_XDECREF(children);
        return -1;
    }
    const Py_ssize_t count = PyTuple_Size(children);
    if (op > ALL_OPS || ARITY[op] != count || (op == OP_POW && constant == NULL))
        op = count ? CUSTOM : LEAF;
    PyObject *left = (PyObject *)v->left, *right = (PyObject *)v->right, *former = v->extra[CHILDREN];
    v->left = v->right = NULL;
    v->op = (uint8_t)op;
    v->extra[CHILDREN] = children;
    if (op == CUSTOM)
        track(v); /* an operand may be tracked */
    else if (op != LEAF)
        connect(v, op, (Value *)PyTuple_GetItem(children, 0), count == 2 ? (Value *)PyTuple_GetItem(children, 1) : NULL);
    Py_XDECREF(left);
    Py_XDECREF(right);
    Py_XDECREF(former);
    return 0;
}

static int set_prev(Value *v, PyObject *operands, void *unused) {
    if (operands == NULL)
        return refuse_deletion("_prev");
    PyObject *name = new_reference(name_of(v)), *constant = new_reference(get_extra(v, CONSTANT));
    int failed = set_operation(v, v->op, operands, name, constant);
    Py_DECREF(name);
    Py_XDECREF(constant);
    return failed;
}

/* `_parts()`: the arguments of `_restore`, then the dict of the program's own attributes or None. */
static PyObject *value_parts(Value *v, PyObject *unused) {
    PyObject *name = new_reference(name_of(v)), *constant = new_reference(get_extra(v, CONSTANT));
    const int is_op = v->op != LEAF && v->op != CUSTOM;
    return Py_BuildValue(
        "(NNNNNOO)", get_object(v, DATA), get_object(v, GRAD), get_prev(v, NULL), name,
        constant ? constant : new_reference(Py_None), is_op ? Py_True : Py_False, v->attributes ? v->attributes : Py_None);
}

/* `_restore(data, grad, operands, name, constant, is_op)` gives a Value these parts. is_op: whether the name is that of
   an op in the table, whose contributions it makes. */
static PyObject *value_restore(Value *self, PyObject *arguments) {
    PyObject *data, *grad, *operands, *name, *constant;
    int is_op;
    if (!PyArg_ParseTuple(arguments, "OOOOOp:_restore", &data, &grad, &operands, &name, &constant, &is_op))
        return NULL;
    if (!PyUnicode_Check(name))
        return PyErr_Format(PyExc_TypeError, "a Value's _op is text, not %R", name);
    int op = is_op ? ALL_OPS : LEAF;
    while (op > LEAF && PyUnicode_Compare(name, op_names[op]) != 0)
        op--;
    if (!PyFloat_CheckExact(constant) && !PyLong_CheckExact(constant))
        constant = NULL;
    if (set_operation(self, op, operands, name, constant) < 0 || put_object(self, DATA, data) < 0 ||
        put_object(self, GRAD, grad) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *get_backward(Value *v, void *unused) {
    PyObject *closure = get_extra(v, CLOSURE);
    return closure ? new_reference(closure) : PyObject_GetAttrString((PyObject *)v, "_contribute");
}

/* A program adds an operation by setting its backward function. Such a function refers to the Value: a cycle. Without
   it, the Value has the function of its operation again. */
static int set_backward(Value *v, PyObject *function, void *unused) {
    if (function != NULL && !PyCallable_Check(function)) {
        PyErr_Format(PyExc_TypeError, "_backward is %R, not a function without arguments", function);
        return -1;
    }
    if (function != NULL)
        track(v);
    return put_extra(v, CLOSURE, new_reference(function));
}

static PyObject *get_attributes(Value *v, void *unused) {
    PyObject *own = PyObject_GenericGetDict((PyObject *)v, NULL);
    if (own != NULL)
        track(v); /* the dict may refer to the Value: a cycle */
    return own;
}

/* Text and numbers form no cycle, so they need no tracking: a label is text, and every result computed from a tracked
   Value is tracked too. */
static int value_setattro(PyObject *self, PyObject *name, PyObject *attribute) {
    if (PyObject_GenericSetAttr(self, name, attribute) < 0)
        return -1;
    Value *v = (Value *)self;
    if (v->attributes != NULL && attribute != NULL && is_container(attribute))
        track(v);
    return 0;
}
