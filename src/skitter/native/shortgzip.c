/* Short records as gzip members. Which bytes they become is left to the writer (skitter/archive/coding.py has ISA-L do it
 * where there is no kernel); what they inflate to is not. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "shortgzip_core.h"

static PyObject *short_member(PyObject *module, PyObject *record)
{
    if (!PyBytes_Check(record)) {
        PyErr_SetString(PyExc_TypeError, "a record is bytes");
        return NULL;
    }
    uint8_t member[MOST_MEMBER];
    Py_ssize_t length = PyBytes_GET_SIZE(record);
    if (length > MOST_SHORT)
        Py_RETURN_NONE;
    size_t taken = write_member((const uint8_t *)PyBytes_AS_STRING(record), (size_t)length, member);
    return PyBytes_FromStringAndSize((const char *)member, (Py_ssize_t)taken);
}

static PyMethodDef methods[] = {
    {"short_member", short_member, METH_O, "A record as a gzip member; None when it is not short."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "shortgzip", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_shortgzip(void)
{
    fill_codes();
    return PyModule_Create(&definition);
}
