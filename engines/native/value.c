/* Value as a CPython extension type: micrograd's API over the op table.

   The operations are data: `engines/native/ops_in_c.py` writes `forward` and `contributions` from the table into the
   text before this file. The files from here on know Python objects, graphs and memory.

   Memory. A Value is 80 bytes. It is allocated from a free list and is not tracked by the garbage collector, because
   its operands exist before it, so that no cycle can form. What could form one is tracked: objects of subclasses,
   Values with a backward function or attributes of the program's own or with a container as a number, and the results
   computed from them. One cycle is never freed: that of anything which refers to a result computed before it was set.

   A class that stands in for a program's own (`dress`) is another type of the same layout. Operators create the class
   of their left operand.

   Any allocation of a Python object may run the collector, whose finalizers may edit any graph. So no operand is used
   after such a call without a reference to it.

   Graphs may be a million Values deep, so nothing here recurses. A walk marks each Value with the walk's number, which
   needs no set and no clean-up. While it walks, it calls nothing that could run Python code. */

#include <stddef.h>
#include <structmember.h> /* what Python.h has itself since 3.12 */
#include <string.h>

#define FREE_LIST_LENGTH (1 << 17) /* holds the graph of a step of mnist, which has 120,137 Values */

enum {
    /* The style of a dressed class: */
    FLOAT_DATA = 1,  /* an int that becomes a leaf becomes a double */
    FLOAT_GRAD = 2,  /* gradients start at 0.0, not at 0 */
    FLOAT_ONE = 4,   /* the gradient of a root is 1.0, not 1 */
    FLOAT_TERMS = 8, /* what is added to a gradient is a double */
    STYLE = 15,
    TRACKED = 16,     /* by the garbage collector */
    OF_SUBCLASS = 32, /* its type is not made in this file, so its object may be more than a Value */
};

/* What is called in Python: four helpers, then a function for each op's result. */
enum { CHECK_EXPONENT, CYCLIC_GRAPH, CONSTRUCT, CONTRIBUTE, FORWARD };

enum { CUSTOM = 255 }; /* the `op` of an operation that neither the op table nor its variants have */

/* The two numbers of a Value, and what most Values lack. These are also places in `extra`; each may be NULL. */
enum {
    DATA,     /* in `extra`, if the number is an OBJECT: one that no double can stand in for, or anything else */
    GRAD,     /* the same */
    NAME,     /* of a LEAF or CUSTOM Value's operation, a str */
    CONSTANT, /* an exact int or float */
    CLOSURE,  /* the program's own backward function */
    CHILDREN, /* a CUSTOM Value's operands, a tuple */
    PLACES,
};

typedef struct Value {
    PyObject_HEAD
    double numbers[2];
    struct Value *left, *right; /* operands; a CUSTOM Value's are in `extra` */
    PyObject **extra;           /* NULL, or PLACES objects */
    PyObject *attributes;       /* a dict of the program's own, and the label; NULL if there are none */
    uint64_t mark;              /* the last walk that reached it; while it is freed, the next one to free */
    int32_t row;                /* in the tape, while it is recorded; for a named leaf, its index first */
    uint8_t kinds[2];           /* of the numbers */
    uint8_t flags, op;
} Value;

/* A class that stands in for a program's own, or Value itself. */
typedef struct Dress {
    PyTypeObject *type;
    PyObject *init; /* the constructor, in Python */
    int heirs;      /* whether operators create the subclass of their operand, not this class */
    unsigned style;
    struct Dress *next;
} Dress;

static Dress undressed;             /* of Value, and of classes that a program derives from it */
static Dress *dresses = &undressed; /* the newest first; they are never freed */
#define value_type undressed.type
static PyObject *helpers; /* a tuple */
static PyObject *op_names[ALL_OPS + 1];
static PyObject *minus_one;
static PyTypeObject *float64; /* NumPy's; NULL before the first one */
static Value *free_list, *dying; /* linked by `left`, and by `mark` */
static Py_ssize_t free_length;
static int is_freeing;
static uint64_t walks;

#define IS_VALUE(object) PyObject_TypeCheck(object, value_type)

/* A new reference; NULL for NULL. */
static PyObject *new_reference(PyObject *object) {
    Py_XINCREF(object);
    return object;
}

/* The dress of a class: of itself, or of a class that it is derived from. */
static const Dress *dress_of(PyTypeObject *type) {
    const Dress *dress = dresses;
    while (dress->type != type && !PyType_IsSubtype(type, dress->type))
        dress = dress->next;
    return dress;
}

/* A Value whose data and gradient are 0. */
static Value *allocate(PyTypeObject *type) {
    const Dress *dress = dress_of(type);
    const int is_subclass = type != dress->type;
    Value *v = is_subclass ? NULL : free_list;
    if (v != NULL) {
        free_list = v->left;
        free_length--;
        PyObject_Init((PyObject *)v, type);
        memset((char *)v + sizeof(PyObject), 0, sizeof(Value) - sizeof(PyObject));
    } else {
        v = (Value *)PyType_GenericAlloc(type, 0); /* zeroed and tracked */
        if (v == NULL)
            return NULL;
        if (!is_subclass)
            PyObject_GC_UnTrack(v);
    }
    v->flags = (uint8_t)(dress->style | (is_subclass ? TRACKED | OF_SUBCLASS : 0));
    v->kinds[DATA] = WHOLE;
    v->kinds[GRAD] = dress->style & FLOAT_GRAD ? REAL : WHOLE;
    return v;
}

