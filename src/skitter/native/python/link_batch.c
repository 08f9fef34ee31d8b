/* Some links of a batch as objects, and a batch without some of its links. The Python twin beside the link batches of
 * skitter/frontier defines both.
 *
 * Of thirty URLs in one string two or three are wanted: the others are passed over, and never become strings. */

#include "kernels.h"

#include "../core/link_batch.h"

enum { AUTHORITY = 8 };
/* The arguments, by their places. */
enum { KEYS, URLS, NUMBERS, MAKE, COMMON, ALIKE = 7, TO_SELECT = COMMON + ALIKE, SECTION = MAKE, PAGE, TO_SPLIT };

static PyObject *names;

/* A place in a string of lines. */
typedef struct {
    PyObject *text;
    Py_ssize_t number, start, end; /* of a line; its end is beyond the text when there is none */
} Lines;

static int find_end(Lines *lines)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(lines->text);
    lines->end = PyUnicode_FindChar(lines->text, '\n', lines->start, length, 1);
    if (lines->end == -1)
        lines->end = length;
    return lines->end >= 0;
}

/* False, with an error set, where there is no such line. */
static int go_to(Lines *lines, Py_ssize_t number)
{
    if (lines->end < 0 || number < lines->number) {
        lines->number = lines->start = 0;
        if (!find_end(lines))
            return 0;
    }
    for (; lines->number < number && lines->end < PyUnicode_GET_LENGTH(lines->text); lines->number++) {
        lines->start = lines->end + 1;
        if (!find_end(lines))
            return 0;
    }
    if (number >= 0 && lines->number == number)
        return 1;
    PyErr_SetString(PyExc_IndexError, "no such link");
    return 0;
}

static PyObject *host_of(PyObject *url)
{
    Py_ssize_t slash = PyUnicode_FindChar(url, '/', AUTHORITY, PyUnicode_GET_LENGTH(url), 1);
    if (slash >= 0)
        return PyUnicode_Substring(url, 0, slash);
    if (slash == -1)
        PyErr_SetString(PyExc_ValueError, "no URL");
    return NULL;
}

static PyObject *key_at(PyObject *keys, Py_ssize_t number)
{
    if (number < PyBytes_GET_SIZE(keys) / LINK_KEY)
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(keys) + number * LINK_KEY, LINK_KEY);
    PyErr_SetString(PyExc_IndexError, "no such key");
    return NULL;
}

/* What `make` makes of the link at that place. */
static PyObject *link_at(PyObject *const *given, Lines *lines, Py_ssize_t number)
{
    if (!go_to(lines, number))
        return NULL;
    PyObject *url = PyUnicode_Substring(lines->text, lines->start, lines->end);
    PyObject *key = url ? key_at(given[KEYS], number) : NULL;
    PyObject *host = key ? host_of(url) : NULL;
    PyObject *link = NULL;
    if (host) {
        PyObject *parts[3 + ALIKE] = {url, key, host};
        memcpy(parts + 3, given + COMMON, ALIKE * sizeof *parts);
        link = PyObject_Vectorcall(given[MAKE], parts, 0, names);
    }
    Py_XDECREF(url);
    Py_XDECREF(key);
    Py_XDECREF(host);
    return link;
}

static int fill(PyObject *const *given, PyObject *numbers, PyObject *links)
{
    Lines lines = {given[URLS], 0, 0, -1};
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(numbers); i++) {
        Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GET_ITEM(numbers, i));
        PyObject *link = number == -1 && PyErr_Occurred() ? NULL : link_at(given, &lines, number);
        if (!link)
            return 0;
        PyList_SET_ITEM(links, i, link);
    }
    return 1;
}

static PyObject *select_links(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    if (count != TO_SELECT || !PyBytes_CheckExact(given[KEYS]) || !PyUnicode_CheckExact(given[URLS])) {
        PyErr_SetString(PyExc_TypeError, "keys, URLs, numbers, a maker, and what links have in common");
        return NULL;
    }
    /* A tuple of our own: the maker may be Python code. */
    PyObject *numbers = PySequence_Tuple(given[NUMBERS]);
    PyObject *links = numbers ? PyList_New(PyTuple_GET_SIZE(numbers)) : NULL;
    if (links && !fill(given, numbers, links))
        Py_CLEAR(links);
    Py_XDECREF(numbers);
    return links;
}

