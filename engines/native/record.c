/* The graph as a tape.

   `_record` does what `engines/graph/linearize.py` does, for Values of this file. It returns None if that file
   would refuse the graph; its caller then asks that file, which raises the error. */

enum { OPS_COLUMN, LEFT, RIGHT, INDEX, COLUMNS };

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
    PyObject *constant = new_reference(get_extra(v, CONSTANT));
    if (v->op == LEAF) {
        Py_XDECREF(constant);
        constant = PyFloat_FromDouble(v->numbers[DATA]); /* of an OBJECT, it is NaN */
    }
    if (v->op > OPS || get_extra(v, CLOSURE) || (v->op == LEAF && !isfinite(v->numbers[DATA])) ||
        (constant != NULL && PyList_Append(constants, constant) < 0)) {
        Py_XDECREF(constant);
        return -2;
    }
    Py_XDECREF(constant);
    return constant == NULL ? -1 : (int32_t)PyList_Size(constants) - 1;
}

/* Write the rows of Values that stand in order. Returns -1 if one can't be recorded. */
static int write_rows(PyObject *order, uint64_t named, PyObject *const columns[], PyObject *constants) {
    unsigned char *ops = (unsigned char *)PyByteArray_AsString(columns[OPS_COLUMN]);
    int32_t *left = (int32_t *)(void *)PyByteArray_AsString(columns[LEFT]);
    int32_t *right = (int32_t *)(void *)PyByteArray_AsString(columns[RIGHT]);
    int32_t *index = (int32_t *)(void *)PyByteArray_AsString(columns[INDEX]);
    const Py_ssize_t rows = PyList_Size(order);
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
    return 0;
}

PyDoc_STRVAR(
    record_doc,
    "_record(inputs, parameters, outputs)\n--\n\n"
    "The rows below this loss, then below the outputs, in canonical order. The arguments are tuples.\n\n"
    "Returns (ops, left, right, index, constants, rows of the loss and of the outputs), or None for a graph that can't\n"
    "be recorded. The first four are bytearrays: `ops` has one byte per row, the others one 32-bit int per row.");

static PyObject *value_record(Value *loss, PyObject *arguments) {
    PyObject *inputs, *parameters, *outputs, *columns[COLUMNS] = {NULL}, *recorded = NULL;
    if (!PyArg_ParseTuple(
            arguments, "O!O!O!:_record", &PyTuple_Type, &inputs, &PyTuple_Type, &parameters, &PyTuple_Type, &outputs))
        return NULL;
    const Py_ssize_t roots = 1 + PyTuple_Size(outputs);
    /* What the garbage collector tracks is made before the walk, because making it may run the collector. */
    PyObject *order = PyList_New(0), *constants = PyList_New(0), *rows = PyTuple_New(roots);
    const uint64_t walk = walks += 2, named = ++walks;
    int failed = order == NULL || constants == NULL || rows == NULL;
    for (Py_ssize_t i = 0; i < roots && !failed; i++) {
        Value *root = i == 0 ? loss : (Value *)PyTuple_GetItem(outputs, i - 1);
        failed = !IS_VALUE(root) || append_order(order, root, walk) < 0;
    }
    failed = failed || PyList_Size(order) > INT32_MAX;
    for (int i = 0; i < COLUMNS && !failed; i++) {
        columns[i] = PyByteArray_FromStringAndSize(NULL, PyList_Size(order) * (i == OPS_COLUMN ? 1 : 4));
        failed = columns[i] == NULL;
    }
    failed = failed || name_leaves(inputs, named, INPUT_ROW) < 0 || name_leaves(parameters, named, PARAMETER_ROW) < 0 ||
             write_rows(order, named, columns, constants) < 0;
    for (Py_ssize_t i = 0; i < roots && !failed; i++) {
        PyObject *row = PyLong_FromLong((i == 0 ? loss : (Value *)PyTuple_GetItem(outputs, i - 1))->row);
        failed = row == NULL || PyTuple_SetItem(rows, i, row) < 0;
    }
    if (!failed)
        recorded = Py_BuildValue(
            "(OOOOOO)", columns[OPS_COLUMN], columns[LEFT], columns[RIGHT], columns[INDEX], constants, rows);
    for (int i = 0; i < COLUMNS; i++)
        Py_XDECREF(columns[i]);
    Py_XDECREF(order);
    Py_XDECREF(constants);
    Py_XDECREF(rows);
    if (recorded != NULL)
        return recorded;
    PyErr_Clear();
    Py_RETURN_NONE;
}
