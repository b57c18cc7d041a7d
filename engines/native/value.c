/* Value as a CPython extension type: micrograd's API over the op table.

   The operations are data: `engines/native/ops_in_c.py` writes `forward` and `contributions` from the table into the
   text before this file. This file knows Python objects, graphs and memory.

   Memory. A Value is 72 bytes. It is allocated from a free list and is not tracked by the garbage collector, because
   its operands exist before it, so that no cycle can form. What could form one is tracked: objects of subclasses,
   Values with a backward function of the program's own, and the results computed from either.

   Graphs may be a million Values deep, so nothing here recurses. A walk marks each Value with the walk's number, which
   needs no set and no clean-up. While it walks, it calls nothing that could run Python code. */

#include <stddef.h>
#include <string.h>

#define FREE_LIST_LENGTH (1 << 17) /* holds the graph of a step of mnist, which has 120,137 Values */

enum {
    DATA_IS_INT = 1,     /* `data` is an int that the double holds exactly */
    GRAD_IS_INT = 2,
    DATA_IS_OBJECT = 4,  /* `extra->data` is the data: an int that a double can't hold, or a complex number */
    GRAD_IS_OBJECT = 8,
    TRACKED = 16,        /* by the garbage collector */
    IS_OPERAND = 32,     /* of another Value, so that a change of its own operands could form a cycle */
    IS_PARAMETER = 64,   /* during `_record`: a named leaf is a parameter, not an input */
    HAS_ROW = 128,       /* `row` was set by Python */
};

enum { LEAF = 0, CUSTOM = 255 }; /* `op`: otherwise 1 + the position in the op table */

/* What few Values have. Each may be NULL. */
typedef struct {
    PyObject *label, *name, *constant, *closure, *children, *data, *grad;
} Extra;

typedef struct Value {
    PyObject_HEAD
    double data, grad;
    struct Value *left, *right; /* operands; a CUSTOM Value's are in `extra->children` */
    Extra *extra;
    uint64_t mark;              /* the last walk that reached it; the next one in a list of dead Values */
    int32_t row;                /* in the tape, while it is recorded */
    uint8_t op, flags;
} Value;

static PyTypeObject *value_type;
static PyObject *result_class; /* a subclass that operators create instead of Value; NULL if there is none */
static PyObject *helpers[HELPERS];
static PyObject *op_names[OPS + 1];
static Value *free_list, *dead;
static Py_ssize_t free_length;
static int is_draining;
static uint64_t walks;

#define IS_VALUE(object) PyObject_TypeCheck(object, value_type)

/* --- Memory ------------------------------------------------------------------------------------------------------ */

static Value *allocate(void) {
    Value *v = free_list;
    if (v != NULL) {
        free_list = v->left;
        free_length--;
        PyObject_Init((PyObject *)v, value_type);
    } else {
        v = PyObject_GC_New(Value, value_type);
        if (v == NULL)
            return NULL;
    }
    memset((char *)v + sizeof(PyObject), 0, sizeof(Value) - sizeof(PyObject));
    v->flags = DATA_IS_INT | GRAD_IS_INT;
    return v;
}

static void track(Value *v) {
    if (!(v->flags & TRACKED)) {
        v->flags |= TRACKED;
        PyObject_GC_Track(v);
    }
}

static Extra *extra_of(Value *v) {
    if (v->extra == NULL) {
        v->extra = PyMem_Calloc(1, sizeof(Extra));
        if (v->extra == NULL)
            PyErr_NoMemory();
    }
    return v->extra;
}

static void drop_extra(Extra *extra) {
    if (extra != NULL) {
        Py_XDECREF(extra->label);
        Py_XDECREF(extra->name);
        Py_XDECREF(extra->constant);
        Py_XDECREF(extra->closure);
        Py_XDECREF(extra->children);
        Py_XDECREF(extra->data);
        Py_XDECREF(extra->grad);
        PyMem_Free(extra);
    }
}

/* Make a Value a leaf. */
static int value_clear(PyObject *self) {
    Value *v = (Value *)self, *left = v->left, *right = v->right;
    Extra *extra = v->extra;
    v->left = v->right = NULL;
    v->extra = NULL;
    v->op = LEAF;
    v->flags &= ~(DATA_IS_OBJECT | GRAD_IS_OBJECT);
    Py_XDECREF(left);
    Py_XDECREF(right);
    drop_extra(extra);
    return 0;
}