/* -- a batch without some of its links, whose strings are ASCII */

static int mark_kept(PyObject *numbers, char *is_kept, Py_ssize_t links)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(numbers); i++) {
        Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GET_ITEM(numbers, i));
        if (number < 0 || number >= links) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_IndexError, "no such link");
            return 0;
        }
        is_kept[number] = 1;
    }
    return 1;
}

static Text text_of(PyObject *ascii)
{
    return (Text){(const char *)PyUnicode_1BYTE_DATA(ascii), (size_t)PyUnicode_GET_LENGTH(ascii)};
}

/* For the kept keys, the flags, the tails and the URLs, in that order. */
static char *room_for(Py_ssize_t links, Py_ssize_t url_bytes)
{
    char *room = PyMem_Malloc((size_t)(links * (LINK_KEY + 1 + LINK_TAIL) + url_bytes + 1));
    if (!room)
        PyErr_NoMemory();
    return room;
}

static PyObject *split_in(char *room, PyObject *const *given, PyObject *numbers, Py_ssize_t links)
{
    char *is_kept = room + links * LINK_KEY;
    Split split = {room, is_kept + links + links * LINK_TAIL, is_kept + links, 0, 0, 0};
    memset(is_kept, 0, (size_t)links);
    if (!mark_kept(numbers, is_kept, links))
        return NULL;
    if (split_links(PyBytes_AS_STRING(given[KEYS]), is_kept, (size_t)links, text_of(given[URLS]),
            text_of(given[SECTION]), text_of(given[PAGE]), &split))
        return Py_BuildValue("y#s#y#", split.keys, (Py_ssize_t)(split.links * LINK_KEY), split.urls,
            (Py_ssize_t)split.url_bytes, split.tails, (Py_ssize_t)split.tail_bytes);
    PyErr_SetString(PyExc_ValueError, "as many URLs as keys");
    return NULL;
}

static PyObject *split_batch(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    int fits = count == TO_SPLIT && PyBytes_CheckExact(given[KEYS]);
    for (int text = 0; fits && text < 3; text++) {
        PyObject *one = given[(int[]){URLS, SECTION, PAGE}[text]];
        fits = PyUnicode_CheckExact(one) && PyUnicode_IS_ASCII(one);
    }
    if (!fits) {
        PyErr_SetString(PyExc_TypeError, "keys, URLs, numbers, a section and a page's URL, in ASCII");
        return NULL;
    }
    Py_ssize_t links = PyBytes_GET_SIZE(given[KEYS]) / LINK_KEY;
    PyObject *numbers = PySequence_Tuple(given[NUMBERS]);
    char *room = numbers ? room_for(links, PyUnicode_GET_LENGTH(given[URLS])) : NULL;
    PyObject *split = room ? split_in(room, given, numbers, links) : NULL;
    PyMem_Free(room);
    Py_XDECREF(numbers);
    return split;
}

PyMethodDef link_batch_functions[] = {
    {"split_batch", FAST(split_batch),
     "Keys and URLs of some links, and the tails of keys of the others that lie in a section."},
    {"select_links", FAST(select_links), "Some links of a batch as objects, by their places."},
    {NULL, NULL, 0, NULL},
};

/* Interned, as the names of a class's fields are: else each is compared letter by letter. */
int start_link_batch(void)
{
    static const char *const said[] = {
        "url", "key", "host", "depth", "via", "parent", "hops", "priority", "kind", "nesting"};
    const Py_ssize_t count = sizeof said / sizeof *said;
    names = PyTuple_New(count);
    for (Py_ssize_t i = 0; names && i < count; i++) {
        PyObject *name = PyUnicode_InternFromString(said[i]);
        if (!name)
            Py_CLEAR(names);
        else
            PyTuple_SET_ITEM(names, i, name);
    }
    return names ? 0 : -1;
}
