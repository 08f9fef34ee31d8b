/* Some links of a bundle, by their places: skitter/frontier/bundles_plain.py defines it.
 *
 * Of thirty URLs in one string two or three are wanted: the others are passed over, and never become strings. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { KEY = 16, KEYS = 0, URLS, NUMBERS, MAKE, COMMON, ALIKE = 6, ALL = COMMON + ALIKE, AUTHORITY = 8 };

static PyObject *names;

/* Where in a string of lines one has got to. */
typedef struct {
    PyObject *text;
    Py_ssize_t number, start, end; /* of a line; its end is beyond the text when there is none */
} Lines;

static int find_end(Lines *lines)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(lines->text);
    lines->end = PyUnicode_FindChar(lines->text, '\n', lines->start, length, 1);
    if (lines->end == -1)
        lines->end = length;
    return lines->end >= 0;
}

/* False, with an error set, where there is no such line. */
static int go_to(Lines *lines, Py_ssize_t number)
{
    if (lines->end < 0 || number < lines->number) {
        lines->number = lines->start = 0;
        if (!find_end(lines))
            return 0;
    }
    for (; lines->number < number && lines->end < PyUnicode_GET_LENGTH(lines->text); lines->number++) {
        lines->start = lines->end + 1;
        if (!find_end(lines))
            return 0;
    }
    if (number >= 0 && lines->number == number)
        return 1;
    PyErr_SetString(PyExc_IndexError, "no such link");
    return 0;
}

static PyObject *host_of(PyObject *url)
{
    Py_ssize_t slash = PyUnicode_FindChar(url, '/', AUTHORITY, PyUnicode_GET_LENGTH(url), 1);
    if (slash >= 0)
        return PyUnicode_Substring(url, 0, slash);
    if (slash == -1)
        PyErr_SetString(PyExc_ValueError, "no URL");
    return NULL;
}

static PyObject *key_at(PyObject *keys, Py_ssize_t number)
{
    if (number < PyBytes_GET_SIZE(keys) / KEY)
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(keys) + number * KEY, KEY);
    PyErr_SetString(PyExc_IndexError, "no such key");
    return NULL;
}

/* What `make` says of the link at that place. */
static PyObject *link_at(PyObject *const *given, Lines *lines, Py_ssize_t number)
{
    if (!go_to(lines, number))
        return NULL;
    PyObject *url = PyUnicode_Substring(lines->text, lines->start, lines->end);
    PyObject *key = url ? key_at(given[KEYS], number) : NULL;
    PyObject *host = key ? host_of(url) : NULL;
    PyObject *link = NULL;
    if (host) {
        PyObject *parts[3 + ALIKE] = {url, key, host};
        memcpy(parts + 3, given + COMMON, ALIKE * sizeof *parts);
        link = PyObject_Vectorcall(given[MAKE], parts, 0, names);
    }
    Py_XDECREF(url);
    Py_XDECREF(key);
    Py_XDECREF(host);
    return link;
}

static int fill(PyObject *const *given, PyObject *numbers, PyObject *links)
{
    Lines lines = {given[URLS], 0, 0, -1};
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(numbers); i++) {
        Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GET_ITEM(numbers, i));
        PyObject *link = number == -1 && PyErr_Occurred() ? NULL : link_at(given, &lines, number);
        if (!link)
            return 0;
        PyList_SET_ITEM(links, i, link);
    }
    return 1;
}

static PyObject *picked(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    if (count != ALL || !PyBytes_CheckExact(given[KEYS]) || !PyUnicode_CheckExact(given[URLS])) {
        PyErr_SetString(PyExc_TypeError, "keys, URLs, numbers, a maker, and what links have in common");
        return NULL;
    }
    /* A tuple of our own: the maker may be Python code. */
    PyObject *numbers = PySequence_Tuple(given[NUMBERS]);
    PyObject *links = numbers ? PyList_New(PyTuple_GET_SIZE(numbers)) : NULL;
    if (links && !fill(given, numbers, links))
        Py_CLEAR(links);
    Py_XDECREF(numbers);
    return links;
}

static PyMethodDef methods[] = {
    {"picked", (PyCFunction)(void (*)(void))picked, METH_FASTCALL, "Some links of a bundle, by their places."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "bundles", NULL, -1, methods, NULL, NULL, NULL, NULL};

/* Interned, as the names of a class's fields are: else each is compared letter by letter. */
static PyObject *interned_names(void)
{
    static const char *const said[] = {
        "url", "key", "host", "depth", "via", "parent", "hops", "priority", "requisite"};
    const Py_ssize_t count = sizeof said / sizeof *said;
    PyObject *made = PyTuple_New(count);
    for (Py_ssize_t i = 0; made && i < count; i++) {
        PyObject *name = PyUnicode_InternFromString(said[i]);
        if (!name)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, i, name);
    }
    return made;
}

PyMODINIT_FUNC PyInit_bundles(void)
{
    names = interned_names();
    return names ? PyModule_Create(&definition) : NULL;
}
