/* The figures of a text, as skitter/parse/fingerprints/figures_plain.py defines them. */

#include "kernels.h"

#include "../core/figures.h"

/* The first characters of a text, one byte each: what is not ASCII is no digit, whatever byte stands for it. */
static const uint8_t *characters_of(PyObject *text, size_t most, uint8_t *room)
{
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    if (kind == PyUnicode_1BYTE_KIND)
        return data;
    for (size_t i = 0; i < most; i++) {
        uint32_t code = kind == PyUnicode_2BYTE_KIND ? ((const Py_UCS2 *)data)[i] : ((const Py_UCS4 *)data)[i];
        room[i] = code < 0x80 ? (uint8_t)code : 0xFF;
    }
    return room;
}

static int read_text(Figures *found, PyObject *text, void (*note)(Figures *, uint64_t))
{
    static uint8_t room[MOST_CHARACTERS];
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a text is a str");
        return -1;
    }
    if (PyUnicode_READY(text) < 0)
        return -1;
    size_t length = (size_t)PyUnicode_GET_LENGTH(text), most = length < MOST_CHARACTERS ? length : MOST_CHARACTERS;
    read_numbers(found, characters_of(text, most, room), most, note);
    return 0;
}

static PyObject *figures(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "figures takes a text, a URL and a title");
        return NULL;
    }
    Figures found = {.names = 0};
    if (read_text(&found, arguments[1], note_in_name) || read_text(&found, arguments[2], note_in_name) ||
        read_text(&found, arguments[0], note_in_text))
        return NULL;
    uint8_t marks[2 * MARKS_KEPT];
    for (int i = 0; i < found.kept; i++) {
        marks[2 * i] = (uint8_t)(found.marks[i] >> 8);
        marks[2 * i + 1] = (uint8_t)found.marks[i];
    }
    return PyBytes_FromStringAndSize((const char *)marks, 2 * found.kept);
}

PyMethodDef figures_functions[] = {
    {"figures", FAST(figures), "The figures of a text: marks of numbers that are not in its URL or title."},
    {NULL, NULL, 0, NULL},
};