static int value_traverse(PyObject *self, visitproc visit, void *arg) {
    Value *v = (Value *)self;
    Py_VISIT(v->left);
    Py_VISIT(v->right);
    if (v->extra != NULL) {
        Py_VISIT(v->extra->closure);
        Py_VISIT(v->extra->children);
    }
#if PY_VERSION_HEX >= 0x03090000
    Py_VISIT(Py_TYPE(self));
#endif
    return 0;
}

/* The last reference to a loss frees its graph. Each Value waits in a list until the one before it is freed: the
   operands of a dead Value join the list instead of freeing their own operands in a deeper call. */
static void value_dealloc(PyObject *self) {
    Value *v = (Value *)self;
    PyObject_GC_UnTrack(self);
    v->mark = (uint64_t)(uintptr_t)dead;
    dead = v;
    if (is_draining)
        return;
    is_draining = 1;
    while ((v = dead) != NULL) {
        dead = (Value *)(uintptr_t)v->mark;
        PyTypeObject *type = Py_TYPE(v);
        value_clear((PyObject *)v);
        if (type == value_type && free_length < FREE_LIST_LENGTH) {
            v->left = free_list;
            free_list = v;
            free_length++;
        } else {
            PyObject_GC_Del(v);
        }
        Py_DECREF(type);
    }
    is_draining = 0;
}

/* --- Numbers ----------------------------------------------------------------------------------------------------- */

/* Convert a Python number. An int that a double can't hold and a complex number become `*object`, a new reference.
   Returns -1 with TypeError for anything else. */
static int to_number(PyObject *given, Number *number, PyObject **object) {
    *object = NULL;
    *number = real(0.0);
    if (PyFloat_CheckExact(given)) {
        number->d = PyFloat_AsDouble(given);
        return 0;
    }
    if (PyLong_Check(given)) {
        int overflow;
        long long small = PyLong_AsLongLongAndOverflow(given, &overflow);
        if (!overflow && -(1LL << 53) <= small && small <= 1LL << 53) {
            *number = whole((double)small);
            return 0;
        }
        *object = PyNumber_Long(given);
        return *object == NULL ? -1 : 0;
    }
    if (PyComplex_CheckExact(given)) {
        Py_INCREF(given);
        *object = given;
        return 0;
    }
    number->d = PyFloat_AsDouble(given);
    if (number->d == -1.0 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            PyErr_Format(
                PyExc_TypeError,
                "a Value holds a number, not %R\n  Convert it first, or use an engine written in Python, such as "
                "`hoisted`.",
                given);
        }
        return -1;
    }
    return 0;
}

static PyObject *from_number(Number number) {
    return number.is_int ? PyLong_FromLongLong((long long)number.d) : PyFloat_FromDouble(number.d);
}

static inline Number data_of(const Value *v) { return (Number){v->data, (v->flags & DATA_IS_INT) != 0}; }

static inline Number grad_of(const Value *v) { return (Number){v->grad, (v->flags & GRAD_IS_INT) != 0}; }

static void put_data(Value *v, Number number) {
    v->data = number.d;
    v->flags = (uint8_t)((v->flags & ~(DATA_IS_INT | DATA_IS_OBJECT)) | (number.is_int ? DATA_IS_INT : 0));
}

static inline void put_grad(Value *v, Number number) {
    v->grad = number.d;
    v->flags = (uint8_t)((v->flags & ~(GRAD_IS_INT | GRAD_IS_OBJECT)) | (number.is_int ? GRAD_IS_INT : 0));
}

static PyObject *get_data(Value *v, void *unused) {
    (void)unused;
    if (v->flags & DATA_IS_OBJECT) {
        Py_INCREF(v->extra->data);
        return v->extra->data;
    }
    return from_number(data_of(v));
}

static PyObject *get_grad(Value *v, void *unused) {
    (void)unused;
    if (v->flags & GRAD_IS_OBJECT) {
        Py_INCREF(v->extra->grad);
        return v->extra->grad;
    }
    return from_number(grad_of(v));
}

static int refuse_deletion(const char *attribute) {
    PyErr_Format(PyExc_AttributeError, "a Value's %s can't be deleted\n  Assign a new one instead.", attribute);
    return -1;
}

static int set_data(Value *v, PyObject *given, void *unused) {
    (void)unused;
    if (given == NULL)
        return refuse_deletion("data");
    Number number;
    PyObject *object, *old;
    if (to_number(given, &number, &object) < 0)
        return -1;
    if (object == NULL) {
        put_data(v, number);
        return 0;
    }
    if (extra_of(v) == NULL) {
        Py_DECREF(object);
        return -1;
    }
    old = v->extra->data;
    v->extra->data = object;
    put_data(v, real(NAN));
    v->flags |= DATA_IS_OBJECT;
    Py_XDECREF(old);
    return 0;
}

