/* The index line and the row of a record whose place is known by now, as skitter/archive/placing_plain.py defines them. */

#include "msgpack.h"

enum { FRAME = 5 };

typedef struct {
    Piece line, segment, revisit_of, before, between;
    PyObject *after;
    long long offset, length;
} Record;

static int read_row(PyObject *row, Record *record)
{
    record->after = NULL;
    if (row == Py_None)
        return 1;
    if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) != 3 || !PyBytes_Check(PyTuple_GET_ITEM(row, 2))) {
        PyErr_SetString(PyExc_TypeError, "a row is three pieces");
        return 0;
    }
    record->after = PyTuple_GET_ITEM(row, 2);
    return bytes_view_of(PyTuple_GET_ITEM(row, 0), &record->before) &&
           bytes_view_of(PyTuple_GET_ITEM(row, 1), &record->between);
}

static PyObject *whole_line(const Record *record)
{
    char length[DIGITS], offset[DIGITS];
    Text text = {.count = 0};
    put_piece(&text, record->line);
    LITERAL(&text, "\"length\": \"");
    put_number(&text, record->length, length);
    LITERAL(&text, "\", \"offset\": \"");
    put_number(&text, record->offset, offset);
    LITERAL(&text, "\", \"filename\": \"");
    put_piece(&text, record->segment);
    LITERAL(&text, "\"}\n");
    return as_bytes(&text);
}

/* In two pieces, of which the second is long and stays as it is. */
static PyObject *framed_row(const Record *record)
{
    static const char ARRAY[] = {(char)0xDC, 0, 33};
    char frame[FRAME] = {(char)0xC1};
    Packed place, original;
    Text text = {.count = 0};
    clear(&place);
    clear(&original);
    put_integer(&place, record->offset);
    put_integer(&place, record->length);
    put_string(&original, record->revisit_of);
    put(&text, frame, FRAME);
    put(&text, ARRAY, sizeof ARRAY);
    put_piece(&text, record->before);
    put_text(&text, &place.text);
    put_piece(&text, record->between);
    put_text(&text, &original.text);
    size_t length = text.length - FRAME + (size_t)PyBytes_GET_SIZE(record->after);
    if (length > UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a row of more than 4 GB");
        return NULL;
    }
    for (int at = 1; at < FRAME; at++, length >>= 8)
        frame[at] = (char)(length & 0xFF);
    return as_bytes(&text);
}

static PyObject *placed_of(const Record *record)
{
    PyObject *line = whole_line(record), *row = NULL;
    if (line && record->after) {
        PyObject *start = framed_row(record);
        row = start ? PyTuple_Pack(2, start, record->after) : NULL;
        Py_XDECREF(start);
    } else if (line) {
        row = PyTuple_New(0);
    }
    PyObject *placed = row ? PyTuple_Pack(2, line, row) : NULL;
    Py_XDECREF(line);
    Py_XDECREF(row);
    return placed;
}

static PyObject *placed_texts(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Owned owned = {.count = 0};
    Record record;
    if (count != 6) {
        PyErr_SetString(PyExc_TypeError, "placed_texts takes 6 values");
        return NULL;
    }
    record.offset = PyLong_AsLongLong(given[2]);
    record.length = PyLong_AsLongLong(given[3]);
    PyObject *placed = NULL;
    if (!PyErr_Occurred() && bytes_view_of(given[0], &record.line) && read_row(given[1], &record) &&
        view_of(given[4], &record.segment, &owned) && view_of(given[5], &record.revisit_of, &owned))
        placed = placed_of(&record);
    disown(&owned);
    return placed;
}

static PyMethodDef methods[] = {
    {"placed_texts", (PyCFunction)(void (*)(void))placed_texts, METH_FASTCALL, "The whole index line, and the row."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "placing", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_placing(void)
{
    return PyModule_Create(&definition);
}
