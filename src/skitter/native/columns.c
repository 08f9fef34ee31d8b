/* A stretch of a journal of rows as the buffers of Arrow's columns, as skitter/archive/columns_plain.py defines them.
 *
 * It takes milliseconds, in a thread beside the crawl: what reads and writes runs without the interpreter's lock. The
 * journal cannot change meanwhile, and nobody else knows of the buffers yet. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "columns_core.h"

enum { ROOM = 3 * COLUMNS + 3 };

/* The buffers, in the order in which they were made. */
typedef struct {
    PyObject *made[ROOM];
    size_t count;
    int failed;
} Buffers;

static void *buffer_of(Buffers *buffers, size_t size)
{
    PyObject *buffer = buffers->failed ? NULL : PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (!buffer) {
        buffers->failed = 1;
        return NULL;
    }
    buffers->made[buffers->count++] = buffer;
    return PyBytes_AS_STRING(buffer);
}

static size_t size_of(const Column *column, char kind)
{
    switch (kind) {
    case 'i':
    case 'u': return 8 * column->values;
    case 'f':
    case 'p': return 4 * column->values;
    default: return column->length;
    }
}

static int has_ends(char kind)
{
    return is_string(kind) || kind == 't' || kind == 'l';
}

static int make_room(Stretch *stretch, Buffers *buffers)
{
    for (int at = 0; at < COLUMNS; at++) {
        Column *column = &stretch->columns[at];
        column->bytes = buffer_of(buffers, size_of(column, KINDS[at]));
        if (has_ends(KINDS[at]))
            column->ends = buffer_of(buffers, sizeof(int32_t) * (column->values + 1));
        if (may_be_nothing(KINDS[at]) && (column->valid = buffer_of(buffers, (column->values + 7) / 8)))
            memset(column->valid, 0, (column->values + 7) / 8);
    }
    stretch->link_rows = buffer_of(buffers, sizeof(int32_t) * stretch->told_links);
    stretch->link_ends = buffer_of(buffers, sizeof(int32_t) * (stretch->told_links + 1));
    stretch->text_rows = buffer_of(buffers, sizeof(int32_t) * stretch->told_texts);
    return !buffers->failed;
}

/* (values, bytes, ends or None, valid or None) of each column. */
static PyObject *described(const Stretch *stretch, const Buffers *buffers)
{
    PyObject *columns = PyTuple_New(COLUMNS);
    size_t next = 0;
    for (int at = 0; columns && at < COLUMNS; at++) {
        PyObject *bytes = buffers->made[next++];
        PyObject *ends = has_ends(KINDS[at]) ? buffers->made[next++] : Py_None;
        PyObject *valid = may_be_nothing(KINDS[at]) ? buffers->made[next++] : Py_None;
        PyObject *column = Py_BuildValue("nOOO", (Py_ssize_t)stretch->columns[at].values, bytes, ends, valid);
        if (column)
            PyTuple_SET_ITEM(columns, at, column);
        else
            Py_CLEAR(columns);
    }
    if (!columns)
        return NULL;
    return Py_BuildValue("nNOOO", (Py_ssize_t)stretch->rows, columns, buffers->made[next], buffers->made[next + 1],
                         buffers->made[next + 2]);
}

static PyObject *read_columns(const uint8_t *bytes, size_t length)
{
    Stretch stretch;
    Buffers buffers = {.count = 0};
    int is_understood;
    Py_BEGIN_ALLOW_THREADS
    is_understood = measure(bytes, length, &stretch);
    Py_END_ALLOW_THREADS
    if (!is_understood)
        Py_RETURN_NONE;
    PyObject *result = NULL;
    if (make_room(&stretch, &buffers)) {
        Py_BEGIN_ALLOW_THREADS
        write_columns(bytes, length, &stretch);
        Py_END_ALLOW_THREADS
        result = described(&stretch, &buffers);
    }
    while (buffers.count)
        Py_DECREF(buffers.made[--buffers.count]);
    return result;
}

/* Of bytes or a part of them: to cut off half a row would be to copy 16 MB. */
static PyObject *columns_of(PyObject *module, PyObject *journal)
{
    Py_buffer view;
    if (PyObject_GetBuffer(journal, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *columns = NULL;
    if (view.readonly)
        columns = read_columns(view.buf, (size_t)view.len);
    else
        PyErr_SetString(PyExc_TypeError, "a journal is bytes, which nobody changes meanwhile");
    PyBuffer_Release(&view);
    return columns;
}

static PyMethodDef methods[] = {
    {"columns_of", columns_of, METH_O, "The rows of a journal by column; None when they are not of this version."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "columns", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_columns(void)
{
    return PyModule_Create(&definition);
}