/* A Value of the class that operators create if this is their left operand. */
static Value *allocate_like(const Value *a) {
    const Dress *dress = dress_of(Py_TYPE(a));
    return allocate(dress->heirs ? Py_TYPE(a) : dress->type);
}

static void track(Value *v) {
    if (!(v->flags & TRACKED)) {
        v->flags |= TRACKED;
        PyObject_GC_Track(v);
    }
}

/* What is at a place in `extra`: a borrowed reference, or NULL. */
static inline PyObject *get_extra(const Value *v, int place) { return v->extra == NULL ? NULL : v->extra[place]; }

/* Put an object or NULL at a place, which takes over the reference. The former object's end may run Python code. */
static int put_extra(Value *v, int place, PyObject *object) {
    if (v->extra == NULL)
        v->extra = PyMem_Calloc(PLACES, sizeof *v->extra);
    if (v->extra == NULL) {
        Py_XDECREF(object);
        PyErr_NoMemory();
        return -1;
    }
    PyObject *old = v->extra[place];
    v->extra[place] = object;
    Py_XDECREF(old);
    return 0;
}

/* Make a Value a leaf. */
static int value_clear(PyObject *self) {
    Value *v = (Value *)self, *left = v->left, *right = v->right;
    PyObject **extra = v->extra, *attributes = v->attributes;
    v->left = v->right = NULL;
    v->extra = NULL;
    v->attributes = NULL;
    v->op = LEAF;
    v->kinds[DATA] &= (uint8_t)~OBJECT;
    v->kinds[GRAD] &= (uint8_t)~OBJECT;
    Py_XDECREF(left);
    Py_XDECREF(right);
    Py_XDECREF(attributes);
    if (extra != NULL) {
        for (int place = 0; place < PLACES; place++)
            Py_XDECREF(extra[place]);
        PyMem_Free(extra);
    }
    return 0;
}

static int value_traverse(PyObject *self, visitproc visit, void *arg) {
    Value *v = (Value *)self;
    Py_VISIT(v->left);
    Py_VISIT(v->right);
    Py_VISIT(v->attributes);
    for (int place = 0; v->extra != NULL && place < PLACES; place++)
        Py_VISIT(v->extra[place]);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

/* The last reference to a loss frees its graph. A Value that dies while another one is freed waits for the end of that
   call, so that none is deeper. Nothing can reach it: it has no references, and the collector does not track it. */
static void value_dealloc(PyObject *self) {
    Value *v = (Value *)self;
    PyObject_GC_UnTrack(self);
    v->mark = (uint64_t)(uintptr_t)dying;
    dying = v;
    if (is_freeing)
        return;
    is_freeing = 1;
    while ((v = dying) != NULL) {
        PyTypeObject *type = Py_TYPE(v);
        dying = (Value *)(uintptr_t)v->mark;
        value_clear((PyObject *)v);
        if (!(v->flags & OF_SUBCLASS) && free_length < FREE_LIST_LENGTH) {
            v->left = free_list;
            free_list = v;
            free_length++;
        } else {
            PyObject_GC_Del(v);
        }
        Py_DECREF(type);
    }
    is_freeing = 0;
}

/* Convert a Python number for which a double can stand in. Returns 0 for anything else. It runs no Python code. */
static int to_number(PyObject *source, Number *number) {
    if (PyFloat_CheckExact(source) || Py_TYPE(source) == float64) {
        *number = (Number){PyFloat_AsDouble(source), Py_TYPE(source) == float64 ? NUMPY : REAL};
        return 1;
    }
    if (!PyLong_CheckExact(source))
        return 0;
    int overflow;
    long long small = PyLong_AsLongLongAndOverflow(source, &overflow);
    *number = whole((double)small);
    return !overflow && -(1LL << 53) < small && small < 1LL << 53;
}

static PyObject *from_number(Number number) {
    if (number.kind == NUMPY)
        return PyObject_CallFunction((PyObject *)float64, "d", number.d);
    return number.kind == WHOLE ? PyLong_FromLongLong((long long)number.d) : PyFloat_FromDouble(number.d);
}

static inline Number number_of(const Value *v, int which) { return (Number){v->numbers[which], v->kinds[which]}; }

static inline void put_number(Value *v, int which, Number number) {
    v->numbers[which] = number.d;
    v->kinds[which] = (uint8_t)number.kind;
}

static PyObject *get_object(Value *v, int which) {
    return v->kinds[which] == OBJECT ? new_reference(v->extra[which]) : from_number(number_of(v, which));
}

/* Whether an object may refer to others, and so be part of a cycle. */
static int is_container(PyObject *object) { return (PyType_GetFlags(Py_TYPE(object)) & Py_TPFLAGS_HAVE_GC) != 0; }

/* Store a number, or any other object, as micrograd does. */
static int put_object(Value *v, int which, PyObject *source) {
    Number number;
    int is_number = to_number(source, &number);
    if (!is_number && float64 == NULL && PyFloat_Check(source) &&
        !(PyType_GetFlags(Py_TYPE(source)) & Py_TPFLAGS_HEAPTYPE) && PyObject_HasAttrString(source, "dtype")) {
        /* Of the subclasses of float that are not written in Python, only NumPy's has that. */
        float64 = (PyTypeObject *)new_reference((PyObject *)Py_TYPE(source));
        is_number = to_number(source, &number);
    }
    if (!is_number) {
        number = (Number){NAN, OBJECT};
        if (put_extra(v, which, new_reference(source)) < 0)
            return -1;
        if (is_container(source))
            track(v); /* it may refer to the Value */
    }
    put_number(v, which, number);
    return 0;
}