static int set_grad(Value *v, PyObject *given, void *unused) {
    (void)unused;
    if (given == NULL)
        return refuse_deletion("grad");
    Number number;
    PyObject *object, *old;
    if (to_number(given, &number, &object) < 0)
        return -1;
    if (object == NULL) {
        put_grad(v, number);
        return 0;
    }
    if (extra_of(v) == NULL) {
        Py_DECREF(object);
        return -1;
    }
    old = v->extra->grad;
    v->extra->grad = object;
    put_grad(v, real(NAN));
    v->flags |= GRAD_IS_OBJECT;
    Py_XDECREF(old);
    return 0;
}

/* --- Operations -------------------------------------------------------------------------------------------------- */

/* A leaf, of the class that operators create. */
static Value *leaf(PyObject *data) {
    if (result_class != NULL) {
        PyObject *made = PyObject_CallFunctionObjArgs(result_class, data, NULL);
        if (made != NULL && !IS_VALUE(made)) {
            PyErr_Format(PyExc_TypeError, "%R created %R, which is not a Value", result_class, made);
            Py_DECREF(made);
            return NULL;
        }
        return (Value *)made;
    }
    Value *v = allocate();
    if (v != NULL && set_data(v, data, NULL) < 0) {
        Py_DECREF(v);
        return NULL;
    }
    return v;
}

/* Give a Value its operands, which it takes a reference to. */
static void connect(Value *v, int op, Value *a, Value *b) {
    v->op = (uint8_t)op;
    Py_INCREF(a);
    v->left = a;
    a->flags |= IS_OPERAND;
    uint8_t tracked = a->flags;
    if (b != NULL) {
        Py_INCREF(b);
        v->right = b;
        b->flags |= IS_OPERAND;
        tracked |= b->flags;
    }
    if (tracked & TRACKED)
        track(v);
}

static int set_constant(Value *v, PyObject *constant) {
    if (constant == NULL)
        return 0;
    if (extra_of(v) == NULL)
        return -1;
    Py_INCREF(constant);
    PyObject *old = v->extra->constant;
    v->extra->constant = constant;
    Py_XDECREF(old);
    return 0;
}

/* The result of an operation, of the class that operators create. */
static PyObject *result_of_class(PyObject *data, int op, Value *a, Value *b, PyObject *constant) {
    PyObject *made = NULL, *children = b ? PyTuple_Pack(2, a, b) : PyTuple_Pack(1, a);
    if (children != NULL)
        made = PyObject_CallFunctionObjArgs(result_class, data, children, op_names[op], NULL);
    Py_XDECREF(children);
    if (made != NULL && constant != NULL && IS_VALUE(made)) {
        Value *v = (Value *)made;
        if (set_constant(v, constant) < 0) {
            Py_DECREF(made);
            return NULL;
        }
        /* The constructor takes no constant, so that it has stored the operand as one of an unknown operation. */
        if (v->op == CUSTOM && v->left == NULL && v->extra->children != NULL) {
            PyObject *old = v->extra->children;
            v->extra->children = NULL;
            connect(v, op, a, b);
            Py_DECREF(old);
        }
    }
    return made;
}

static PyObject *result(Number data, int op, Value *a, Value *b, PyObject *constant) {
    if (result_class != NULL) {
        PyObject *object = from_number(data);
        PyObject *made = object ? result_of_class(object, op, a, b, constant) : NULL;
        Py_XDECREF(object);
        return made;
    }
    Value *v = allocate();
    if (v == NULL || set_constant(v, constant) < 0) {
        Py_XDECREF(v);
        return NULL;
    }
    put_data(v, data);
    connect(v, op, a, b);
    return (PyObject *)v;
}

/* The same, computed by the op's function in Python, which raises the exceptions of the interpreted engines. */
static PyObject *result_by_python(int op, Value *a, Value *b, PyObject *other, PyObject *constant) {
    PyObject *made = NULL, *left = get_data(a, NULL), *right = NULL, *data = NULL;
    Value *leaf_of_other = NULL;
    if (b != NULL)
        right = get_data(b, NULL);
    else if (other != NULL)
        Py_INCREF(right = other);
    else
        Py_INCREF(right = Py_None);
    if (left != NULL && right != NULL)
        data = PyObject_CallFunctionObjArgs(
            PyTuple_GetItem(helpers[FORWARD], op - 1), left, right, constant ? constant : Py_None, NULL);
    if (data != NULL && b == NULL && other != NULL)
        b = leaf_of_other = leaf(other);
    if (data != NULL && (b != NULL || other == NULL)) {
        if (result_class != NULL) {
            made = result_of_class(data, op, a, b, constant);
        } else {
            made = result(real(0.0), op, a, b, constant);
            if (made != NULL && set_data((Value *)made, data, NULL) < 0)
                Py_CLEAR(made);
        }
    }
    Py_XDECREF(left);
    Py_XDECREF(right);
    Py_XDECREF(data);
    Py_XDECREF(leaf_of_other);
    return made;
}

