/* The graph as a tape.

   `_record` does what `engines/graph/linearize.py` does, for Values of this file. It returns None if that file
   would refuse the graph; its caller then asks that file, which raises the error. */

/* Mark named leaves. An input's row is its index until it gets a row, a parameter's -1 - index. Returns -1 if one can't
   be named. */
static int name_leaves(PyObject *leaves, uint64_t named, int op) {
    Py_ssize_t count = PyTuple_Size(leaves);
    if (count > INT32_MAX)
        return -1;
    for (int32_t i = 0; i < count; i++) {
        Value *v = (Value *)PyTuple_GetItem(leaves, i);
        if (!IS_VALUE(v) || v->op != LEAF || v->mark == named || v->kinds[DATA] == OBJECT || get_extra(v, CLOSURE))
            return -1;
        v->mark = named;
        v->row = op == INPUT_ROW ? i : -1 - i;
    }
    return 0;
}

/* Append the number of a Value's row. Returns the row's index, -1 without a number, or -2 if it can't be recorded. */
static int32_t append_constant(PyObject *constants, const Value *v) {
    const double number = v->numbers[DATA]; /* of an OBJECT, it is NaN */
    PyObject *constant = v->op == LEAF ? PyFloat_FromDouble(number) : new_reference(get_extra(v, CONSTANT));
    const int failed = v->op > OPS || get_extra(v, CLOSURE) || (v->op == LEAF && !isfinite(number)) ||
                       (constant != NULL && PyList_Append(constants, constant) < 0);
    Py_XDECREF(constant);
    return failed ? -2 : constant == NULL ? -1 : (int32_t)PyList_Size(constants) - 1;
}

/* Write a row for each Value of `order`, then the row number of each root. Returns -1 if a Value can't be recorded. */
static int write_rows(
    PyObject *order, PyObject *roots, uint64_t named, PyObject *bytes, PyObject *numbers, PyObject *constants) {
    const Py_ssize_t rows = PyList_Size(order);
    unsigned char *ops = (unsigned char *)PyByteArray_AsString(bytes);
    int32_t *left = (int32_t *)(void *)PyByteArray_AsString(numbers), *right = left + rows, *index = right + rows;
    for (int32_t row = 0; row < rows; row++) {
        Value *v = (Value *)PyList_GetItem(order, row);
        const int is_named = v->mark == named, is_parameter = is_named && v->row < 0;
        ops[row] = (unsigned char)(is_parameter ? PARAMETER_ROW : is_named ? INPUT_ROW : CONSTANT_ROW + v->op);
        left[row] = v->left ? v->left->row : -1;
        right[row] = v->right ? v->right->row : -1;
        index[row] = is_parameter ? -1 - v->row : is_named ? v->row : append_constant(constants, v);
        if (index[row] == -2)
            return -1;
        v->row = row;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(roots); i++)
        index[rows + i] = ((Value *)PyTuple_GetItem(roots, i))->row;
    return 0;
}

/* `_record(inputs, parameters, roots)`: the rows below each of the roots in canonical order. The arguments are tuples.
   Returns (ops, numbers, constants), or None for a graph that can't be recorded. `ops` is a bytearray of one byte per
   row. `numbers` is one of 32-bit ints: left, right and index of all rows, then the row of each root. */
static PyObject *value_record(Value *unused, PyObject *arguments) {
    PyObject *inputs, *parameters, *roots, *ops = NULL, *numbers = NULL, *recorded = NULL;
    if (!PyArg_ParseTuple(
            arguments, "O!O!O!:_record", &PyTuple_Type, &inputs, &PyTuple_Type, &parameters, &PyTuple_Type, &roots))
        return NULL;
    /* What the garbage collector tracks is made before the walk, because making it may run the collector. */
    PyObject *order = PyList_New(0), *constants = PyList_New(0);
    const uint64_t walk = walks += 2, named = ++walks;
    int failed = order == NULL || constants == NULL;
    for (Py_ssize_t i = 0; i < PyTuple_Size(roots) && !failed; i++) {
        PyObject *root = PyTuple_GetItem(roots, i);
        failed = !IS_VALUE(root) || append_order(order, (Value *)root, walk) < 0;
    }
    if (!failed && PyList_Size(order) <= INT32_MAX) {
        ops = PyByteArray_FromStringAndSize(NULL, PyList_Size(order));
        numbers = PyByteArray_FromStringAndSize(NULL, 4 * (3 * PyList_Size(order) + PyTuple_Size(roots)));
    }
    if (ops != NULL && numbers != NULL && name_leaves(inputs, named, INPUT_ROW) == 0 &&
        name_leaves(parameters, named, PARAMETER_ROW) == 0 &&
        write_rows(order, roots, named, ops, numbers, constants) == 0)
        recorded = Py_BuildValue("(OOO)", ops, numbers, constants);
    Py_XDECREF(order);
    Py_XDECREF(constants);
    Py_XDECREF(ops);
    Py_XDECREF(numbers);
    if (recorded != NULL)
        return recorded;
    PyErr_Clear();
    Py_RETURN_NONE;
}
