/* Texts joined of pieces: first all that a text consists of is gathered, then it is written once, into as many bytes
 * as it takes. Nothing is measured twice and nothing can overrun. */

#ifndef SKITTER_PIECES_H
#define SKITTER_PIECES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "utf8_core.h"

enum { MOST_PIECES = 64, MOST_OWNED = 64, DIGITS = 24 };

typedef struct {
    const char *start;
    size_t length;
} Piece;

typedef struct {
    Piece pieces[MOST_PIECES];
    size_t count;
    size_t length;
} Text;

/* What was made on the way and lives as long as the pieces that look into it. */
typedef struct {
    PyObject *objects[MOST_OWNED];
    size_t count;
} Owned;

#define LITERAL(text, literal) put((text), (literal), sizeof(literal) - 1)

static inline void put(Text *text, const char *start, size_t length)
{
    /* All texts are made of fewer: a full one would be a bug, and shows as a text that is cut off. */
    if (text->count == MOST_PIECES)
        return;
    text->pieces[text->count++] = (Piece){start, length};
    text->length += length;
}

static inline void put_piece(Text *text, Piece piece)
{
    put(text, piece.start, piece.length);
}

static inline void put_text(Text *text, const Text *other)
{
    for (size_t at = 0; at < other->count; at++)
        put_piece(text, other->pieces[at]);
}

/* A number, into digits that live as long as the text; half the time of snprintf. */
static inline void put_number(Text *text, long long number, char digits[DIGITS])
{
    unsigned long long rest = number < 0 ? 0ULL - (unsigned long long)number : (unsigned long long)number;
    char *start = digits + DIGITS;
    do
        *--start = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0)
        *--start = '-';
    put(text, start, (size_t)(digits + DIGITS - start));
}

static inline char *written(const Text *text, char *to)
{
    for (size_t at = 0; at < text->count; at++) {
        memcpy(to, text->pieces[at].start, text->pieces[at].length);
        to += text->pieces[at].length;
    }
    return to;
}

static inline PyObject *as_bytes(const Text *text)
{
    PyObject *joined = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)text->length);
    if (joined)
        written(text, PyBytes_AS_STRING(joined));
    return joined;
}

static inline void disown(Owned *owned)
{
    while (owned->count)
        Py_DECREF(owned->objects[--owned->count]);
}

/* Takes over a reference; 0 when there is nothing to take or no room for it. */
static inline int own(Owned *owned, PyObject *object)
{
    if (!object)
        return 0;
    if (owned->count == MOST_OWNED) {
        Py_DECREF(object);
        PyErr_SetString(PyExc_SystemError, "too many pieces");
        return 0;
    }
    owned->objects[owned->count++] = object;
    return 1;
}

/* The UTF-8 of a str, with ? in place of what is no text: lone surrogates. */
static inline PyObject *utf8_of(PyObject *text)
{
    Py_ssize_t count = PyUnicode_GET_LENGTH(text);
    const void *from = PyUnicode_DATA(text);
    int width = PyUnicode_KIND(text);
    if (PyUnicode_IS_ASCII(text))
        return PyBytes_FromStringAndSize(from, count);
    if (width > 2 || count > PY_SSIZE_T_MAX / 4)
        return PyUnicode_AsEncodedString(text, "utf-8", "replace");
    PyObject *coded = PyBytes_FromStringAndSize(NULL, count * (width + 1));
    if (!coded)
        return NULL;
    uint8_t *start = (uint8_t *)PyBytes_AS_STRING(coded);
    uint8_t *end = width == 1 ? write_utf8_of_bytes(from, (size_t)count, start)
                              : write_utf8_of_pairs(from, (size_t)count, start);
    _PyBytes_Resize(&coded, end - start);
    return coded;
}

/* The same, of an ASCII str as it lies there. */
static inline int view_of(PyObject *object, Piece *piece, Owned *owned)
{
    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "a str is wanted, not %.50s", Py_TYPE(object)->tp_name);
        return 0;
    }
    if (PyUnicode_IS_COMPACT_ASCII(object)) {
        *piece = (Piece){(const char *)PyUnicode_1BYTE_DATA(object), (size_t)PyUnicode_GET_LENGTH(object)};
        return 1;
    }
    PyObject *coded = utf8_of(object);
    if (!own(owned, coded))
        return 0;
    *piece = (Piece){PyBytes_AS_STRING(coded), (size_t)PyBytes_GET_SIZE(coded)};
    return 1;
}

static inline int bytes_view_of(PyObject *object, Piece *piece)
{
    if (!PyBytes_Check(object)) {
        PyErr_Format(PyExc_TypeError, "bytes are wanted, not %.50s", Py_TYPE(object)->tp_name);
        return 0;
    }
    *piece = (Piece){PyBytes_AS_STRING(object), (size_t)PyBytes_GET_SIZE(object)};
    return 1;
}

/* Attributes, by names that are interned once: a new reference that `owned` keeps. */
static inline PyObject *attribute(PyObject *object, PyObject *name, Owned *owned)
{
    PyObject *found = PyObject_GetAttr(object, name);
    return own(owned, found) ? found : NULL;
}

static inline int string_attribute(PyObject *object, PyObject *name, Piece *piece, Owned *owned)
{
    PyObject *found = attribute(object, name, owned);
    return found && view_of(found, piece, owned);
}

static inline int float_attribute(PyObject *object, PyObject *name, double *value, Owned *owned)
{
    PyObject *found = attribute(object, name, owned);
    *value = found ? PyFloat_AsDouble(found) : -1.0;
    return !(*value == -1.0 && PyErr_Occurred());
}

static inline int integer_attribute(PyObject *object, PyObject *name, long long *value, Owned *owned)
{
    PyObject *found = attribute(object, name, owned);
    *value = found ? PyLong_AsLongLong(found) : -1;
    return !(*value == -1 && PyErr_Occurred());
}

static inline int truth_attribute(PyObject *object, PyObject *name, int *value, Owned *owned)
{
    PyObject *found = attribute(object, name, owned);
    *value = found ? PyObject_IsTrue(found) : -1;
    return *value >= 0;
}

#endif
