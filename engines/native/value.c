/* Value as a CPython extension type: micrograd's API over the op table.

   The operations are data: `engines/native/ops_in_c.py` writes `forward` and `contributions` from the table into the
   text before this file. This file knows Python objects, graphs and memory.

   Memory. A Value is 72 bytes. It is allocated from a free list and is not tracked by the garbage collector, because
   its operands exist before it, so that no cycle can form. What could form one is tracked: objects of subclasses,
   Values with a backward function of the program's own, and the results computed from either. One cycle is never
   freed: that of a function which refers to a result computed before the function was set.

   Any allocation of a Python object may run the collector, whose finalizers may edit any graph. So no operand is used
   after such a call without a reference to it.

   Graphs may be a million Values deep, so nothing here recurses. A walk marks each Value with the walk's number, which
   needs no set and no clean-up. While it walks, it calls nothing that could run Python code. */

#include <stddef.h>
#include <string.h>

#define FREE_LIST_LENGTH (1 << 17) /* holds the graph of a step of mnist, which has 120,137 Values */

enum { DATA, GRAD }; /* the two numbers of a Value */

enum {
    IS_INT = 1,        /* shifted by DATA or GRAD: the number is an int that the double holds exactly */
    IS_OBJECT = 4,     /* shifted likewise: the number is in `extra`; an int that a double can't hold, or complex */
    TRACKED = 16,      /* by the garbage collector */
    IS_OPERAND = 32,   /* of another Value, so that a change of its own operands could form a cycle */
    IS_PARAMETER = 64, /* during `_record`: a named leaf is a parameter, not an input */
    HAS_ROW = 128,     /* `row` was set by Python */
};

enum { LEAF = 0, CUSTOM = 255 }; /* `op`: otherwise 1 + the position in the op table */

/* Fields that most Values lack. Each may be NULL. */
typedef struct {
    PyObject *label, *name; /* exact str objects */
    PyObject *constant;     /* an exact int or float */
    PyObject *closure;      /* the program's own backward function */
    PyObject *children;     /* a CUSTOM Value's operands */
    PyObject *numbers[2];   /* where IS_OBJECT */
} Extra;

typedef struct Value {
    PyObject_HEAD
    double numbers[2];
    struct Value *left, *right; /* operands; a CUSTOM Value's are in `extra->children` */
    Extra *extra;
    uint64_t mark;              /* the last walk that reached it; while it is freed, the next one to free */
    int32_t row;                /* in the tape, while it is recorded */
    uint8_t op, flags;
} Value;

static PyTypeObject *value_type;
static PyObject *result_class; /* a subclass that operators create instead of Value; NULL if there is none */
static PyObject *helpers[HELPERS];
static PyObject *op_names[OPS + 1];
static Value *free_list;
static Py_ssize_t free_length;
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
    v->flags = IS_INT << DATA | IS_INT << GRAD;
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
        Py_XDECREF(extra->numbers[DATA]);
        Py_XDECREF(extra->numbers[GRAD]);
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
    v->flags &= (uint8_t)~(IS_OBJECT << DATA | IS_OBJECT << GRAD);
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

/* Drop a reference to an operand, or add the operand to a list if this is its last reference. */
static Value *release(Value *operand, Value *waiting) {
    if (operand == NULL)
        return waiting;
    if (Py_REFCNT(operand) > 1 || Py_TYPE(operand) != value_type) {
        Py_DECREF(operand);
        return waiting;
    }
    PyObject_GC_UnTrack(operand); /* so that nothing else can reach it */
    operand->mark = (uint64_t)(uintptr_t)waiting;
    return operand;
}

/* The last reference to a loss frees its graph. A dead Value's operands wait in a list, and each gives up its own
   operands before it is freed, so that no call is deeper than this one. Objects of subclasses are not in the list:
   CPython limits the depth of their deallocation. */