static PyObject *unary(int op, Value *a, PyObject *constant, Number k) {
    int hard = a->flags & DATA_IS_OBJECT;
    Number none = real(0.0), data = none;
    if (!hard)
        data = forward(op, data_of(a), none, k, &hard);
    return hard ? result_by_python(op, a, NULL, NULL, constant) : result(data, op, a, NULL, constant);
}

static PyObject *binary_of_values(int op, Value *a, Value *b) {
    int hard = (a->flags | b->flags) & DATA_IS_OBJECT;
    Number none = real(0.0), data = none;
    if (!hard)
        data = forward(op, data_of(a), data_of(b), none, &hard);
    return hard ? result_by_python(op, a, b, NULL, NULL) : result(data, op, a, b, NULL);
}

/* a: a Value. other: a Value, or a number, which becomes a leaf. */
static PyObject *binary(int op, Value *a, PyObject *other) {
    if (IS_VALUE(other))
        return binary_of_values(op, a, (Value *)other);
    if (!PyFloat_Check(other) && !PyLong_Check(other))
        return result_by_python(op, a, NULL, other, NULL);
    Value *b = leaf(other);
    if (b == NULL)
        return NULL;
    PyObject *made = binary_of_values(op, a, b);
    Py_DECREF(b);
    return made;
}

/* A number on the left is the second operand, as in micrograd. */
static PyObject *commutative(int op, PyObject *a, PyObject *b) {
    return IS_VALUE(a) ? binary(op, (Value *)a, b) : binary(op, (Value *)b, a);
}

static PyObject *value_add(PyObject *a, PyObject *b) { return commutative(OP_ADD, a, b); }

static PyObject *value_multiply(PyObject *a, PyObject *b) { return commutative(OP_MUL, a, b); }

static PyObject *value_negative(PyObject *a) {
    PyObject *made = NULL, *minus_one = PyLong_FromLong(-1);
    if (minus_one != NULL)
        made = PyNumber_Multiply(a, minus_one);
    Py_XDECREF(minus_one);
    return made;
}

/* x - y is x + (-y). */
static PyObject *value_subtract(PyObject *a, PyObject *b) {
    PyObject *made = NULL, *minus_b = PyNumber_Negative(b);
    if (minus_b != NULL)
        made = PyNumber_Add(a, minus_b);
    Py_XDECREF(minus_b);
    return made;
}

/* x / y is x * y**-1. */
static PyObject *value_divide(PyObject *a, PyObject *b) {
    PyObject *made = NULL, *inverse = NULL, *minus_one = PyLong_FromLong(-1);
    if (minus_one != NULL)
        inverse = PyNumber_Power(b, minus_one, Py_None);
    if (inverse != NULL)
        made = PyNumber_Multiply(a, inverse);
    Py_XDECREF(minus_one);
    Py_XDECREF(inverse);
    return made;
}

static PyObject *value_power(PyObject *base, PyObject *exponent, PyObject *modulus) {
    if (!IS_VALUE(base) || modulus != Py_None)
        Py_RETURN_NOTIMPLEMENTED;
    Number k = real(0.0);
    PyObject *object = NULL;
    int is_plain = PyFloat_CheckExact(exponent) || PyLong_CheckExact(exponent);
    if (is_plain && to_number(exponent, &k, &object) < 0)
        return NULL;
    if (!is_plain || object != NULL || !isfinite(k.d)) {
        Py_XDECREF(object);
        PyObject *none = PyObject_CallFunctionObjArgs(helpers[CHECK_EXPONENT], exponent, NULL);
        if (none == NULL)
            return NULL;
        Py_DECREF(none);
        return result_by_python(OP_POW, (Value *)base, NULL, NULL, exponent);
    }
    return unary(OP_POW, (Value *)base, exponent, k);
}

/* --- Gradients --------------------------------------------------------------------------------------------------- */

static int add_to_grad(Value *v, PyObject *contribution) {
    PyObject *grad = get_grad(v, NULL);
    PyObject *sum = grad ? PyNumber_Add(grad, contribution) : NULL;
    int failed = sum == NULL || set_grad(v, sum, NULL) < 0;
    Py_XDECREF(grad);
    Py_XDECREF(sum);
    return failed ? -1 : 0;
}

