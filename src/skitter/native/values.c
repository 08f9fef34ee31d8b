/* The strings of a column as Parquet's pages have them, as skitter/archive/values_plain.py defines them.
 *
 * Megabytes at a time, in a thread beside the crawl: so what reads and writes runs without the interpreter's lock. The
 * buffers are `bytes`, which cannot change meanwhile. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <sys/random.h>

#include "values_core.h"

static uint64_t seed;

static int read_strings(PyObject *data, PyObject *ends, PyObject *valid, Strings *strings)
{
    if (!PyBytes_Check(data) || !PyBytes_Check(ends) || (valid != Py_None && !PyBytes_Check(valid))) {
        PyErr_SetString(PyExc_TypeError, "a column's buffers are bytes");
        return 0;
    }
    size_t numbers = (size_t)PyBytes_GET_SIZE(ends) / sizeof(int32_t);
    *strings = (Strings){
        .data = (const uint8_t *)PyBytes_AS_STRING(data),
        .length = (size_t)PyBytes_GET_SIZE(data),
        .ends = (const int32_t *)(const void *)PyBytes_AS_STRING(ends),
        .valid = valid == Py_None ? NULL : (const uint8_t *)PyBytes_AS_STRING(valid),
        .count = numbers ? numbers - 1 : 0,
    };
    int has_bits = valid == Py_None || (size_t)PyBytes_GET_SIZE(valid) >= (strings->count + 7) / 8;
    if (numbers && has_bits && are_whole(strings))
        return 1;
    PyErr_SetString(PyExc_ValueError, "the buffers of a column do not fit together");
    return 0;
}

static int are_arguments(Py_ssize_t given, Py_ssize_t wanted)
{
    if (given != wanted)
        PyErr_Format(PyExc_TypeError, "%zd arguments, not %zd", wanted, given);
    return given == wanted;
}

static PyObject *plain(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    Strings strings;
    if (!are_arguments(count, 6) || !read_strings(arguments[1], arguments[2], arguments[3], &strings))
        return NULL;
    if (!PyBytes_Check(arguments[0])) {
        PyErr_SetString(PyExc_TypeError, "what comes before is bytes");
        return NULL;
    }
    size_t first = PyLong_AsSize_t(arguments[4]), last = PyErr_Occurred() ? 0 : PyLong_AsSize_t(arguments[5]);
    if (PyErr_Occurred())
        return NULL;
    last = last < strings.count ? last : strings.count;
    size_t before = (size_t)PyBytes_GET_SIZE(arguments[0]), length = plain_length(&strings, first, last);
    PyObject *found = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(before + length));
    if (!found)
        return NULL;
    uint8_t *to = (uint8_t *)PyBytes_AS_STRING(found) + before;
    memcpy(PyBytes_AS_STRING(found), PyBytes_AS_STRING(arguments[0]), before);
    Py_BEGIN_ALLOW_THREADS
    put_plain(&strings, first, last, to);
    Py_END_ALLOW_THREADS
    return found;
}

static PyObject *told(const Repeated *repeated)
{
    const Dictionary *dictionary = &repeated->dictionary;
    size_t most = most_runs(repeated, width_of(dictionary->count));
    PyObject *strings = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)dictionary->plain_length);
    PyObject *runs = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)most);
    if (!strings || !runs) {
        Py_XDECREF(strings);
        Py_XDECREF(runs);
        return NULL;
    }
    put_dictionary(dictionary, (uint8_t *)PyBytes_AS_STRING(strings));
    size_t length = put_runs(repeated, (uint8_t *)PyBytes_AS_STRING(runs));
    if (_PyBytes_Resize(&runs, (Py_ssize_t)length) < 0) {
        Py_DECREF(strings);
        return NULL;
    }
    return Py_BuildValue("INN", (unsigned int)dictionary->count, strings, runs);
}

static PyObject *repeated(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    Strings strings;
    Repeated found;
    int outcome;
    if (!are_arguments(count, 3) || !read_strings(arguments[0], arguments[1], arguments[2], &strings))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    outcome = find_repeated(&strings, seed, &found);
    Py_END_ALLOW_THREADS
    PyObject *result = NULL;
    if (outcome > 0)
        result = told(&found);
    else if (outcome == 0)
        result = Py_NewRef(Py_None);
    else
        PyErr_NoMemory();
    forget(&found);
    return result;
}

static PyObject *extremes(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    Strings strings;
    String least = {0}, greatest = {0};
    if (!are_arguments(count, 3) || !read_strings(arguments[0], arguments[1], arguments[2], &strings))
        return NULL;
    if (!find_extremes(&strings, &least, &greatest))
        Py_RETURN_NONE;
    return Py_BuildValue("y#y#", least.start, (Py_ssize_t)least.length, greatest.start, (Py_ssize_t)greatest.length);
}

static PyMethodDef methods[] = {
    {"plain", (PyCFunction)(void (*)(void))plain, METH_FASTCALL, "Strings, each behind its length."},
    {"repeated", (PyCFunction)(void (*)(void))repeated, METH_FASTCALL, "Different strings, and which one each is."},
    {"extremes", (PyCFunction)(void (*)(void))extremes, METH_FASTCALL, "The least and the greatest string."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "values", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_values(void)
{
    if (getentropy(&seed, sizeof seed) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    return PyModule_Create(&definition);
}
