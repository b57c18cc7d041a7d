/* The operators, which create Values. */

/* Store the data of a leaf. */
static int put_data(Value *v, PyObject *data) {
    if (!(v->flags & FLOAT_DATA) || PyFloat_CheckExact(data))
        return put_object(v, DATA, data);
    PyObject *number = PyNumber_Float(data);
    int failed = number == NULL || put_object(v, DATA, number) < 0;
    Py_XDECREF(number);
    return failed ? -1 : 0;
}

/* The leaf for a number beside a Value in an operation. */
static Value *leaf(const Value *beside, PyObject *data) {
    Value *v = allocate_like(beside);
    if (v != NULL && put_data(v, data) < 0) {
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
    uint16_t tracked = a->flags;
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

static PyObject *result(Number data, int op, Value *a, Value *b, PyObject *constant) {
    Value *v = allocate_like(a);
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
        b = leaf_of_other = leaf(a, other);
    if (data != NULL && (b != NULL || other == NULL)) {
        made = result(real(0.0), op, a, b, constant);
        if (made != NULL && put_object((Value *)made, DATA, data) < 0)
            Py_CLEAR(made);
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
    Value *b = leaf(a, other);
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
    PyObject *made = NULL, *checked = NULL, *constant = NULL;
    if (!PyFloat_CheckExact(exponent) || !isfinite(PyFloat_AsDouble(exponent))) {
        checked = PyObject_CallFunctionObjArgs(helpers[CHECK_EXPONENT], exponent, NULL);
        if (checked == NULL)
            return NULL;
    }
    /* Store exact numbers, which run no code of the program when they are used. */
    Number k;
    int failed = to_number(checked == NULL ? exponent : checked, &k, &constant, 0) < 0;
    Py_XDECREF(checked);
    if (failed)
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