static int contribute_by_python(Value *v, Value *a, Value *b) {
    int failed = 1;
    PyObject *k = v->extra && v->extra->constant ? v->extra->constant : Py_None;
    PyObject *left = get_data(a, NULL), *right = NULL, *data = get_data(v, NULL), *grad = get_grad(v, NULL), *found = NULL;
    Py_INCREF(k);
    if (b != NULL)
        right = get_data(b, NULL);
    else
        Py_INCREF(right = Py_None);
    if (left != NULL && right != NULL && data != NULL && grad != NULL)
        found = PyObject_CallFunctionObjArgs(
            PyTuple_GetItem(helpers[CONTRIBUTE], v->op - 1), left, right, k, data, grad, NULL);
    if (found != NULL && b == NULL)
        failed = add_to_grad(a, found) < 0;
    else if (found != NULL && PyTuple_Check(found) && PyTuple_Size(found) == 2)
        failed = add_to_grad(a, PyTuple_GetItem(found, 0)) < 0 || add_to_grad(b, PyTuple_GetItem(found, 1)) < 0;
    Py_DECREF(k);
    Py_XDECREF(left);
    Py_XDECREF(right);
    Py_XDECREF(data);
    Py_XDECREF(grad);
    Py_XDECREF(found);
    return failed ? -1 : 0;
}

/* Add the Value's contribution to the gradient of its left operand, then to that of its right one. */
static int contribute(Value *v) {
    if (v->extra != NULL && v->extra->closure != NULL) {
        PyObject *closure = v->extra->closure;
        Py_INCREF(closure);
        PyObject *none = PyObject_CallFunctionObjArgs(closure, NULL);
        Py_DECREF(closure);
        Py_XDECREF(none);
        return none == NULL ? -1 : 0;
    }
    if (v->op == LEAF || v->op == CUSTOM)
        return 0;
    Value *a = v->left, *b = v->right;
    Number none = real(0.0), k = none, to_a, to_b = none;
    PyObject *object = NULL;
    int hard = (v->flags & (DATA_IS_OBJECT | GRAD_IS_OBJECT)) | (a->flags & (DATA_IS_OBJECT | GRAD_IS_OBJECT));
    if (b != NULL)
        hard |= b->flags & (DATA_IS_OBJECT | GRAD_IS_OBJECT);
    if (v->extra != NULL && v->extra->constant != NULL) {
        if (to_number(v->extra->constant, &k, &object) < 0)
            return -1;
        hard |= object != NULL;
        Py_XDECREF(object);
    }
    if (!hard) {
        contributions(v->op, data_of(a), b ? data_of(b) : none, k, data_of(v), grad_of(v), &to_a, &to_b, &hard);
        to_a = number_add(grad_of(a), to_a, &hard);
        if (b != NULL)
            to_b = number_add(a == b ? to_a : grad_of(b), to_b, &hard);
    }
    if (hard) {
        Py_INCREF(a);
        Py_XINCREF(b);
        int failed = contribute_by_python(v, a, b);
        Py_DECREF(a);
        Py_XDECREF(b);
        return failed;
    }
    put_grad(a, to_a);
    if (b != NULL)
        put_grad(b, to_b);
    return 0;
}

/* --- Walks ------------------------------------------------------------------------------------------------------- */

/* Values in an array that grows. */
typedef struct {
    Value **values;
    Py_ssize_t length, capacity;
} Values;

static int push(Values *list, Value *v) {
    if (list->length == list->capacity) {
        Py_ssize_t capacity = list->capacity ? 2 * list->capacity : 256;
        Value **values = PyMem_Realloc(list->values, (size_t)capacity * sizeof(Value *));
        if (values == NULL)
            return -1;
        list->values = values;
        list->capacity = capacity;
    }
    list->values[list->length++] = v;
    return 0;
}

static void drop_references(Values *list) {
    for (Py_ssize_t i = 0; i < list->length; i++)
        Py_DECREF(list->values[i]);
    PyMem_Free(list->values);
}

/* The first operand that the walk has not reached. */
static Value *next_operand(const Value *v, uint64_t walk) {
    if (v->left != NULL && v->left->mark != walk)
        return v->left;
    if (v->right != NULL && v->right->mark != walk)
        return v->right;
    if (v->op == CUSTOM && v->extra != NULL && v->extra->children != NULL) {
        Py_ssize_t count = PyTuple_Size(v->extra->children);
        for (Py_ssize_t i = 0; i < count; i++) {
            Value *child = (Value *)PyTuple_GetItem(v->extra->children, i);
            if (child->mark != walk)
                return child;
        }
    }
    return NULL;
}

