/* The backward pass: contributions to gradients, and walks over a graph. */

/* --- Gradients --------------------------------------------------------------------------------------------------- */

static int add_to_grad(Value *v, PyObject *contribution) {
    PyObject *grad = get_object(v, GRAD);
    PyObject *sum = grad ? PyNumber_Add(grad, contribution) : NULL;
    int failed = sum == NULL || put_object(v, GRAD, sum) < 0;
    Py_XDECREF(grad);
    Py_XDECREF(sum);
    return failed ? -1 : 0;
}

static int contribute_by_python(Value *v, Value *a, Value *b) {
    PyObject *terms = call_python(CONTRIBUTE, v->op, a, b, get_extra(v, CONSTANT), v);
    int failed = 1;
    if (terms != NULL && b == NULL)
        failed = add_to_grad(a, terms) < 0;
    else if (terms != NULL && PyTuple_Check(terms) && PyTuple_Size(terms) == 2)
        failed = add_to_grad(a, PyTuple_GetItem(terms, 0)) < 0 || add_to_grad(b, PyTuple_GetItem(terms, 1)) < 0;
    Py_XDECREF(terms);
    return failed ? -1 : 0;
}

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
    PyObject *object = NULL;
    int hard = any_object(v) | any_object(a) | (b ? any_object(b) : 0);
    /* The product of NumPy's bool and a number is a number of NumPy. */
    hard |= v->op == OP_RELU && v->flags & IS_NUMPY << DATA && !(v->flags & IS_NUMPY << GRAD);
    if (constant != NULL) {
        /* It is an exact int or float, so reading it runs no code. */
        if (to_number(constant, &k, &object, 0) < 0)
            return -1;
        hard |= object != NULL;
        Py_XDECREF(object);
    }
    if (!hard) {
        contributions(v->op, number_of(a, DATA), b ? number_of(b, DATA) : none, k, number_of(v, DATA), number_of(v, GRAD), &to_a, &to_b, &hard);
        if (v->flags & FLOAT_TERMS)
            to_a.is_int = to_b.is_int = 0;
        to_a = number_add(number_of(a, GRAD), to_a, &hard);
        if (b != NULL)
            to_b = number_add(a == b ? to_a : number_of(b, GRAD), to_b, &hard);
    }
    if (hard) {
        Py_INCREF(a);
        Py_XINCREF(b);
        int failed = contribute_by_python(v, a, b);
        Py_DECREF(a);
        Py_XDECREF(b);
        return failed;
    }
    put_number(a, GRAD, to_a);
    if (b != NULL)
        put_number(b, GRAD, to_b);
    return 0;
}

/* The same, where a subclass may define `_contribute` for operations of its own. */
static int contribute(Value *v) {
    static PyObject *name;
    if (v->op != CUSTOM || !(v->flags & OF_SUBCLASS))
        return contribute_by_op(v);
    if (name == NULL)
        name = PyUnicode_InternFromString("_contribute");
    PyObject *none = name ? PyObject_CallMethodObjArgs((PyObject *)v, name, NULL) : NULL;
    Py_XDECREF(none);
    return none == NULL ? -1 : 0;
}

/* --- Walks ------------------------------------------------------------------------------------------------------- */

/* Values in an array that grows. */
typedef struct {
    Value **values;
    Py_ssize_t length, capacity;
} Values;

/* The array with room for one more item; NULL, and the old array stays, if memory runs out. */
static void *with_room(void *items, Py_ssize_t length, Py_ssize_t *capacity, size_t bytes) {
    if (length < *capacity)
        return items;
    const Py_ssize_t larger = *capacity ? 2 * *capacity : 256;
    items = PyMem_Realloc(items, (size_t)larger * bytes);
    if (items != NULL)
        *capacity = larger;
    return items;
}

static int push(Values *list, Value *v) {
    Value **values = with_room(list->values, list->length, &list->capacity, sizeof *values);
    if (values == NULL)
        return -1;
    list->values = values;
    list->values[list->length++] = v;
    return 0;
}

static void drop_references(Values *list) {
    for (Py_ssize_t i = 0; i < list->length; i++)
        Py_DECREF(list->values[i]);
    PyMem_Free(list->values);
}

/* A Value's operands, one after the other; NULL after the last. */
static Value *operand_at(const Value *v, Py_ssize_t index) {
    if (v->op != CUSTOM)
        return index == 0 ? v->left : index == 1 ? v->right : NULL;
    PyObject *children = v->extra[CHILDREN];
    return index < PyTuple_Size(children) ? (Value *)PyTuple_GetItem(children, index) : NULL;
}

