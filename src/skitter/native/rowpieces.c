/* A row of the tables as the journal has it: three pieces of msgpack, as skitter/archive/rowpieces_plain.py defines
 * them. A page's links become four columns, each joined by line feeds. */

#include "msgpack.h"

#include <math.h>
#include <stdint.h>
#include <structmember.h>

enum { LINK_COLUMNS = 4, DEEPEST = 32767, LONGEST_ETAG = 500, LONGEST_DATE = 100, DIGEST = 32, FIELD = 7 + 64 };

typedef struct {
    Piece *values;
    size_t lengths[LINK_COLUMNS];
    size_t count;
    PyObject **owned;
    size_t owned_count;
} Links;

enum Name {
    ADDRESS, BODY, CHARSET, DEPTH, DIRECTIVES, ENDED_AT, FAILURE, HEADERS, HTTP_VERSION, KIND, LANGUAGE, LINKS,
    MEDIA_TYPE, NEAR_DUPLICATE_OF, REDIRECT, REL, SENT_AT, SIMHASH, STATUS, TAG, TEXT, TITLE, TRUNCATED, NAMES
};

static const char *const NAME_TEXTS[NAMES] = {
    "address", "body", "charset", "depth", "directives", "ended_at", "failure", "headers", "http_version", "kind",
    "language", "links", "media_type", "near_duplicate_of", "redirect", "rel", "sent_at", "simhash", "status", "tag",
    "text", "title", "truncated",
};

static PyObject *names[NAMES];

static int put_attribute(Packed *packed, PyObject *of, enum Name name, Owned *owned)
{
    Piece piece;
    if (!string_attribute(of, names[name], &piece, owned))
        return 0;
    put_string(packed, piece);
    return 1;
}

static int put_given(Packed *packed, PyObject *given, Owned *owned)
{
    Piece piece;
    if (!view_of(given, &piece, owned))
        return 0;
    put_string(packed, piece);
    return 1;
}

/* The same instant as the record's WARC-Date, to the microsecond. */
static long long micros_of(double at)
{
    double second = floor(at);
    long long micros = (long long)((at - second) * 1e6);
    return (long long)second * 1000000 + (micros < 999999 ? micros : 999999);
}

static int put_before(Packed *packed, PyObject *const *given, Owned *owned)
{
    static const Piece LENGTH = {"length", 6}, NOTHING = {"", 0};
    PyObject *exchange = given[0], *said = given[1];
    double sent_at;
    long long status;
    int truncated;
    if (!put_given(packed, given[3], owned) || !put_given(packed, given[2], owned) ||
        !float_attribute(exchange, names[SENT_AT], &sent_at, owned) ||
        !integer_attribute(exchange, names[STATUS], &status, owned))
        return 0;
    if (!(fabs(sent_at) < 1e12)) {
        PyErr_SetString(PyExc_ValueError, "a time that no clock shows");
        return 0;
    }
    put_integer(packed, micros_of(sent_at));
    put_integer(packed, status);
    if (!put_attribute(packed, said, REDIRECT, owned) || !put_given(packed, given[4], owned) ||
        !put_given(packed, given[5], owned) || !put_attribute(packed, said, MEDIA_TYPE, owned) ||
        !put_attribute(packed, said, CHARSET, owned) || !put_attribute(packed, said, LANGUAGE, owned) ||
        !truth_attribute(exchange, names[TRUNCATED], &truncated, owned))
        return 0;
    put_string(packed, truncated ? LENGTH : NOTHING);
    return 1;
}

/* The first value of a header, by its lower-case name, no longer than `most` characters. */
static int put_header(Packed *packed, PyObject *headers, const char *name, Py_ssize_t most, Owned *owned)
{
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(headers); at++) {
        PyObject *header = PyTuple_GET_ITEM(headers, at);
        if (!PyTuple_Check(header) || PyTuple_GET_SIZE(header) != 2 || !PyUnicode_Check(PyTuple_GET_ITEM(header, 0)) ||
            !PyUnicode_Check(PyTuple_GET_ITEM(header, 1))) {
            PyErr_SetString(PyExc_TypeError, "a header is two strs");
            return 0;
        }
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(header, 0), name) != 0)
            continue;
        PyObject *value = PyTuple_GET_ITEM(header, 1);
        if (PyUnicode_GET_LENGTH(value) <= most)
            return put_given(packed, value, owned);
        value = PyUnicode_Substring(value, 0, most);
        return own(owned, value) && put_given(packed, value, owned);
    }
    put_string(packed, (Piece){"", 0});
    return 1;
}

