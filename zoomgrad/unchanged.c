/* The comparison of `state.py` in C: whether objects still hold what they held, by identity.

   The argument is a tuple. Each part but the first is a flat tuple of entries. What is absent counts as `missing`.
   Reading an attribute may run Python code, so nothing borrowed is used after it; the tuples hold all that is compared.
   After a wrong argument the result is an exception, never a crash: every function called here checks its arguments. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { MISSING, TYPES, FUNCTIONS, ATTRIBUTES, NAMES, DICTS, LISTS, PARTS };

#ifdef Py_LIMITED_API
#define AT(tuple, i) PyTuple_GetItem(tuple, i)
#else /* of a tuple whose size was asked */
#define AT(tuple, i) PyTuple_GET_ITEM(tuple, i)
#endif

/* object, type */
static int same_types(PyObject *entries, Py_ssize_t length) {
    for (Py_ssize_t i = 0; i + 1 < length; i += 2)
        if ((PyObject *)Py_TYPE(AT(entries, i)) != AT(entries, i + 1))
            return 0;
    return 1;
}

/* Whether an attribute, which it releases, is that object. -1 for an interrupt. */
static int is(PyObject *now, PyObject *missing, PyObject *found) {
    if (now == NULL && !PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    int same = (now == NULL ? missing : now) == found;
    PyErr_Clear();
    Py_XDECREF(now);
    return same;
}

/* object, name, found */
static int same_attributes(PyObject *entries, Py_ssize_t length, PyObject *missing) {
    for (Py_ssize_t i = 0; i + 2 < length; i += 3) {
        int same = is(PyObject_GetAttr(AT(entries, i), AT(entries, i + 1)), missing, AT(entries, i + 2));
        if (same <= 0)
            return same;
    }
    return 1;
}

/* function, its code, defaults, keyword defaults, and dictionary */
static int same_functions(PyObject *entries, Py_ssize_t length, PyObject *missing) {
    for (Py_ssize_t i = 0; i + 4 < length; i += 5) {
        PyObject *function = AT(entries, i);
#ifndef Py_LIMITED_API /* much faster */
        if (PyFunction_Check(function)) {
            PyFunctionObject *f = (PyFunctionObject *)function;
            PyObject *parts[] = {f->func_code, f->func_defaults, f->func_kwdefaults, f->func_dict};
            for (int part = 0; part < 4; part++)
                if ((parts[part] == NULL ? Py_None : parts[part]) != AT(entries, i + 1 + part))
                    return 0;
            continue;
        }
#endif
        static const char *const names[] = {"__code__", "__defaults__", "__kwdefaults__", "__dict__"};
        for (int part = 0; part < 4; part++) {
            int same = is(PyObject_GetAttrString(function, names[part]), missing, AT(entries, i + 1 + part));
            if (same <= 0)
                return same;
        }
    }
    return 1;
}

/* dict, key, found */
static int same_names(PyObject *entries, Py_ssize_t length, PyObject *missing) {
    for (Py_ssize_t i = 0; i + 2 < length; i += 3) {
        PyObject *now = PyDict_GetItemWithError(AT(entries, i), AT(entries, i + 1));
        if (now == NULL && PyErr_Occurred())
            return -1;
        if ((now == NULL ? missing : now) != AT(entries, i + 2))
            return 0;
    }
    return 1;
}

/* dict, tuple of its keys in order, tuple of their values */
static int same_dicts(PyObject *entries, Py_ssize_t length) {
    for (Py_ssize_t i = 0; i + 2 < length; i += 3) {
        PyObject *dict = AT(entries, i), *keys = AT(entries, i + 1), *values = AT(entries, i + 2), *key, *value;
        Py_ssize_t place = 0, count = PyTuple_Size(keys), at = 0;
        if (count < 0 || PyTuple_Size(values) != count || !PyDict_Check(dict)) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "an entry must be a dict, its keys and their values");
            return -1;
        }
        if (PyDict_Size(dict) != count)
            return 0;
        while (PyDict_Next(dict, &place, &key, &value)) {
            if (at >= count || key != AT(keys, at) || value != AT(values, at))
                return 0;
            at++;
        }
    }
    return 1;
}

/* list, tuple of its entries */
static int same_lists(PyObject *entries, Py_ssize_t length) {
    for (Py_ssize_t i = 0; i + 1 < length; i += 2) {
        PyObject *list = AT(entries, i), *items = AT(entries, i + 1);
        Py_ssize_t count = PyList_Size(list);
        if (count < 0 || PyTuple_Size(items) < 0)
            return -1;
        if (PyTuple_Size(items) != count)
            return 0;
        for (Py_ssize_t at = 0; at < count; at++)
            if (PyList_GetItem(list, at) != AT(items, at))
                return 0;
    }
    return 1;
}

PyDoc_STRVAR(
    doc,
    "unchanged((missing, types, functions, attributes, names, dicts, lists))\n--\n\n"
    "Whether all entries are as they were.");

static PyObject *unchanged(PyObject *module, PyObject *parts) {
    PyObject *given[PARTS];
    Py_ssize_t lengths[PARTS];
    (void)module;
    if (PyTuple_Size(parts) != PARTS) {
        PyErr_Clear();
        return PyErr_Format(PyExc_TypeError, "unchanged takes a tuple of %d parts", PARTS);
    }
    for (int i = 0; i < PARTS; i++) {
        given[i] = AT(parts, i);
        lengths[i] = i == MISSING ? 0 : PyTuple_Size(given[i]);
        if (lengths[i] < 0)
            return NULL;
    }
    int same = same_types(given[TYPES], lengths[TYPES]);
    if (same > 0)
        same = same_functions(given[FUNCTIONS], lengths[FUNCTIONS], given[MISSING]);
    if (same > 0)
        same = same_names(given[NAMES], lengths[NAMES], given[MISSING]);
    if (same > 0)
        same = same_dicts(given[DICTS], lengths[DICTS]);
    if (same > 0)
        same = same_lists(given[LISTS], lengths[LISTS]);
    if (same > 0)
        same = same_attributes(given[ATTRIBUTES], lengths[ATTRIBUTES], given[MISSING]);
    return same < 0 ? NULL : PyBool_FromLong(same);
}

static PyMethodDef functions[] = {
    {"unchanged", unchanged, METH_O, doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "zoomgrad_unchanged", "Comparison by identity.", 0, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_zoomgrad_unchanged(void) { return PyModuleDef_Init(&definition); }
