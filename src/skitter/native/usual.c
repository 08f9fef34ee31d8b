/* Whether what a stranger sent is of the usual kind, as skitter/archive/usual_plain.py defines it. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdio.h>

#include "usual_core.h"

/* A scheme and its slashes are never part of a path. */
enum { BEFORE_PATH = 8 };

static PyObject *usual_head(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    if (count != 2 || !PyBytes_Check(given[0]) || !PyLong_Check(given[1])) {
        PyErr_SetString(PyExc_TypeError, "usual_head(head: bytes, body_length: int)");
        return NULL;
    }
    long long body = PyLong_AsLongLong(given[1]);
    if (body == -1 && PyErr_Occurred())
        return NULL;
    char framing[48];
    int length = snprintf(framing, sizeof framing, "content-length: %lld", body);
    const uint8_t *head = (const uint8_t *)PyBytes_AS_STRING(given[0]);
    return PyBool_FromLong(is_usual_head(head, (size_t)PyBytes_GET_SIZE(given[0]), framing, (size_t)length));
}

static PyObject *usual_path(PyObject *module, PyObject *url)
{
    if (!PyUnicode_Check(url)) {
        PyErr_SetString(PyExc_TypeError, "a URL is a str");
        return NULL;
    }
    size_t length = (size_t)PyUnicode_GET_LENGTH(url);
    if (!PyUnicode_IS_ASCII(url) || length <= BEFORE_PATH)
        Py_RETURN_NONE;
    const uint8_t *text = PyUnicode_1BYTE_DATA(url);
    const uint8_t *path = memchr(text + BEFORE_PATH, '/', length - BEFORE_PATH);
    if (!path)
        Py_RETURN_NONE;
    length -= (size_t)(path - text);
    PyObject *lower = PyUnicode_New((Py_ssize_t)length, 127);
    if (lower && !is_usual_path(path, length, PyUnicode_1BYTE_DATA(lower))) {
        Py_DECREF(lower);
        Py_RETURN_NONE;
    }
    return lower;
}

static PyMethodDef methods[] = {
    {"usual_head", (PyCFunction)(void (*)(void))usual_head, METH_FASTCALL,
     "Whether a head can be stored as it is with a body of that length."},
    {"usual_path", usual_path, METH_O, "The path of a URL in lower case, when that is its key; else None."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "usual", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_usual(void)
{
    return PyModule_Create(&definition);
}
