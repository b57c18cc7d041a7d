/* The graph as a tape.

   `_record` does what `engines/graph/linearize.py` does, for Values of this file. It returns None if that file
   would refuse the graph; its caller then asks that file, which raises the error. */

enum { OPS_COLUMN, LEFT, RIGHT, INDEX, COLUMNS };

/* Columns that grow by doubling. They are bytearrays from the start, so that Python takes them over without a copy. */
typedef struct {
    PyObject *arrays[COLUMNS], *constants;
    unsigned char *ops;
    int32_t *left, *right, *index; /* into `arrays` */
    Py_ssize_t length, capacity;
} Tape;

static int make_room(Tape *tape, Py_ssize_t rows) {
    for (int i = 0; i < COLUMNS; i++)
        if (PyByteArray_Resize(tape->arrays[i], i == OPS_COLUMN ? rows : 4 * rows) < 0)
            return -1;
    tape->ops = (unsigned char *)PyByteArray_AsString(tape->arrays[OPS_COLUMN]);
    tape->left = (int32_t *)(void *)PyByteArray_AsString(tape->arrays[LEFT]);
    tape->right = (int32_t *)(void *)PyByteArray_AsString(tape->arrays[RIGHT]);
    tape->index = (int32_t *)(void *)PyByteArray_AsString(tape->arrays[INDEX]);
    tape->capacity = rows;
    return 0;
}

static int append_row(Tape *tape, int op, int32_t left, int32_t right, int32_t index) {
    if (tape->length == tape->capacity) {
        Py_ssize_t rows = tape->capacity ? 2 * tape->capacity : 1024;
        if (rows > INT32_MAX || make_room(tape, rows) < 0)
            return -1;
    }
    tape->ops[tape->length] = (unsigned char)op;
    tape->left[tape->length] = left;
    tape->right[tape->length] = right;
    tape->index[tape->length] = index;
    tape->length++;
    return 0;
}

/* Mark named leaves with this walk. An input's row is its index until it gets a row, a parameter's -1 - index. Returns -1
   if one can't be named. */
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

/* Append the row of a Value whose operands have rows. Returns -1 if it can't be recorded. */
static int append_value(Tape *tape, const Value *v, int is_named) {
    if (v->op > OPS || get_extra(v, CLOSURE) != NULL)
        return -1;
    if (is_named && v->row < 0)
        return append_row(tape, PARAMETER_ROW, -1, -1, -1 - v->row);
    if (is_named)
        return append_row(tape, INPUT_ROW, -1, -1, v->row);
    int32_t index = (int32_t)PyList_Size(tape->constants);
    if (v->op == LEAF) {
        if (v->kinds[DATA] == OBJECT || !isfinite(v->numbers[DATA]))
            return -1;
        PyObject *number = PyFloat_FromDouble(v->numbers[DATA]);
        int failed = number == NULL || PyList_Append(tape->constants, number) < 0;
        Py_XDECREF(number);
        return failed ? -1 : append_row(tape, CONSTANT_ROW, -1, -1, index);
    }
    PyObject *constant = get_extra(v, CONSTANT);
    if (constant != NULL && PyList_Append(tape->constants, constant) < 0)
        return -1;
    return append_row(tape, CONSTANT_ROW + v->op, v->left->row, v->right ? v->right->row : -1, constant ? index : -1);
}

/* Give a row to each Value below the root that has none, operands first. */
static int number_below(Value *root, uint64_t named, Walk *walk, Tape *tape) {
    Value *v;
    begin(walk, root);
    while ((v = next_of(walk)) != NULL) {
        if (append_value(tape, v, v->mark == named) < 0)
            return -1;
        v->mark = walk->number;
        v->row = (int32_t)(tape->length - 1);
    }
    return walk->failed ? -1 : 0;
}

PyDoc_STRVAR(
    record_doc,
    "_record(inputs, parameters, outputs)\n--\n\n"
    "The rows below this loss, then below the outputs, in canonical order. The arguments are tuples.\n\n"
    "Returns (ops, left, right, index, constants, rows of the loss and of the outputs), or None for a graph that can't\n"
    "be recorded. The first four are bytearrays: `ops` has one byte per row, the others one 32-bit int per row.");

static PyObject *value_record(Value *loss, PyObject *arguments) {
    PyObject *inputs, *parameters, *outputs, *recorded = NULL;
    if (!PyArg_ParseTuple(
            arguments, "O!O!O!:_record", &PyTuple_Type, &inputs, &PyTuple_Type, &parameters, &PyTuple_Type, &outputs))
        return NULL;
    const Py_ssize_t roots = 1 + PyTuple_Size(outputs);
    /* What the garbage collector tracks is made before the walk, because making it may run the collector. */
    Tape tape = {{NULL}, PyList_New(0), NULL, NULL, NULL, NULL, 0, 0};
    PyObject *rows = PyTuple_New(roots);
    int failed = tape.constants == NULL || rows == NULL;
    for (int i = 0; i < COLUMNS; i++) {
        tape.arrays[i] = PyByteArray_FromStringAndSize(NULL, 0);
        failed |= tape.arrays[i] == NULL;
    }
    const uint64_t named = ++walks;
    Walk walk = new_walk();
    failed = failed || name_leaves(inputs, named, INPUT_ROW) < 0 || name_leaves(parameters, named, PARAMETER_ROW) < 0;
    for (Py_ssize_t i = 0; i < roots && !failed; i++) {
        Value *root = i == 0 ? loss : (Value *)PyTuple_GetItem(outputs, i - 1);
        failed = !IS_VALUE(root) || number_below(root, named, &walk, &tape) < 0;
        PyObject *row = failed ? NULL : PyLong_FromLong(root->row);
        failed = row == NULL || PyTuple_SetItem(rows, i, row) < 0;
    }
    failed = end(&walk) < 0 || failed || make_room(&tape, tape.length) < 0;
    if (!failed)
        recorded = Py_BuildValue(
            "(OOOOOO)", tape.arrays[OPS_COLUMN], tape.arrays[LEFT], tape.arrays[RIGHT], tape.arrays[INDEX],
            tape.constants, rows);
    for (int i = 0; i < COLUMNS; i++)
        Py_XDECREF(tape.arrays[i]);
    Py_XDECREF(tape.constants);
    Py_XDECREF(rows);
    if (recorded != NULL)
        return recorded;
    PyErr_Clear();
    Py_RETURN_NONE;
}
