/* The operators, which create Values. */

/* Store the data of a leaf. */
static int put_data(Value *v, PyObject *data) {
    PyObject *number = v->flags & FLOAT_DATA ? PyNumber_Float(data) : new_reference(data);
    int failed = number == NULL || put_object(v, DATA, number) < 0;
    Py_XDECREF(number);
    return failed ? -1 : 0;
}

/* Give a Value the operands of an op in the table. It takes references to them. */
static void connect(Value *v, int op, Value *a, Value *b) {
    v->op = (uint8_t)op;
    Py_INCREF(a);
    v->left = a;
    unsigned tracked = a->flags;
    if (b != NULL) {
        Py_INCREF(b);
        v->right = b;
        tracked |= b->flags;
    }
    if (tracked & TRACKED)
        track(v);
}

/* Call the op's function in Python, which raises the exceptions of the interpreted engines. */
static PyObject *forward_in_python(int op, Value *a, Value *b, PyObject *constant) {
    PyObject *k = new_reference(constant ? constant : Py_None); /* before an allocation */
    PyObject *left = get_object(a, DATA), *right = b ? get_object(b, DATA) : new_reference(Py_None);
    return PyObject_CallFunction(PyTuple_GetItem(helpers, FORWARD + op - 1), "NNN", left, right, k); /* N takes over */
}

/* Apply an op of the table. b: NULL for an op of one operand. constant: that of a power, or NULL. */
static inline PyObject *operate(int op, Value *a, Value *b, PyObject *constant) {
    int hard = (a->kinds[DATA] | (b ? b->kinds[DATA] : 0)) & OBJECT; /* whether only Python can apply it */
    Number none = real(0.0), k = none, data = none;
    if (constant != NULL)
        hard |= !to_number(constant, &k);
    PyObject *object = NULL;
    if (!hard)
        data = forward(op, number_of(a, DATA), b ? number_of(b, DATA) : none, k, &hard);
    if (hard) {
        object = forward_in_python(op, a, b, constant);
        if (object == NULL)
            return NULL;
    }
    Value *v = allocate_like(a);
    if (v != NULL) {
        put_number(v, DATA, data);
        connect(v, op, a, b);
        if ((constant != NULL && put_extra(v, CONSTANT, new_reference(constant)) < 0) ||
            (object != NULL && put_object(v, DATA, object) < 0))
            Py_CLEAR(v);
    }
    Py_XDECREF(object);
    return (PyObject *)v;
}

/* a: a Value. other: a Value, or anything else, which becomes a leaf. */
static PyObject *binary(int op, Value *a, PyObject *other) {
    if (IS_VALUE(other))
        return operate(op, a, (Value *)other, NULL);
    Value *b = allocate_like(a);
    PyObject *made = b != NULL && put_data(b, other) == 0 ? operate(op, a, b, NULL) : NULL;
    Py_XDECREF(b);
    return made;
}

/* A number on the left is the second operand, as in micrograd. */
static PyObject *commutative(int op, PyObject *a, PyObject *b) {
    return IS_VALUE(a) ? binary(op, (Value *)a, b) : binary(op, (Value *)b, a);
}

static PyObject *value_add(PyObject *a, PyObject *b) { return commutative(OP_ADD, a, b); }

static PyObject *value_multiply(PyObject *a, PyObject *b) { return commutative(OP_MUL, a, b); }

static PyObject *value_negative(PyObject *a) { return PyNumber_Multiply(a, minus_one); }

/* Apply an operator to a, and to a result of b that it takes over. */
static PyObject *apply(binaryfunc operator, PyObject *a, PyObject *b) {
    PyObject *made = b ? operator(a, b) : NULL;
    Py_XDECREF(b);
    return made;
}

/* x - y is x + (-y). */
static PyObject *value_subtract(PyObject *a, PyObject *b) { return apply(PyNumber_Add, a, PyNumber_Negative(b)); }

/* x / y is x * y**-1. */
static PyObject *value_divide(PyObject *a, PyObject *b) {
    return apply(PyNumber_Multiply, a, PyNumber_Power(b, minus_one, Py_None));
}

static PyObject *value_power(PyObject *base, PyObject *exponent, PyObject *modulus) {
    if (!IS_VALUE(base) || modulus != Py_None)
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *constant; /* it is exact, so it runs no code of the program */
    if (exponent == minus_one || (PyFloat_CheckExact(exponent) && isfinite(PyFloat_AsDouble(exponent))))
        constant = new_reference(exponent);
    else
        constant = PyObject_CallFunctionObjArgs(PyTuple_GetItem(helpers, CHECK_EXPONENT), exponent, NULL);
    PyObject *made = constant ? operate(OP_POW, (Value *)base, NULL, constant) : NULL;
    Py_XDECREF(constant);
    return made;
}

/* The methods of the ops that have no operator. */
#define UNARY(name, op) \
    static PyObject *value_##name(Value *self, PyObject *unused) { return operate(op, self, NULL, NULL); }
#define BINARY(name, op) static PyObject *value_##name(Value *self, PyObject *other) { return binary(op, self, other); }
METHODS(UNARY, BINARY)
