/* The filter over halves of fingerprints for Python: ../core/near_words.h. */

#include "kernels.h"

#include "../core/near_words.h"

static PyObject *candidates_of(const Filter *filter, uint64_t fingerprint)
{
    int numbers[ASKED], count = find_candidates(filter, fingerprint, numbers);
    PyObject *found = PyList_New(count);
    for (int at = 0; found && at < count; at++) {
        PyObject *number = PyLong_FromLong(numbers[at]);
        if (!number)
            Py_CLEAR(found);
        else
            PyList_SET_ITEM(found, at, number);
    }
    return found;
}

/* -- for Python */

static int open_filter(PyObject *words, PyObject *masks, Py_buffer *held, Filter *filter)
{
    if (!PyBytes_CheckExact(masks) || PyBytes_GET_SIZE(masks) != MASKS * (Py_ssize_t)sizeof(uint64_t)) {
        PyErr_SetString(PyExc_ValueError, "there are 4096 masks of 8 bytes");
        return 0;
    }
    if (PyObject_GetBuffer(words, held, PyBUF_WRITABLE) < 0)
        return 0;
    uint64_t count = (uint64_t)held->len / sizeof(uint64_t);
    if (!count || count > UINT32_MAX || (uintptr_t)held->buf % sizeof(uint64_t)) {
        PyBuffer_Release(held);
        PyErr_SetString(PyExc_ValueError, "words are aligned, and 1 to 2**32");
        return 0;
    }
    *filter = (Filter){held->buf, count, (const uint64_t *)PyBytes_AS_STRING(masks)};
    return 1;
}

/* 0 with an exception set when it is no fingerprint. */
static int read_fingerprint(PyObject *number, uint64_t *fingerprint)
{
    *fingerprint = PyLong_AsUnsignedLongLong(number);
    return !(*fingerprint == UINT64_MAX && PyErr_Occurred());
}

static int is_call(PyObject *const *given, Py_ssize_t count, Py_ssize_t list)
{
    if (count == 3 && PyList_CheckExact(given[list]))
        return 1;
    PyErr_SetString(PyExc_TypeError, "three arguments, with a list of fingerprints");
    return 0;
}

static PyObject *near_add(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer held;
    Filter filter;
    uint64_t fingerprint;
    if (!is_call(given, count, 2) || !open_filter(given[0], given[1], &held, &filter))
        return NULL;
    int whole = 1;
    for (Py_ssize_t at = 0; whole && at < PyList_GET_SIZE(given[2]); at++)
        if ((whole = read_fingerprint(PyList_GET_ITEM(given[2], at), &fingerprint)))
            add_fingerprint(&filter, fingerprint);
    PyBuffer_Release(&held);
    if (!whole)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *near_find_candidates(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer held;
    Filter filter;
    uint64_t fingerprint;
    if (!is_call(given, count, 2) || !open_filter(given[0], given[1], &held, &filter))
        return NULL;
    PyObject *all = PyList_New(0);
    for (Py_ssize_t at = 0; all && at < PyList_GET_SIZE(given[2]); at++) {
        int is_read = read_fingerprint(PyList_GET_ITEM(given[2], at), &fingerprint);
        PyObject *found = is_read ? candidates_of(&filter, fingerprint) : NULL;
        if (!found || PyList_Append(all, found) < 0)
            Py_CLEAR(all);
        Py_XDECREF(found);
    }
    PyBuffer_Release(&held);
    return all;
}

static PyObject *select_close(PyObject *others, uint64_t fingerprint, long most)
{
    PyObject *found = PyList_New(0);
    for (Py_ssize_t at = 0; found && at < PyList_GET_SIZE(others); at++) {
        PyObject *number = PyList_GET_ITEM(others, at);
        uint64_t other;
        if (!read_fingerprint(number, &other))
            Py_CLEAR(found);
        else if (is_close(other, fingerprint, most) && PyList_Append(found, number) < 0)
            Py_CLEAR(found);
    }
    return found;
}

static PyObject *near_select_close(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    uint64_t fingerprint;
    if (!is_call(given, count, 1) || !read_fingerprint(given[0], &fingerprint))
        return NULL;
    long most = PyLong_AsLong(given[2]);
    if (most == -1 && PyErr_Occurred())
        return NULL;
    return select_close(given[1], fingerprint, most);
}

static PyObject *near_unpack_close(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    uint64_t fingerprint;
    if (count != 3 || !PyBytes_Check(given[1])) {
        PyErr_SetString(PyExc_TypeError, "a fingerprint, others in bytes, and how many bits may differ");
        return NULL;
    }
    if (!read_fingerprint(given[0], &fingerprint))
        return NULL;
    long most = PyLong_AsLong(given[2]);
    if (most == -1 && PyErr_Occurred())
        return NULL;
    const unsigned char *bytes = (const unsigned char *)PyBytes_AS_STRING(given[1]);
    PyObject *found = PyList_New(0);
    for (Py_ssize_t at = 0; found && at + FINGERPRINT <= PyBytes_GET_SIZE(given[1]); at += FINGERPRINT) {
        uint64_t other = fingerprint_at(bytes + at);
        if (!is_close(other, fingerprint, most))
            continue;
        PyObject *number = PyLong_FromUnsignedLongLong(other);
        if (!number || PyList_Append(found, number) < 0)
            Py_CLEAR(found);
        Py_XDECREF(number);
    }
    return found;
}

PyMethodDef near_words_functions[] = {
    {"near_add", FAST(near_add), "Add the halves of fingerprints."},
    {"near_find_candidates", FAST(near_find_candidates),
     "For each fingerprint the numbers of its probes that may be there."},
    {"near_select_close", FAST(near_select_close),
     "Those of many fingerprints that differ from one in so many bits at most."},
    {"near_unpack_close", FAST(near_unpack_close), "The same of fingerprints as they are stored, 8 bytes each."},
    {NULL, NULL, 0, NULL},
};
