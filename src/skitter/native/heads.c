/* The head of an answer, as skitter/fetch/head_plain.py defines it. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "heads_core.h"

static PyObject *name_of(Span name)
{
    uint8_t all = 0;
    for (size_t at = 0; at < name.length; at++)
        all |= name.text[at];
    /* no letter of Latin-1 leaves its half of it in lower case */
    PyObject *text = PyUnicode_New((Py_ssize_t)name.length, all < 0x80 ? 127 : 255);
    if (text && name.length) {
        uint8_t *into = PyUnicode_1BYTE_DATA(text);
        for (size_t at = 0; at < name.length; at++)
            into[at] = in_lower_case(name.text[at]);
    }
    return text;
}

static PyObject *field_of(Span name, Span value)
{
    PyObject *field = PyTuple_New(2);
    if (!field)
        return NULL;
    PyObject *left = name_of(name);
    PyObject *right = PyUnicode_DecodeLatin1((const char *)value.text, (Py_ssize_t)value.length, NULL);
    if (!left || !right) {
        Py_XDECREF(left);
        Py_XDECREF(right);
        Py_DECREF(field);
        return NULL;
    }
    PyTuple_SET_ITEM(field, 0, left);
    PyTuple_SET_ITEM(field, 1, right);
    return field;
}

static PyObject *fields_of(Span head)
{
    Span name, value;
    Py_ssize_t count = 0;
    for (size_t at = first_field(head); next_field(head, &at, &name, &value);)
        count++;
    PyObject *fields = PyTuple_New(count);
    size_t at = first_field(head);
    for (Py_ssize_t number = 0; fields && number < count; number++) {
        next_field(head, &at, &name, &value);
        PyObject *field = field_of(name, value);
        if (!field)
            Py_CLEAR(fields);
        else
            PyTuple_SET_ITEM(fields, number, field);
    }
    return fields;
}

static PyObject *read_head(PyObject *module, PyObject *raw)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(raw, &buffer, PyBUF_SIMPLE) != 0)
        return NULL;
    PyObject *result = NULL;
    Span head = head_of(buffer.buf, (size_t)buffer.len);
    PyObject *text = PyBytes_FromStringAndSize((const char *)head.text, (Py_ssize_t)head.length);
    PyObject *fields = text ? fields_of(head) : NULL;
    if (fields)
        result = Py_BuildValue("OlO", text, status_of(head), fields);
    Py_XDECREF(text);
    Py_XDECREF(fields);
    PyBuffer_Release(&buffer);
    return result;
}

static PyMethodDef methods[] = {
    {"read_head", read_head, METH_O, "The head of an answer among all header lines, its status, its fields."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "heads", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_heads(void)
{
    return PyModule_Create(&definition);
}