static int put_between(Packed *packed, PyObject *exchange, PyObject *said, Owned *owned)
{
    PyObject *body = attribute(exchange, names[BODY], owned), *headers = attribute(exchange, names[HEADERS], owned);
    long long depth;
    double sent_at, ended_at;
    if (!body || !headers || !PyBytes_Check(body) || !PyTuple_Check(headers)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a body is bytes and headers are a tuple");
        return 0;
    }
    if (!put_attribute(packed, said, KIND, owned))
        return 0;
    put_integer(packed, PyBytes_GET_SIZE(body));
    if (!put_attribute(packed, said, TITLE, owned) || !integer_attribute(said, names[DEPTH], &depth, owned))
        return 0;
    put_integer(packed, depth < DEEPEST ? depth : DEEPEST);
    if (!put_attribute(packed, said, DIRECTIVES, owned) || !put_header(packed, headers, "etag", LONGEST_ETAG, owned) ||
        !put_header(packed, headers, "last-modified", LONGEST_DATE, owned) ||
        !put_attribute(packed, exchange, ADDRESS, owned) || !put_attribute(packed, exchange, HTTP_VERSION, owned) ||
        !float_attribute(exchange, names[SENT_AT], &sent_at, owned) ||
        !float_attribute(exchange, names[ENDED_AT], &ended_at, owned))
        return 0;
    put_float(packed, ended_at - sent_at > 0.0 ? (ended_at - sent_at) * 1000 : 0.0);
    return 1;
}

/* As `view_of`, for the many: what was made is kept in the links' own list. */
static int view_value(Links *links, size_t column, size_t at, PyObject *object)
{
    Owned one = {.count = 0};
    Piece piece;
    if (!view_of(object, &piece, &one))
        return 0;
    if (one.count)
        links->owned[links->owned_count++] = one.objects[0];
    links->values[column * links->count + at] = piece;
    links->lengths[column] += piece.length;
    return 1;
}

/* Where links of the type that was seen last keep what is read of them: a third of the time of asking for it. */
static struct {
    PyTypeObject *type;
    Py_ssize_t offsets[LINK_COLUMNS];
} layout;

static const enum Name LINK_NAMES[LINK_COLUMNS] = {LINKS, TEXT, REL, TAG};

static int learn_offset(PyTypeObject *type, size_t column)
{
    PyObject *member = PyObject_GetAttr((PyObject *)type, names[LINK_NAMES[column]]);
    if (!member)
        return 0;
    int is_slot = Py_IS_TYPE(member, &PyMemberDescr_Type) && PyType_IsSubtype(type, PyDescr_TYPE(member)) &&
                  ((PyMemberDescrObject *)member)->d_member->type == T_OBJECT_EX;
    if (is_slot)
        layout.offsets[column] = ((PyMemberDescrObject *)member)->d_member->offset;
    else
        PyErr_SetString(PyExc_TypeError, "links are structs");
    Py_DECREF(member);
    return is_slot;
}

static int learn_layout(PyTypeObject *type)
{
    Py_CLEAR(layout.type);
    for (size_t column = 1; column < LINK_COLUMNS; column++)
        if (!learn_offset(type, column))
            return 0;
    layout.type = (PyTypeObject *)Py_NewRef(type);
    return 1;
}

static int view_link(Links *links, size_t at, PyObject *given)
{
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != 2) {
        PyErr_SetString(PyExc_TypeError, "a link is its target and what the page says of it");
        return 0;
    }
    PyObject *link = PyTuple_GET_ITEM(given, 1);
    if ((Py_TYPE(link) != layout.type && !learn_layout(Py_TYPE(link))) ||
        !view_value(links, 0, at, PyTuple_GET_ITEM(given, 0)))
        return 0;
    for (size_t column = 1; column < LINK_COLUMNS; column++) {
        PyObject *value = *(PyObject **)((char *)link + layout.offsets[column]);
        if (!view_value(links, column, at, value ? value : Py_None))
            return 0;
    }
    return 1;
}

/* In one pass: what a link consists of lies anywhere in memory, and is fetched from there once. */
static int view_links(Links *links, PyObject *given)
{
    if (!PyTuple_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "links are a tuple");
        return 0;
    }
    size_t count = links->count = (size_t)PyTuple_GET_SIZE(given);
    links->values = PyMem_New(Piece, LINK_COLUMNS * count + 1);
    links->owned = PyMem_New(PyObject *, LINK_COLUMNS * count + 1);
    if (!links->values || !links->owned) {
        PyErr_NoMemory();
        return 0;
    }
    for (size_t at = 0; at < count; at++)
        if (!view_link(links, at, PyTuple_GET_ITEM(given, (Py_ssize_t)at)))
            return 0;
    for (int column = 0; column < LINK_COLUMNS; column++) {
        links->lengths[column] += count ? count - 1 : 0;
        if (links->lengths[column] > UINT32_MAX) {
            PyErr_SetString(PyExc_OverflowError, "links of more than 4 GB");
            return 0;
        }
    }
    return 1;
}

static void drop_links(Links *links)
{
    while (links->owned_count)
        Py_DECREF(links->owned[--links->owned_count]);
    PyMem_Free(links->owned);
    PyMem_Free(links->values);
}