/* Append the Values below the root and the root itself, operands first, left before right, each once per walk. The
   references are borrowed. Returns -1 if memory runs out. */
static int walk_below(Value *root, uint64_t walk, Values *order) {
    Values stack = {NULL, 0, 0};
    int failed = 0;
    Value *v = root;
    while (v != NULL && !failed) {
        Value *operand = next_operand(v, walk);
        if (operand != NULL) {
            failed = push(&stack, v) < 0;
            v = operand;
        } else {
            v->mark = walk;
            failed = push(order, v) < 0;
            v = stack.length ? stack.values[--stack.length] : NULL;
        }
    }
    PyMem_Free(stack.values);
    return failed ? -1 : 0;
}

/* The same with new references, which keep the Values alive while Python code runs. Raises MemoryError. */
static int order_of(Value *root, Values *order) {
    *order = (Values){NULL, 0, 0};
    if (walk_below(root, ++walks, order) < 0) {
        PyMem_Free(order->values);
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < order->length; i++)
        Py_INCREF(order->values[i]);
    return 0;
}

PyDoc_STRVAR(topo_doc, "topo()\n--\n\nThis Value and all Values below it, operands first, left before right.");

static PyObject *value_topo(Value *self, PyObject *unused) {
    (void)unused;
    Values order;
    if (order_of(self, &order) < 0)
        return NULL;
    PyObject *list = PyList_New(order.length);
    for (Py_ssize_t i = 0; list != NULL && i < order.length; i++) {
        Py_INCREF(order.values[i]);
        PyList_SetItem(list, i, (PyObject *)order.values[i]);
    }
    drop_references(&order);
    return list;
}

PyDoc_STRVAR(backward_doc, "backward()\n--\n\nAdd the derivatives of this Value to the gradients of all below it.");

