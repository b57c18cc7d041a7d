/* Attributes of a Value, and changes of its operation. */

static PyObject *get_number(Value *v, void *which) { return get_object(v, which == NULL ? DATA : GRAD); }

static int refuse_deletion(const char *attribute) {
    PyErr_Format(PyExc_AttributeError, "a Value's %s can't be deleted\n  Assign a new one instead.", attribute);
    return -1;
}

static int set_number(Value *v, PyObject *number, void *which) {
    if (number == NULL)
        return refuse_deletion(which == NULL ? "data" : "grad");
    return put_object(v, which == NULL ? DATA : GRAD, number);
}

/* The operands as a new tuple. */
static PyObject *get_prev(Value *v, void *unused) {
    if (v->op == CUSTOM)
        return new_reference(v->extra[CHILDREN]);
    PyObject *left = new_reference((PyObject *)v->left), *right = new_reference((PyObject *)v->right);
    PyObject *operands = right ? PyTuple_Pack(2, left, right) : left ? PyTuple_Pack(1, left) : PyTuple_New(0);
    Py_XDECREF(left);
    Py_XDECREF(right);
    return operands;
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
   anything else, the Value becomes a leaf or CUSTOM, and keeps the name. operands: an iterable; NULL for none. */
static int set_operation(Value *v, int op, PyObject *operands, PyObject *name) {
    PyObject *children = operands ? PySequence_Tuple(operands) : PyTuple_New(0);
    PyObject *text = PyUnicode_FromObject(name); /* an exact str, which can't be part of a cycle */
    if (children == NULL || text == NULL || check_children(children) < 0 || make_extra(v) < 0) {
        Py_XDECREF(children);
        Py_XDECREF(text);
        return -1;
    }
    const Py_ssize_t count = PyTuple_Size(children);
    PyObject **extra = v->extra;
    if (op > ALL_OPS || ARITY[op] != count || (op == OP_POW && extra[CONSTANT] == NULL))
        op = count ? CUSTOM : LEAF;
    PyObject *constant = op == OP_POW ? extra[CONSTANT] : NULL;
    PyObject *old[] = {
        (PyObject *)v->left, (PyObject *)v->right, extra[CHILDREN], extra[NAME], constant ? NULL : extra[CONSTANT]};
    v->left = v->right = NULL;
    v->op = (uint8_t)op;
    extra[CHILDREN] = op == CUSTOM ? new_reference(children) : NULL;
    extra[NAME] = op == LEAF || op == CUSTOM ? new_reference(text) : NULL;
    extra[CONSTANT] = constant;
    if (op == CUSTOM) {
        for (Py_ssize_t i = 0; i < count; i++)
            if (((Value *)PyTuple_GetItem(children, i))->flags & TRACKED)
                track(v);
    } else if (op != LEAF) {
        connect(v, op, (Value *)PyTuple_GetItem(children, 0), count == 2 ? (Value *)PyTuple_GetItem(children, 1) : NULL);
    }
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        Py_XDECREF(old[i]);
    Py_DECREF(children);
    Py_DECREF(text);
    return 0;
}

static PyObject *get_name(Value *v, void *unused) {
    PyObject *name = v->op == CUSTOM || v->op == LEAF ? get_extra(v, NAME) : op_names[v->op];
    return new_reference(name ? name : op_names[LEAF]);
}

static int set_prev(Value *v, PyObject *operands, void *unused) {
    if (operands == NULL)
        return refuse_deletion("_prev");
    PyObject *name = get_name(v, NULL);
    int failed = set_operation(v, v->op, operands, name);
    Py_DECREF(name);
    return failed;
}

static PyObject *get_op(Value *v, void *unused) {
    PyObject *name = get_name(v, NULL), *constant = get_extra(v, CONSTANT);
    if (constant == NULL)
        return name;
    PyObject *text = PyUnicode_FromFormat("%U%S", name, constant);
    Py_DECREF(name);
    return text;
}

static int set_op(Value *v, PyObject *name, void *unused) {
    if (name == NULL)
        return refuse_deletion("_op");
    if (v->op != LEAF && v->op != CUSTOM) {
        PyErr_Format(
            PyExc_AttributeError,
            "_op of %R says how it is computed, so it can't be changed\n  Use `label` for a name.", v);
        return -1;
    }
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "a Value's _op is text, not %R", name);
        return -1;
    }
    PyObject *text = PyUnicode_FromObject(name); /* an exact str, which can't be part of a cycle */
    return text == NULL ? -1 : put_extra(v, NAME, text);
}

static PyObject *get_constant(Value *v, void *unused) {
    PyObject *constant = get_extra(v, CONSTANT);
    return new_reference(constant ? constant : Py_None);
}

static PyObject *get_backward(Value *v, void *unused) {
    PyObject *closure = get_extra(v, CLOSURE);
    return closure ? new_reference(closure) : PyObject_GetAttrString((PyObject *)v, "_contribute");
}

/* A program adds an operation by setting its backward function. Such a function refers to the Value: a cycle. */
static int set_backward(Value *v, PyObject *function, void *unused) {
    if (function == NULL)
        return refuse_deletion("_backward");
    if (!PyCallable_Check(function)) {
        PyErr_Format(PyExc_TypeError, "_backward is %R, not a function without arguments", function);
        return -1;
    }
    track(v);
    return put_extra(v, CLOSURE, new_reference(function));
}

static PyObject *get_own_backward(Value *v, void *unused) {
    return PyBool_FromLong(get_extra(v, CLOSURE) != NULL);
}

static PyObject *get_attributes(Value *v, void *unused) {
    PyObject *own = PyObject_GenericGetDict((PyObject *)v, NULL);
    if (own != NULL)
        track(v); /* the dict may refer to the Value: a cycle */
    return own;
}

static int set_attributes(Value *v, PyObject *own, void *unused) {
    if (PyObject_GenericSetDict((PyObject *)v, own, NULL) < 0)
        return -1;
    track(v);
    return 0;
}

/* Text and numbers form no cycle, so they need no tracking: a label is text, and every result computed from a tracked
   Value is tracked too. */
static int value_setattro(PyObject *self, PyObject *name, PyObject *attribute) {
    if (PyObject_GenericSetAttr(self, name, attribute) < 0)
        return -1;
    Value *v = (Value *)self;
    if (v->attributes != NULL && attribute != NULL && PyType_GetFlags(Py_TYPE(attribute)) & Py_TPFLAGS_HAVE_GC)
        track(v);
    return 0;
}