/* A line feed within a value would be read as its end. */
static char *write_value(Piece value, char *to)
{
    for (size_t at = 0; at < value.length; at++)
        to[at] = value.start[at] == '\n' ? ' ' : value.start[at];
    return to + value.length;
}

static char *write_column(const Links *links, size_t column, char *to)
{
    for (size_t at = 0; at < links->count; at++) {
        if (at)
            *to++ = '\n';
        to = write_value(links->values[column * links->count + at], to);
    }
    return to;
}

static int put_simhash(Packed *packed, PyObject *said, Owned *owned)
{
    PyObject *simhash = attribute(said, names[SIMHASH], owned);
    if (!simhash)
        return 0;
    if (simhash == Py_None) {
        put_head(packed, 0xC0, 0, 0);
        return 1;
    }
    unsigned long long value = PyLong_AsUnsignedLongLong(simhash);
    put_unsigned(packed, value);
    return !(value == (unsigned long long)-1 && PyErr_Occurred());
}

static void spell_digest(Piece digest, char *field)
{
    static const char HEX[] = "0123456789abcdef";
    memcpy(field, "sha256:", 7);
    for (size_t at = 0; at < DIGEST; at++) {
        field[7 + 2 * at] = HEX[(uint8_t)digest.start[at] >> 4];
        field[8 + 2 * at] = HEX[digest.start[at] & 15];
    }
}

/* What comes before the links, with the text; what comes after them, its digest, which is spelled in `field`. */
static int put_after(Packed *first, Packed *last, char *field, PyObject *const *given, Owned *owned)
{
    PyObject *said = given[1];
    Piece text, digest;
    if (!put_simhash(first, said, owned) || !put_attribute(first, said, NEAR_DUPLICATE_OF, owned) ||
        !put_attribute(first, said, FAILURE, owned) || !bytes_view_of(given[6], &text))
        return 0;
    put_binary(first, text);
    if (!bytes_view_of(given[7], &digest) || (digest.length && digest.length != DIGEST)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "a digest has 32 bytes");
        return 0;
    }
    if (digest.length)
        spell_digest(digest, field);
    put_string(last, (Piece){field, digest.length ? FIELD : 0});
    return 1;
}

static PyObject *joined_after(const Packed *first, const Links *links, const Packed *last)
{
    Packed heads[LINK_COLUMNS];
    size_t length = first->text.length + last->text.length;
    for (size_t column = 0; column < LINK_COLUMNS; column++) {
        clear(&heads[column]);
        put_string_head(&heads[column], links->lengths[column]);
        length += heads[column].text.length + links->lengths[column];
    }
    PyObject *joined = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)length);
    if (!joined)
        return NULL;
    char *to = written(&first->text, PyBytes_AS_STRING(joined));
    for (size_t column = 0; column < LINK_COLUMNS; column++) {
        to = written(&heads[column].text, to);
        to = write_column(links, column, to);
    }
    written(&last->text, to);
    return joined;
}

static PyObject *after_of(PyObject *const *given, Owned *owned)
{
    Packed first, last;
    Links links = {.count = 0};
    char field[FIELD];
    clear(&first);
    clear(&last);
    PyObject *after = NULL;
    int with_links = PyObject_IsTrue(given[8]);
    PyObject *all = with_links > 0 ? attribute(given[1], names[LINKS], owned) : NULL;
    if (with_links >= 0 && (!with_links || (all && view_links(&links, all))) && put_after(&first, &last, field, given, owned))
        after = joined_after(&first, &links, &last);
    drop_links(&links);
    return after;
}

static PyObject *pieces_of(PyObject *const *given, Owned *owned)
{
    Packed before, between;
    clear(&before);
    clear(&between);
    if (!put_before(&before, given, owned) || !put_between(&between, given[0], given[1], owned))
        return NULL;
    PyObject *first = as_bytes(&before.text), *second = as_bytes(&between.text), *third = after_of(given, owned);
    PyObject *pieces = first && second && third ? PyTuple_Pack(3, first, second, third) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(second);
    Py_XDECREF(third);
    return pieces;
}

static PyObject *row_pieces(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    if (count != 9) {
        PyErr_SetString(PyExc_TypeError, "row_pieces takes 9 values");
        return NULL;
    }
    Owned owned = {.count = 0};
    PyObject *pieces = pieces_of(given, &owned);
    disown(&owned);
    return pieces;
}

static PyObject *utf8(PyObject *module, PyObject *text)
{
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a text is a str");
        return NULL;
    }
    return utf8_of(text);
}

static PyMethodDef methods[] = {
    {"utf8", utf8, METH_O, "A text as UTF-8, with ? for what is no text."},
    {"row_pieces", (PyCFunction)(void (*)(void))row_pieces, METH_FASTCALL, "A row in three pieces."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "rowpieces", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_rowpieces(void)
{
    for (int at = 0; at < NAMES; at++)
        if (!(names[at] = PyUnicode_InternFromString(NAME_TEXTS[at])))
            return NULL;
    return PyModule_Create(&definition);
}