static PyObject *value_backward(Value *self, PyObject *unused) {
    (void)unused;
    Values order;
    int failed = 0;
    if (order_of(self, &order) < 0)
        return NULL;
    put_grad(self, whole(1.0));
    for (Py_ssize_t i = order.length - 1; i >= 0 && !failed; i--)
        failed = contribute(order.values[i]) < 0;
    drop_references(&order);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(contribute_doc, "_contribute()\n--\n\nAdd this Value's contributions to its operands' gradients.");

static PyObject *value_contribute(Value *self, PyObject *unused) {
    (void)unused;
    if (contribute(self) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* --- Attributes -------------------------------------------------------------------------------------------------- */

static PyObject *get_prev(Value *v, void *unused) {
    (void)unused;
    if (v->right != NULL)
        return PyTuple_Pack(2, v->left, v->right);
    if (v->left != NULL)
        return PyTuple_Pack(1, v->left);
    if (v->extra != NULL && v->extra->children != NULL) {
        Py_INCREF(v->extra->children);
        return v->extra->children;
    }
    return PyTuple_New(0);
}

/* The position of an op in the table plus 1; CUSTOM if the table has none of that name for so many operands. */
static int op_of(PyObject *name, Py_ssize_t operands) {
    for (int op = 1; op <= OPS; op++)
        if (op != OP_POW && ARITY[op] == operands && PyUnicode_Compare(name, op_names[op]) == 0)
            return op;
    return CUSTOM;
}

/* Replace a Value's operation. op: 0 if there are no children. children: a tuple of Values. name: text. */
static int set_operation(Value *v, int op, PyObject *children, PyObject *name) {
    Py_ssize_t count = PyTuple_Size(children);
    int may_close_a_cycle = v->flags & IS_OPERAND;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *child = PyTuple_GetItem(children, i);
        if (!IS_VALUE(child)) {
            PyErr_Format(
                PyExc_TypeError, "_children[%zd] is %R, not a Value of this class\n  Wrap it: Value(...).", i, child);
            return -1;
        }
        may_close_a_cycle |= child == (PyObject *)v;
    }
    if (may_close_a_cycle) {
        Values below = {NULL, 0, 0};
        uint64_t walk = ++walks;
        int failed = 0;
        for (Py_ssize_t i = 0; i < count && !failed; i++) {
            Value *child = (Value *)PyTuple_GetItem(children, i);
            failed = child->mark != walk && walk_below(child, walk, &below) < 0;
        }
        PyMem_Free(below.values);
        if (failed) {
            PyErr_NoMemory();
            return -1;
        }
        if (v->mark == walk) {
            PyObject *cycle = PyObject_CallFunctionObjArgs(helpers[CYCLIC_GRAPH], (PyObject *)v, NULL);
            if (cycle != NULL)
                PyErr_SetObject(helpers[CYCLIC_GRAPH], cycle);
            Py_XDECREF(cycle);
            return -1;
        }
    }
    PyObject *kept_name = NULL, *kept_children = NULL;
    if (op == CUSTOM || (op == LEAF && PyUnicode_GetLength(name) > 0))
        Py_INCREF(kept_name = name);
    if (op == CUSTOM)
        Py_INCREF(kept_children = children);
    if ((kept_name != NULL || v->extra != NULL) && extra_of(v) == NULL) {
        Py_XDECREF(kept_name);
        Py_XDECREF(kept_children);
        return -1;
    }
    PyObject *old[5] = {(PyObject *)v->left, (PyObject *)v->right, NULL, NULL, NULL};
    v->left = v->right = NULL;
    v->op = (uint8_t)op;
    if (v->extra != NULL) {
        old[2] = v->extra->name;
        old[3] = v->extra->children;
        v->extra->name = kept_name;
        v->extra->children = kept_children;
        if (op != OP_POW) {
            old[4] = v->extra->constant;
            v->extra->constant = NULL;
        }
    }
    if (op == CUSTOM) {
        for (Py_ssize_t i = 0; i < count; i++) {
            Value *child = (Value *)PyTuple_GetItem(children, i);
            child->flags |= IS_OPERAND;
            if (child->flags & TRACKED)
                track(v);
        }
    } else if (op != LEAF) {
        connect(v, op, (Value *)PyTuple_GetItem(children, 0), count == 2 ? (Value *)PyTuple_GetItem(children, 1) : NULL);
    }
    for (int i = 0; i < 5; i++)
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

static int put_text(PyObject **place, PyObject *given, const char *attribute) {
    if (!PyUnicode_Check(given)) {
        PyErr_Format(PyExc_TypeError, "a Value's %s is text, not %R", attribute, given);
        return -1;
    }
    PyObject *old = *place;
    Py_INCREF(given);
    *place = given;
    Py_XDECREF(old);
    return 0;
}

static int set_op(Value *v, PyObject *given, void *unused) {
    (void)unused;
    if (given == NULL)
        return refuse_deletion("_op");
    if (v->op != LEAF) {
        PyErr_Format(
            PyExc_AttributeError,
            "_op of %R says how it is computed, so it can't be changed\n  Use `label` for a name.", v);
        return -1;
    }
    return extra_of(v) == NULL ? -1 : put_text(&v->extra->name, given, "_op");
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
    return extra_of(v) == NULL ? -1 : put_text(&v->extra->label, given, "label");
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
    v->row = (int32_t)row;
    v->flags = (uint8_t)((v->flags & ~HAS_ROW) | (row == -1 ? 0 : HAS_ROW));
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

static PyObject *value_repr(PyObject *self) {
    PyObject *text = NULL, *data = PyObject_GetAttrString(self, "data"), *grad = PyObject_GetAttrString(self, "grad");
    if (data != NULL && grad != NULL)
        text = PyUnicode_FromFormat("Value(data=%S, grad=%S)", data, grad);
    Py_XDECREF(data);
    Py_XDECREF(grad);
    return text;
}

/* --- Construction and copies ------------------------------------------------------------------------------------- */

static PyObject *value_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    (void)arguments;
    (void)named;
    if (type == value_type)
        return (PyObject *)allocate();
    Value *v = (Value *)PyType_GenericAlloc(type, 0); /* zeroed and tracked */
    if (v != NULL)
        v->flags = DATA_IS_INT | GRAD_IS_INT | TRACKED;
    return (PyObject *)v;
}

static int value_init(PyObject *self, PyObject *arguments, PyObject *named) {
    static char *names[] = {"data", "_children", "_op", "label", NULL};
    Value *v = (Value *)self;
    PyObject *data, *given = NULL, *name = op_names[LEAF], *label = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "O|OUU:Value", names, &data, &given, &name, &label))
        return -1;
    if (set_data(v, data, NULL) < 0)
        return -1;
    put_grad(v, whole(0.0));
    if (given != NULL || v->op != LEAF || PyUnicode_GetLength(name) > 0) {
        PyObject *children = given ? PySequence_Tuple(given) : PyTuple_New(0);
        int failed = children == NULL;
        if (!failed) {
            Py_ssize_t count = PyTuple_Size(children);
            failed = set_operation(v, count ? op_of(name, count) : LEAF, children, name) < 0;
        }
        Py_XDECREF(children);
        if (failed)
            return -1;
    }
    return label != NULL && PyUnicode_GetLength(label) > 0 ? set_label(v, label, NULL) : 0;
}

/* Copy everything except operands to a new Value of exactly this type. */
static Value *copy_without_operands(Value *v) {
    Value *copy = allocate();
    if (copy == NULL)
        return NULL;
    copy->data = v->data;
    copy->grad = v->grad;
    copy->flags = (uint8_t)(v->flags & (DATA_IS_INT | GRAD_IS_INT));
    if (v->extra != NULL) {
        if (extra_of(copy) == NULL) {
            Py_DECREF(copy);
            return NULL;
        }
        *copy->extra = *v->extra;
        copy->extra->children = NULL;
        copy->flags |= v->flags & (DATA_IS_OBJECT | GRAD_IS_OBJECT);
        Py_XINCREF(copy->extra->label);
        Py_XINCREF(copy->extra->name);
        Py_XINCREF(copy->extra->constant);
        Py_XINCREF(copy->extra->closure);
        Py_XINCREF(copy->extra->data);
        Py_XINCREF(copy->extra->grad);
        if (copy->extra->closure != NULL)
            track(copy);
    }
    return copy;
}

static void copy_operands(Value *copy, Value *left, Value *right, PyObject *children, int op) {
    if (op == CUSTOM) {
        copy->op = CUSTOM;
        Py_XINCREF(children);
        copy->extra->children = children;
        for (Py_ssize_t i = 0; children != NULL && i < PyTuple_Size(children); i++) {
            Value *child = (Value *)PyTuple_GetItem(children, i);
            child->flags |= IS_OPERAND;
            if (child->flags & TRACKED)
                track(copy);
        }
    } else if (op != LEAF) {
        connect(copy, op, left, right);
    }
}

static int refuse_subclass(Value *v) {
    if (Py_TYPE(v) == value_type)
        return 0;
    PyErr_Format(PyExc_TypeError, "%R can't copy its own attributes\n  Define __copy__ and __deepcopy__ in it.", Py_TYPE(v));
    return -1;
}

PyDoc_STRVAR(copy_doc, "__copy__()\n--\n\nA Value with the same numbers and the same operands.");

static PyObject *value_copy(Value *self, PyObject *unused) {
    (void)unused;
    if (refuse_subclass(self) < 0)
        return NULL;
    Value *copy = copy_without_operands(self);
    if (copy != NULL)
        copy_operands(copy, self->left, self->right, self->extra ? self->extra->children : NULL, self->op);
    return (PyObject *)copy;
}

/* The copy of an operand, a borrowed reference. Raises TypeError if the memo has none. */
static PyObject *copy_of(Value *operand, PyObject *memo) {
    PyObject *copy = NULL, *key = PyLong_FromVoidPtr(operand);
    if (key != NULL)
        copy = PyDict_GetItemWithError(memo, key);
    Py_XDECREF(key);
    if (copy != NULL && IS_VALUE(copy))
        return copy;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "the memo of deepcopy holds something else in place of a Value");
    return NULL;
}