static void value_dealloc(PyObject *self) {
    Value *v = (Value *)self, *left = v->left, *right = v->right;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    v->left = v->right = NULL;
    value_clear(self);
    if (type == value_type && free_length < FREE_LIST_LENGTH) {
        v->left = free_list;
        free_list = v;
        free_length++;
    } else {
        PyObject_GC_Del(v);
    }
    Py_DECREF(type);
    Value *waiting = release(right, release(left, NULL));
    while ((v = waiting) != NULL) {
        waiting = (Value *)(uintptr_t)v->mark;
        left = v->left;
        right = v->right;
        v->left = v->right = NULL;
        waiting = release(right, release(left, waiting));
        Py_DECREF(v);
    }
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
        if (!overflow && -(1LL << 53) < small && small < 1LL << 53) {
            *number = whole((double)small);
            return 0;
        }
        /* int.__add__ itself, which gives an exact int even for a subclass with methods of its own */
        *object = PyObject_CallMethod((PyObject *)&PyLong_Type, "__add__", "Oi", given, 0);
        return *object == NULL ? -1 : 0;
    }
    if (PyComplex_CheckExact(given)) {
        Py_INCREF(given);
        *object = given;
        return 0;
    }
    if (PyIndex_Check(given)) {
        PyObject *index = PyNumber_Index(given);
        int failed = index == NULL || to_number(index, number, object) < 0;
        Py_XDECREF(index);
        return failed ? -1 : 0;
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

static inline Number number_of(const Value *v, int which) {
    return (Number){v->numbers[which], (v->flags & IS_INT << which) != 0};
}

static inline void put_number(Value *v, int which, Number number) {
    v->numbers[which] = number.d;
    v->flags = (uint8_t)((v->flags & ~((IS_INT | IS_OBJECT) << which)) | number.is_int << which);
}

static int any_object(const Value *v) { return v->flags & (IS_OBJECT << DATA | IS_OBJECT << GRAD); }

static PyObject *get_object(Value *v, int which) {
    if (v->flags & IS_OBJECT << which) {
        Py_INCREF(v->extra->numbers[which]);
        return v->extra->numbers[which];
    }
    return from_number(number_of(v, which));
}

static int put_object(Value *v, int which, PyObject *given) {
    Number number;
    PyObject *object, *old;
    if (to_number(given, &number, &object) < 0)
        return -1;
    if (object == NULL) {
        put_number(v, which, number);
        return 0;
    }
    if (extra_of(v) == NULL) {
        Py_DECREF(object);
        return -1;
    }
    old = v->extra->numbers[which];
    v->extra->numbers[which] = object;
    put_number(v, which, real(NAN));
    v->flags |= (uint8_t)(IS_OBJECT << which);
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
    if (v != NULL && put_object(v, DATA, data) < 0) {
        Py_DECREF(v);
        return NULL;
    }
    return v;
}

/* Give a Value the operands of an op in the table. It takes references to them. */
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

static int set_operation(Value *v, int op, PyObject *children, PyObject *name);

/* The result of an operation, of the class that operators create. Its constructor stores the operands as those of an
   operation of the program's own, because it takes no constant, and no op of the table. */
static PyObject *result_of_class(PyObject *data, int op, Value *a, Value *b, PyObject *constant) {
    PyObject *made = NULL, *children = b ? PyTuple_Pack(2, a, b) : PyTuple_Pack(1, a);
    if (children != NULL)
        made = PyObject_CallFunctionObjArgs(result_class, data, children, op_names[op], NULL);
    if (made != NULL && IS_VALUE(made) && ((Value *)made)->op == CUSTOM) {
        Value *v = (Value *)made;
        if (set_operation(v, op, children, op_names[op]) < 0 || set_constant(v, constant) < 0)
            Py_CLEAR(made);
    }
    Py_XDECREF(children);
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
    put_number(v, DATA, data);
    connect(v, op, a, b);
    return (PyObject *)v;
}

/* The same, computed by the op's function in Python, which raises the exceptions of the interpreted engines. */
static PyObject *result_by_python(int op, Value *a, Value *b, PyObject *other, PyObject *constant) {
    PyObject *made = NULL, *data = NULL, *left = get_object(a, DATA);
    PyObject *right = b ? get_object(b, DATA) : other ? other : Py_None;
    Value *leaf_of_other = NULL;
    if (b == NULL)
        Py_INCREF(right);
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
            if (made != NULL && put_object((Value *)made, DATA, data) < 0)
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
    int hard = a->flags & IS_OBJECT << DATA;
    Number none = real(0.0), data = none;
    if (!hard)
        data = forward(op, number_of(a, DATA), none, k, &hard);
    return hard ? result_by_python(op, a, NULL, NULL, constant) : result(data, op, a, NULL, constant);
}

static PyObject *binary_of_values(int op, Value *a, Value *b) {
    int hard = (a->flags | b->flags) & IS_OBJECT << DATA;
    Number none = real(0.0), data = none;
    if (!hard)
        data = forward(op, number_of(a, DATA), number_of(b, DATA), none, &hard);
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
    PyObject *made = NULL, *none = NULL, *constant = NULL;
    if (!PyFloat_CheckExact(exponent) || !isfinite(PyFloat_AsDouble(exponent))) {
        none = PyObject_CallFunctionObjArgs(helpers[CHECK_EXPONENT], exponent, NULL);
        if (none == NULL)
            return NULL;
        Py_DECREF(none);
    }
    /* Store exact numbers, which run no code of the program when they are used. */
    Number k;
    if (to_number(exponent, &k, &constant) < 0)
        return NULL;
    if (constant != NULL) {
        made = result_by_python(OP_POW, (Value *)base, NULL, NULL, constant);
    } else {
        constant = from_number(k);
        if (constant != NULL)
            made = unary(OP_POW, (Value *)base, constant, k);
    }
    Py_XDECREF(constant);
    return made;
}

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
    int failed = 1, op = v->op;
    PyObject *k = v->extra && v->extra->constant ? v->extra->constant : Py_None, *right = Py_None, *found = NULL;
    Py_INCREF(k);
    PyObject *left = get_object(a, DATA), *data = get_object(v, DATA), *grad = get_object(v, GRAD);
    if (b != NULL)
        right = get_object(b, DATA);
    else
        Py_INCREF(right);
    if (left != NULL && right != NULL && data != NULL && grad != NULL)
        found = PyObject_CallFunctionObjArgs(
            PyTuple_GetItem(helpers[CONTRIBUTE], op - 1), left, right, k, data, grad, NULL);
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
    Number none = real(0.0), k = none, to_a = none, to_b = none;
    PyObject *object = NULL;
    int hard = any_object(v) | any_object(a) | (b ? any_object(b) : 0);
    if (v->extra != NULL && v->extra->constant != NULL) {
        /* It is an exact int or float, so reading it runs no code. */
        if (to_number(v->extra->constant, &k, &object) < 0)
            return -1;
        hard |= object != NULL;
        Py_XDECREF(object);
    }
    if (!hard) {
        contributions(v->op, number_of(a, DATA), b ? number_of(b, DATA) : none, k, number_of(v, DATA), number_of(v, GRAD), &to_a, &to_b, &hard);
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

/* A Value's operands, one after the other; NULL after the last. */
static Value *operand_at(const Value *v, Py_ssize_t index) {
    if (v->op != CUSTOM)
        return index == 0 ? v->left : index == 1 ? v->right : NULL;
    PyObject *children = v->extra->children;
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
    int failed; /* memory ran out */
} Walk;

static int enter(Walk *walk, Value *v) {
    if (walk->length == walk->capacity) {
        Py_ssize_t capacity = walk->capacity ? 2 * walk->capacity : 64;
        Place *places = PyMem_Realloc(walk->places, (size_t)capacity * sizeof(Place));
        if (places == NULL) {
            walk->failed = 1;
            return -1;
        }
        walk->places = places;
        walk->capacity = capacity;
    }
    walk->places[walk->length++] = (Place){v, 0};
    return 0;
}

/* Begin at a root. A second root continues the walk. */
static void begin(Walk *walk, Value *root) {
    if (root->mark != walk->number)
        enter(walk, root);
}

/* The next Value, a borrowed reference; NULL at the end, or if memory ran out. */
static Value *next_of(Walk *walk) {
    while (walk->length && !walk->failed) {
        Place *place = &walk->places[walk->length - 1];
        Value *operand = operand_at(place->v, place->next++);
        if (operand == NULL) {
            walk->length--;
            return place->v;
        }
        if (operand->mark != walk->number)
            enter(walk, operand);
    }
    return NULL;
}

/* Append the Values below the root that the walk has not visited, and the root. The references are borrowed. Returns -1
   if memory runs out. */
static int walk_below(Value *root, uint64_t number, Values *order) {
    Walk walk = {number, NULL, 0, 0, 0};
    Value *v;
    begin(&walk, root);
    while ((v = next_of(&walk)) != NULL) {
        v->mark = number;
        walk.failed |= push(order, v) < 0;
    }
    PyMem_Free(walk.places);
    return walk.failed ? -1 : 0;
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
    put_number(self, GRAD, whole(1.0));
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
    Values below = {NULL, 0, 0};
    uint64_t walk = ++walks;
    int failed = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(children) && !failed; i++)
        failed = walk_below((Value *)PyTuple_GetItem(children, i), walk, &below) < 0;
    PyMem_Free(below.values);
    if (failed) {
        PyErr_NoMemory();
        return -1;
    }
    if (v->mark != walk)
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
        v->flags = IS_INT << DATA | IS_INT << GRAD | TRACKED;
    return (PyObject *)v;
}

static int value_init(PyObject *self, PyObject *arguments, PyObject *named) {
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

/* A Value of exactly this type with the same numbers and texts, and with these operands: a tuple as `_prev` gives it. */
static Value *copy_with(Value *v, int op, PyObject *operands) {
    Value *copy = allocate();
    if (copy == NULL || extra_of(copy) == NULL) {
        Py_XDECREF(copy);
        return NULL;
    }
    PyObject *name = op_names[LEAF];
    const uint8_t kinds = (IS_INT | IS_OBJECT) << DATA | (IS_INT | IS_OBJECT) << GRAD;
    copy->numbers[DATA] = v->numbers[DATA];
    copy->numbers[GRAD] = v->numbers[GRAD];
    copy->flags = (uint8_t)(v->flags & kinds);
    if (v->extra != NULL) {
        *copy->extra = *v->extra;
        copy->extra->children = copy->extra->name = NULL;
        Py_XINCREF(copy->extra->label);
        Py_XINCREF(copy->extra->constant);
        Py_XINCREF(copy->extra->closure);
        Py_XINCREF(copy->extra->numbers[DATA]);
        Py_XINCREF(copy->extra->numbers[GRAD]);
        if (v->extra->name != NULL)
            name = v->extra->name;
        if (copy->extra->closure != NULL)
            track(copy);
    }
    Py_INCREF(name);
    if (set_operation(copy, op, operands, name) < 0)
        Py_CLEAR(copy);
    Py_DECREF(name);
    return copy;
}

static int refuse_subclass(Value *v) {
    if (Py_TYPE(v) == value_type)
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
    failed = failed || (copy = copy_with(v, op, copies)) == NULL || PyDict_SetItem(memo, key, (PyObject *)copy) < 0;
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
        PyErr_Format(PyExc_TypeError, "%R has a backward function of its own, which can't be pickled", self);
        return NULL;
    }
    PyObject *rebuild = PyObject_GetAttrString((PyObject *)Py_TYPE(self), "_rebuild");
    PyObject *attributes = PyObject_GetAttrString(self, "__dict__");
    PyObject *data = get_object(v, DATA), *grad = get_object(v, GRAD), *operands = operands_of(v);
    PyObject *name = name_of(v), *constant = get_constant(v, NULL), *label = get_label(v, NULL), *found = NULL;
    if (attributes == NULL) {
        PyErr_Clear();
        Py_INCREF(Py_None);
        attributes = Py_None;
    }
    if (rebuild != NULL && data != NULL && grad != NULL && operands != NULL)
        found = Py_BuildValue(
            "(O(OOOOOO)O)", rebuild, data, grad, operands, name, constant, label, attributes);
    PyObject *all[] = {rebuild, attributes, data, grad, operands, name, constant, label};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        Py_XDECREF(all[i]);
    return found;
}

/* The op of the table with this name and so many operands, else CUSTOM. */
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
    PyObject *made = value_new(type, NULL, NULL), *text = as_text(name, "_op");
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
