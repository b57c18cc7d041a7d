/* The backward pass: contributions to gradients, and walks over a graph. */

/* Add the Value's contribution to the gradient of its left operand, then to that of its right one. */
static int contribute_by_op(Value *v) {
    PyObject *closure = get_extra(v, CLOSURE), *constant = get_extra(v, CONSTANT);
    if (closure != NULL) {
        Py_INCREF(closure);
        PyObject *none = PyObject_CallFunctionObjArgs(closure, NULL);
        Py_DECREF(closure);
        Py_XDECREF(none);
        return none == NULL ? -1 : 0;
    }
    if (v->op == LEAF || v->op == CUSTOM)
        return 0;
    Value *a = v->left, *b = v->right;
    Number none = real(0.0), k = none, to_a = none, to_b = none;
    const int of_b = b ? b->kinds[DATA] | b->kinds[GRAD] : 0;
    int hard = (v->kinds[DATA] | v->kinds[GRAD] | a->kinds[DATA] | a->kinds[GRAD] | of_b) & OBJECT;
    /* The product of NumPy's bool and a number is a number of NumPy. */
    hard |= v->op == OP_RELU && v->kinds[DATA] == NUMPY && v->kinds[GRAD] != NUMPY;
    if (constant != NULL)
        hard |= !to_number(constant, &k);
    if (!hard) {
        contributions(v->op, number_of(a, DATA), b ? number_of(b, DATA) : none, k, number_of(v, DATA), number_of(v, GRAD), &to_a, &to_b, &hard);
        if (v->flags & FLOAT_TERMS) {
            to_a.kind &= NUMPY;
            to_b.kind &= NUMPY;
        }
        to_a = number_add(number_of(a, GRAD), to_a, &hard);
        if (b != NULL)
            to_b = number_add(a == b ? to_a : number_of(b, GRAD), to_b, &hard);
    }
    if (hard) {
        PyObject *nothing = PyObject_CallFunction(PyTuple_GetItem(helpers, CONTRIBUTE), "OO", value_type, v);
        Py_XDECREF(nothing);
        return nothing == NULL ? -1 : 0;
    }
    put_number(a, GRAD, to_a);
    if (b != NULL)
        put_number(b, GRAD, to_b);
    return 0;
}

/* The same, where a subclass may define `_contribute` for operations of its own. */
static int contribute(Value *v) {
    if (v->op != CUSTOM || !(v->flags & OF_SUBCLASS))
        return contribute_by_op(v);
    PyObject *none = PyObject_CallMethod((PyObject *)v, "_contribute", NULL);
    Py_XDECREF(none);
    return none == NULL ? -1 : 0;
}

/* A Value's operands, one after the other; NULL after the last. */
static Value *operand_at(const Value *v, Py_ssize_t index) {
    if (v->op != CUSTOM)
        return index == 0 ? v->left : index == 1 ? v->right : NULL;
    PyObject *children = v->extra[CHILDREN];
    return index < PyTuple_Size(children) ? (Value *)PyTuple_GetItem(children, index) : NULL;
}

typedef struct {
    Value *v;
    Py_ssize_t next; /* operand to visit */
} Place;

/* Append the Values below a root and the root to a list, operands first, left before right, without those that another
   root of the same walk has appended. It marks each with the walk's number, and with the number before while it visits
   the operands, so meeting such a mark is a cycle. Raises CyclicGraph or MemoryError. */
static int append_order(PyObject *order, Value *root, uint64_t walk) {
    Place *places = NULL; /* from the root to the Value that is visited */
    Py_ssize_t length = 0, capacity = 0;
    Value *entered = root->mark == walk ? NULL : root;
    int failed = 0;
    while ((entered != NULL || length > 0) && !failed) {
        if (entered != NULL) {
            if (length == capacity) {
                capacity = capacity ? 2 * capacity : 256;
                Place *larger = PyMem_Realloc(places, (size_t)capacity * sizeof *places);
                if (larger == NULL) {
                    PyErr_NoMemory();
                    failed = -1;
                    break;
                }
                places = larger;
            }
            entered->mark = walk - 1;
            places[length++] = (Place){entered, 0};
        }
        Place *place = &places[length - 1];
        Value *operand = operand_at(place->v, place->next++);
        entered = operand != NULL && operand->mark != walk ? operand : NULL;
        if (operand == NULL) {
            place->v->mark = walk;
            failed = PyList_Append(order, (PyObject *)place->v); /* it runs no Python code */
            length--;
        } else if (operand->mark == walk - 1) {
            PyErr_SetObject(PyTuple_GetItem(helpers, CYCLIC_GRAPH), (PyObject *)operand); /* it calls the class */
            failed = -1;
        }
    }
    PyMem_Free(places);
    return failed;
}

static PyObject *value_topo(Value *self, PyObject *unused) {
    PyObject *order = PyList_New(0);
    if (order != NULL && append_order(order, self, walks += 2) < 0)
        Py_CLEAR(order);
    return order;
}

static PyObject *value_backward(Value *self, PyObject *unused) {
    PyObject *order = value_topo(self, NULL); /* it keeps the Values alive while Python code runs */
    int failed = 0;
    if (order == NULL)
        return NULL;
    PyObject_GC_UnTrack(order); /* so that no Python code can find and change it */
    put_number(self, GRAD, self->flags & FLOAT_ONE ? real(1.0) : whole(1.0));
    for (Py_ssize_t i = PyList_Size(order) - 1; i >= 0 && !failed; i--)
        failed = contribute((Value *)PyList_GetItem(order, i)) < 0;
    Py_DECREF(order);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *value_contribute(Value *self, PyObject *unused) {
    if (contribute_by_op(self) < 0)
        return NULL;
    Py_RETURN_NONE;
}