static int deep_copy_one(Value *v, PyObject *memo) {
    PyObject *key = PyLong_FromVoidPtr(v), *children = NULL, *left = NULL, *right = NULL;
    Value *copy = NULL;
    int failed = 1;
    if (key == NULL)
        return -1;
    PyObject *known = PyDict_GetItemWithError(memo, key);
    if (known != NULL || PyErr_Occurred()) {
        Py_DECREF(key);
        return known == NULL ? -1 : 0;
    }
    if (refuse_subclass(v) < 0 || (copy = copy_without_operands(v)) == NULL)
        goto end;
    if (v->op == CUSTOM) {
        Py_ssize_t count = PyTuple_Size(v->extra->children);
        if ((children = PyTuple_New(count)) == NULL)
            goto end;
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *child = copy_of((Value *)PyTuple_GetItem(v->extra->children, i), memo);
            if (child == NULL)
                goto end;
            Py_INCREF(child);
            PyTuple_SetItem(children, i, child);
        }
    }
    if (v->left != NULL && (left = copy_of(v->left, memo)) == NULL)
        goto end;
    if (v->right != NULL && (right = copy_of(v->right, memo)) == NULL)
        goto end;
    copy_operands(copy, (Value *)left, (Value *)right, children, v->op);
    failed = PyDict_SetItem(memo, key, (PyObject *)copy) < 0;
end:
    Py_DECREF(key);
    Py_XDECREF(children);
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
    for (Py_ssize_t i = 0; i < order.length && !failed; i++)
        failed = deep_copy_one(order.values[i], memo) < 0;
    PyObject *copy = failed ? NULL : copy_of(self, memo);
    Py_XINCREF(copy);
    drop_references(&order);
    return copy;
}