/* A walk over the Values below a root, operands first, left before right. It visits each Value once, because its user
   marks what it returns with the walk's number. */
typedef struct {
    Value *v;
    Py_ssize_t next; /* operand to visit */
} Place;

typedef struct {
    uint64_t number;
    Place *places; /* from the root to the Value that is visited */
    Py_ssize_t length, capacity;
    int failed;   /* memory ran out, or there is a cycle */
    Value *cycle; /* a Value that is among its own operands */
} Walk;

static void enter(Walk *walk, Value *v) {
    Place *places = with_room(walk->places, walk->length, &walk->capacity, sizeof *places);
    walk->failed |= places == NULL;
    if (walk->failed)
        return;
    walk->places = places;
    walk->places[walk->length++] = (Place){v, 0};
    v->flags |= ON_PATH;
}

/* Begin at a root. A second root continues the walk. */
static void begin(Walk *walk, Value *root) {
    if (root->mark != walk->number)
        enter(walk, root);
}

/* The next Value, a borrowed reference; NULL at the end, or if the walk failed. */
static Value *next_of(Walk *walk) {
    while (walk->length && !walk->failed) {
        Place *place = &walk->places[walk->length - 1];
        Value *operand = operand_at(place->v, place->next++);
        if (operand == NULL) {
            walk->length--;
            place->v->flags &= (uint16_t)~ON_PATH;
            return place->v;
        }
        if (operand->flags & ON_PATH) {
            walk->failed = 1;
            walk->cycle = operand;
        } else if (operand->mark != walk->number) {
            enter(walk, operand);
        }
    }
    return NULL;
}

/* End a walk, wherever it is. Raises CyclicGraph or MemoryError if it failed. */
static int end(Walk *walk) {
    for (Py_ssize_t i = 0; i < walk->length; i++)
        walk->places[i].v->flags &= (uint16_t)~ON_PATH;
    PyMem_Free(walk->places);
    if (!walk->failed)
        return 0;
    if (walk->cycle == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    PyObject *error = PyObject_CallFunctionObjArgs(PyTuple_GetItem(helpers, CYCLIC_GRAPH), walk->cycle, NULL);
    if (error != NULL)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return -1;
}

/* The Values below the root and the root, operands first, with new references, which keep them alive while Python code
   runs. Raises CyclicGraph or MemoryError. */
static int order_of(Value *root, Values *order) {
    Walk walk = {++walks, NULL, 0, 0, 0, NULL};
    Value *v;
    *order = (Values){NULL, 0, 0};
    begin(&walk, root);
    while ((v = next_of(&walk)) != NULL) {
        v->mark = walk.number;
        walk.failed |= push(order, v) < 0;
    }
    if (end(&walk) < 0) {
        PyMem_Free(order->values);
        return -1;
    }
    for (Py_ssize_t i = 0; i < order->length; i++)
        Py_INCREF(order->values[i]);
    return 0;
}

PyDoc_STRVAR(topo_doc, "topo()\n--\n\nThis Value and all Values below it, operands first, left before right.");

static PyObject *value_topo(Value *self, PyObject *unused) {
    Values order;
    if (order_of(self, &order) < 0)
        return NULL;
    PyObject *list = PyList_New(order.length);
    for (Py_ssize_t i = 0; list != NULL && i < order.length; i++)
        PyList_SetItem(list, i, new_reference((PyObject *)order.values[i]));
    drop_references(&order);
    return list;
}

PyDoc_STRVAR(backward_doc, "backward()\n--\n\nAdd the derivatives of this Value to the gradients of all below it.");

static PyObject *value_backward(Value *self, PyObject *unused) {
    Values order;
    int failed = 0;
    if (order_of(self, &order) < 0)
        return NULL;
    put_number(self, GRAD, self->flags & FLOAT_ONE ? real(1.0) : whole(1.0));
    for (Py_ssize_t i = order.length - 1; i >= 0 && !failed; i--)
        failed = contribute(order.values[i]) < 0;
    drop_references(&order);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(contribute_doc, "_contribute()\n--\n\nAdd this Value's contributions to its operands' gradients.");

static PyObject *value_contribute(Value *self, PyObject *unused) {
    if (contribute_by_op(self) < 0)
        return NULL;
    Py_RETURN_NONE;
}
