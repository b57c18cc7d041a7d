/* Attributes of a Value, and changes of its operation. */

static PyObject *get_number(Value *v, void *which) { return get_object(v, which == NULL ? DATA : GRAD); }

static int refuse_deletion(const char *attribute) {
    PyErr_Format(PyExc_AttributeError, "a Value's %s can't be deleted\n  Assign a new one instead.", attribute);
    return -1;
}

static int set_number(Value *v, PyObject *given, void *which) {
    if (given == NULL)
        return refuse_deletion(which == NULL ? "data" : "grad");
    return put_object(v, which == NULL ? DATA : GRAD, given);
}

/* The operands as a new tuple. */
static PyObject *operands_of(const Value *v) {
    if (v->op == CUSTOM) {
        Py_INCREF(v->extra->children);
        return v->extra->children;
    }
    Value *left = v->left, *right = v->right;
    Py_XINCREF(left);
    Py_XINCREF(right);
    PyObject *operands = right ? PyTuple_Pack(2, left, right) : left ? PyTuple_Pack(1, left) : PyTuple_New(0);
    Py_XDECREF(left);
    Py_XDECREF(right);
    return operands;
}

static PyObject *get_prev(Value *v, void *unused) {
    (void)unused;
    return operands_of(v);
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

/* Raise CyclicGraph if the Value is below one of the children. */
static int check_cycle(Value *v, PyObject *children) {
    Walk walk = {++walks, NULL, 0, 0, 0};
    Value *below;
    for (Py_ssize_t i = 0; i < PyTuple_Size(children); i++) {
        begin(&walk, (Value *)PyTuple_GetItem(children, i));
        while ((below = next_of(&walk)) != NULL)
            below->mark = walk.number;
    }
    PyMem_Free(walk.places);
    if (walk.failed) {
        PyErr_NoMemory();
        return -1;
    }
    if (v->mark != walk.number)
        return 0;
    PyObject *cycle = PyObject_CallFunctionObjArgs(helpers[CYCLIC_GRAPH], (PyObject *)v, NULL);
    if (cycle != NULL)
        PyErr_SetObject(helpers[CYCLIC_GRAPH], cycle);
    Py_XDECREF(cycle);
    return -1;
}

/* Replace a Value's operation. op: LEAF if there are no children, CUSTOM, or an op of the table with as many operands.
   children: a tuple. name: an exact str, which only a leaf and a CUSTOM Value keep. */
static int set_operation(Value *v, int op, PyObject *children, PyObject *name) {
    Py_ssize_t count = PyTuple_Size(children);
    if (check_children(children) < 0)
        return -1;
    int is_own_child = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        is_own_child |= PyTuple_GetItem(children, i) == (PyObject *)v;
    if ((is_own_child || v->flags & IS_OPERAND) && check_cycle(v, children) < 0)
        return -1;
    if (extra_of(v) == NULL)
        return -1;
    PyObject *old[] = {(PyObject *)v->left, (PyObject *)v->right, v->extra->children, v->extra->name, NULL};
    v->left = v->right = NULL;
    v->op = (uint8_t)op;
    v->extra->children = v->extra->name = NULL;
    if (op == LEAF || op == CUSTOM) {
        Py_INCREF(name);
        v->extra->name = name;
    }
    if (op != OP_POW) {
        old[4] = v->extra->constant;
        v->extra->constant = NULL;
    }
    if (op == CUSTOM) {
        Py_INCREF(children);
        v->extra->children = children;
        for (Py_ssize_t i = 0; i < count; i++) {
            Value *child = (Value *)PyTuple_GetItem(children, i);
            child->flags |= IS_OPERAND;
            if (child->flags & TRACKED)
                track(v);
        }
    } else if (op != LEAF) {
        connect(v, op, (Value *)PyTuple_GetItem(children, 0), count == 2 ? (Value *)PyTuple_GetItem(children, 1) : NULL);
    }
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        Py_XDECREF(old[i]);
    return 0;
}

static PyObject *name_of(Value *v) {
    PyObject *name = v->op == CUSTOM || v->op == LEAF ? (v->extra ? v->extra->name : NULL) : op_names[v->op];
    if (name == NULL)
        name = op_names[LEAF];
    Py_INCREF(name);
    return name;
}

static int set_prev(Value *v, PyObject *given, void *unused) {
    (void)unused;
    if (given == NULL)
        return refuse_deletion("_prev");
    PyObject *name = name_of(v), *children = PySequence_Tuple(given);
    int failed = children == NULL;
    if (!failed) {
        Py_ssize_t count = PyTuple_Size(children);
        int is_known = v->op != LEAF && v->op != CUSTOM && ARITY[v->op] == count;
        failed = set_operation(v, is_known ? v->op : count ? CUSTOM : LEAF, children, name) < 0;
    }
    Py_DECREF(name);
    Py_XDECREF(children);
    return failed ? -1 : 0;
}

static PyObject *get_name(Value *v, void *unused) {
    (void)unused;
    return name_of(v);
}

static PyObject *get_op(Value *v, void *unused) {
    (void)unused;
    PyObject *name = name_of(v);
    if (v->extra == NULL || v->extra->constant == NULL)
        return name;
    PyObject *text = PyUnicode_FromFormat("%U%S", name, v->extra->constant);
    Py_DECREF(name);
    return text;
}

/* An exact str, which can't be part of a cycle. */
static PyObject *as_text(PyObject *given, const char *attribute) {
    if (PyUnicode_Check(given))
        return PyUnicode_FromObject(given);
    PyErr_Format(PyExc_TypeError, "a Value's %s is text, not %R", attribute, given);
    return NULL;
}

static int put_text(Value *v, size_t offset, PyObject *given, const char *attribute) {
    PyObject *text = as_text(given, attribute);
    if (text == NULL || extra_of(v) == NULL) {
        Py_XDECREF(text);
        return -1;
    }
    PyObject **place = (PyObject **)((char *)v->extra + offset), *old = *place;
    *place = text;
    Py_XDECREF(old);
    return 0;
}

static int set_op(Value *v, PyObject *given, void *unused) {
    (void)unused;
    if (given == NULL)
        return refuse_deletion("_op");
    if (v->op != LEAF && v->op != CUSTOM) {
        PyErr_Format(
            PyExc_AttributeError,
            "_op of %R says how it is computed, so it can't be changed\n  Use `label` for a name.", v);
        return -1;
    }
    return put_text(v, offsetof(Extra, name), given, "_op");
}

static PyObject *get_label(Value *v, void *unused) {
    (void)unused;
    PyObject *label = v->extra && v->extra->label ? v->extra->label : op_names[LEAF];
    Py_INCREF(label);
    return label;
}

static int set_label(Value *v, PyObject *given, void *unused) {
    (void)unused;
    if (given == NULL)
        return refuse_deletion("label");
    return put_text(v, offsetof(Extra, label), given, "label");
}

static PyObject *get_constant(Value *v, void *unused) {
    (void)unused;
    PyObject *constant = v->extra && v->extra->constant ? v->extra->constant : Py_None;
    Py_INCREF(constant);
    return constant;
}

static PyObject *get_row(Value *v, void *unused) {
    (void)unused;
    return PyLong_FromLong(v->flags & HAS_ROW ? v->row : -1);
}

static int set_row(Value *v, PyObject *given, void *unused) {
    (void)unused;
    long row = given == NULL ? -1 : PyLong_AsLong(given);
    if (row == -1 && PyErr_Occurred())
        return -1;
    if (row < INT32_MIN || row > INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a row is a 32-bit int");
        return -1;
    }
    v->row = (int32_t)row;
    v->flags = (uint16_t)((v->flags & ~HAS_ROW) | (row == -1 ? 0 : HAS_ROW));
    return 0;
}

static PyObject *get_backward(Value *v, void *unused) {
    (void)unused;
    if (v->extra != NULL && v->extra->closure != NULL) {
        Py_INCREF(v->extra->closure);
        return v->extra->closure;
    }
    return PyObject_GetAttrString((PyObject *)v, "_contribute");
}

/* A program adds an operation by setting its backward function. Such a function refers to the Value: a cycle. */
static int set_backward(Value *v, PyObject *given, void *unused) {
    (void)unused;
    if (given == NULL)
        return refuse_deletion("_backward");
    if (!PyCallable_Check(given)) {
        PyErr_Format(PyExc_TypeError, "_backward is %R, not a function without arguments", given);
        return -1;
    }
    if (extra_of(v) == NULL)
        return -1;
    PyObject *old = v->extra->closure;
    Py_INCREF(given);
    v->extra->closure = given;
    track(v);
    Py_XDECREF(old);
    return 0;
}

static PyObject *get_own_backward(Value *v, void *unused) {
    (void)unused;
    return PyBool_FromLong(v->extra != NULL && v->extra->closure != NULL);
}

/* The dict of the program's own attributes, a borrowed reference; NULL if there is none. */
static PyObject *own_attributes(const Value *v) { return v->extra ? v->extra->attributes : NULL; }

static PyObject *get_attributes(Value *v, void *unused) {
    (void)unused;
    if (extra_of(v) == NULL)
        return NULL;
    if (v->extra->attributes == NULL)
        v->extra->attributes = PyDict_New();
    if (v->extra->attributes != NULL)
        track(v); /* they may refer to the Value: a cycle */
    Py_XINCREF(v->extra->attributes);
    return v->extra->attributes;
}

static PyObject *value_getattro(PyObject *self, PyObject *name) {
    PyObject *own = own_attributes((Value *)self);
    if (own == NULL)
        return PyObject_GenericGetAttr(self, name);
    PyObject *found = PyDict_GetItemWithError(own, name);
    Py_XINCREF(found);
    return found != NULL || PyErr_Occurred() ? found : PyObject_GenericGetAttr(self, name);
}

/* Whether the class has a descriptor of that name, which alone may store it. Leaves an exception as it is. */
static int is_described(PyObject *self, PyObject *name) {
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyObject *attribute = PyObject_GetAttr((PyObject *)Py_TYPE(self), name);
    int is_descriptor = attribute != NULL && PyObject_HasAttrString((PyObject *)Py_TYPE(attribute), "__set__");
    Py_XDECREF(attribute);
    PyErr_Restore(type, error, trace);
    return is_descriptor;
}

/* Store or delete an attribute that the class does not have. */
static int set_own_attribute(PyObject *self, PyObject *name, PyObject *given) {
    PyObject *own = get_attributes((Value *)self, NULL);
    int failed = own == NULL || (given ? PyDict_SetItem(own, name, given) : PyDict_DelItem(own, name)) < 0;
    Py_XDECREF(own);
    return failed ? -1 : 0;
}

static int value_setattro(PyObject *self, PyObject *name, PyObject *given) {
    PyObject *own = own_attributes((Value *)self);
    if (own != NULL) {
        const int is_own = PyDict_Contains(own, name);
        if (is_own)
            return is_own < 0 ? -1 : set_own_attribute(self, name, given);
    }
    if (PyObject_GenericSetAttr(self, name, given) == 0)
        return 0;
    if (given == NULL || !PyErr_ExceptionMatches(PyExc_AttributeError) || is_described(self, name))
        return -1;
    PyErr_Clear();
    return set_own_attribute(self, name, given);
}

/* The number as an f-string shows it. */
static PyObject *shown(Value *v, int which) {
    PyObject *number = get_object(v, which), *text = number ? PyObject_Format(number, NULL) : NULL;
    Py_XDECREF(number);
    return text;
}

static PyObject *value_repr(PyObject *self) {
    PyObject *text = NULL, *data = shown((Value *)self, DATA), *grad = shown((Value *)self, GRAD);
    if (data != NULL && grad != NULL)
        text = PyUnicode_FromFormat("Value(data=%U, grad=%U)", data, grad);
    Py_XDECREF(data);
    Py_XDECREF(grad);
    return text;
}
