/* One field of many rows: skitter/frontier/rocks/fields_plain.py defines what is found.
 *
 * Rows are arrays in msgpack; what lies before the field is passed over, whatever it is. Every length is checked, and
 * nothing is kept here. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* What is left of a row. `lost` once it ended before it should have. */
typedef struct {
    const uint8_t *at, *end;
    int lost;
} Rest;

static uint64_t number(Rest *rest, int width)
{
    uint64_t found = 0;
    if (rest->end - rest->at < width) {
        rest->lost = 1;
        return 0;
    }
    for (; width > 0; width--)
        found = found << 8 | *rest->at++;
    return found;
}

static void pass(Rest *rest, uint64_t bytes)
{
    if ((uint64_t)(rest->end - rest->at) < bytes)
        rest->lost = 1;
    else
        rest->at += bytes;
}

/* Passes over one value; of one that has others in it only over its head. Returns how many those are. */
static uint64_t pass_value(Rest *rest)
{
    unsigned first = (unsigned)number(rest, 1);
    if (rest->lost || first < 0x80 || first >= 0xE0)
        return 0;
    if (first < 0x90)
        return 2 * (uint64_t)(first & 0x0F);
    if (first < 0xA0)
        return first & 0x0F;
    if (first < 0xC0) {
        pass(rest, first & 0x1F);
        return 0;
    }
    switch (first) {
    case 0xC0: case 0xC2: case 0xC3: return 0;
    case 0xC4: case 0xD9: pass(rest, number(rest, 1)); return 0;
    case 0xC5: case 0xDA: pass(rest, number(rest, 2)); return 0;
    case 0xC6: case 0xDB: pass(rest, number(rest, 4)); return 0;
    case 0xCC: case 0xD0: pass(rest, 1); return 0;
    case 0xCD: case 0xD1: pass(rest, 2); return 0;
    case 0xCA: case 0xCE: case 0xD2: pass(rest, 4); return 0;
    case 0xCB: case 0xCF: case 0xD3: pass(rest, 8); return 0;
    case 0xDC: return number(rest, 2);
    case 0xDD: return number(rest, 4);
    case 0xDE: return 2 * number(rest, 2);
    case 0xDF: return 2 * number(rest, 4);
    default: rest->lost = 1; return 0; /* an extension, or what is never used: rows have neither */
    }
}

static uint64_t fields_of(Rest *rest)
{
    unsigned first = (unsigned)number(rest, 1);
    if (first >= 0x90 && first < 0xA0)
        return first & 0x0F;
    if (first == 0xDC || first == 0xDD)
        return number(rest, first == 0xDC ? 2 : 4);
    rest->lost = 1;
    return 0;
}

/* The bytes that the field is; NULL when there is no such field, or it is something else. */
static PyObject *field(Rest rest, uint64_t wanted)
{
    uint64_t left = wanted;
    if (fields_of(&rest) <= wanted)
        rest.lost = 1;
    for (; left && !rest.lost; left--) {
        uint64_t inside = pass_value(&rest);
        if (inside > (uint64_t)(rest.end - rest.at)) /* each is a byte at least */
            rest.lost = 1;
        left += inside;
    }
    unsigned first = rest.lost ? 0 : (unsigned)number(&rest, 1);
    uint64_t length = first >= 0xC4 && first <= 0xC6 ? number(&rest, 1 << (first - 0xC4)) : 0;
    if (!rest.lost && first >= 0xC4 && first <= 0xC6 && length <= (uint64_t)(rest.end - rest.at))
        return PyBytes_FromStringAndSize((const char *)rest.at, (Py_ssize_t)length);
    PyErr_SetString(PyExc_ValueError, "no row with bytes in that place");
    return NULL;
}

/* The value of a pair of key and row. */
static PyObject *row_in(PyObject *pair)
{
    if (PyTuple_CheckExact(pair) && PyTuple_GET_SIZE(pair) == 2 && PyBytes_CheckExact(PyTuple_GET_ITEM(pair, 1)))
        return PyTuple_GET_ITEM(pair, 1);
    PyErr_SetString(PyExc_TypeError, "rows are pairs of key and bytes");
    return NULL;
}

static PyObject *bytes_at(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    if (count != 2 || !PyList_CheckExact(given[0]) || !PyLong_CheckExact(given[1])) {
        PyErr_SetString(PyExc_TypeError, "a list of rows and the number of a field");
        return NULL;
    }
    long wanted = PyLong_AsLong(given[1]);
    if (wanted < 0 || wanted > 0xFFFF) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "no row has such a field");
        return NULL;
    }
    Py_ssize_t rows = PyList_GET_SIZE(given[0]);
    PyObject *found = PyList_New(rows);
    for (Py_ssize_t at = 0; found && at < rows; at++) {
        PyObject *row = row_in(PyList_GET_ITEM(given[0], at)), *value = NULL;
        if (row) {
            const uint8_t *first = (const uint8_t *)PyBytes_AS_STRING(row);
            value = field((Rest){first, first + PyBytes_GET_SIZE(row), 0}, (uint64_t)wanted);
        }
        if (value)
            PyList_SET_ITEM(found, at, value);
        else
            Py_CLEAR(found);
    }
    return found;
}

static PyMethodDef methods[] = {
    {"bytes_at", (PyCFunction)(void (*)(void))bytes_at, METH_FASTCALL, "The bytes in one field of each row."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "fields", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_fields(void)
{
    return PyModule_Create(&definition);
}
