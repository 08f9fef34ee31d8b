/* Some links of a bundle, and a bundle without some of them: skitter/frontier/bundles_plain.py defines both.
 *
 * Of thirty URLs in one string two or three are wanted: the others are passed over, and never become strings. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { KEY = 16, MARK = 4, AUTHORITY = 8 };
/* What is given, by its place. */
enum { KEYS, URLS, NUMBERS, MAKE, COMMON, ALIKE = 6, PICKED = COMMON + ALIKE, SECTION = MAKE, PAGE, PARTED };

static PyObject *names;

/* Where in a string of lines one has got to. */
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
    if (number < PyBytes_GET_SIZE(keys) / KEY)
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(keys) + number * KEY, KEY);
    PyErr_SetString(PyExc_IndexError, "no such key");
    return NULL;
}

/* What `make` says of the link at that place. */
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

static PyObject *picked(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    if (count != PICKED || !PyBytes_CheckExact(given[KEYS]) || !PyUnicode_CheckExact(given[URLS])) {
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

/* -- a bundle without some of its links, whose strings are ASCII */

typedef struct {
    const char *bytes;
    Py_ssize_t length;
} Text;

/* What is kept of a bundle, and marks of what is left out; each has room for all. */
typedef struct {
    char *keys, *urls, *marks;
    Py_ssize_t links, url_bytes, marked;
} Parts;

static int begins_with(const char *bytes, Py_ssize_t length, const char *start, Py_ssize_t least)
{
    return length >= least && !memcmp(bytes, start, (size_t)least);
}

static void keep(Parts *parts, const char *key, Text line)
{
    if (parts->links)
        parts->urls[parts->url_bytes++] = '\n';
    memcpy(parts->urls + parts->url_bytes, line.bytes, (size_t)line.length);
    memcpy(parts->keys + parts->links * KEY, key, KEY);
    parts->url_bytes += line.length;
    parts->links++;
}

/* Of what lies in the page's section, but is none of the folders that the page lies in. */
static void leave_out(Parts *parts, const char *key, Text line, Text section, Text page)
{
    if (!page.length || !begins_with(line.bytes, line.length, section.bytes, section.length)
        || begins_with(page.bytes, page.length, line.bytes, line.length))
        return;
    memcpy(parts->marks + parts->marked, key + KEY - MARK, MARK);
    parts->marked += MARK;
}

/* `kept` says of each key whether it is; gives how many lines there were, or one more than keys. */
static Py_ssize_t part(
    const char *keys, const char *kept, Py_ssize_t links, Text urls, Text section, Text page, Parts *parts)
{
    const char *at = urls.bytes, *end = urls.bytes + urls.length;
    for (Py_ssize_t number = 0; number < links; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        Text line = {at, (stop ? stop : end) - at};
        if (kept[number])
            keep(parts, keys + number * KEY, line);
        else
            leave_out(parts, keys + number * KEY, line, section, page);
        if (!stop)
            return number + 1;
        at = stop + 1;
    }
    return links + 1;
}

static int mark_kept(PyObject *numbers, char *kept, Py_ssize_t links)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(numbers); i++) {
        Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GET_ITEM(numbers, i));
        if (number < 0 || number >= links) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_IndexError, "no such link");
            return 0;
        }
        kept[number] = 1;
    }
    return 1;
}

static Text text_of(PyObject *ascii)
{
    return (Text){(const char *)PyUnicode_1BYTE_DATA(ascii), PyUnicode_GET_LENGTH(ascii)};
}

static PyObject *made_of(const Parts *parts)
{
    return Py_BuildValue(
        "y#s#y#", parts->keys, parts->links * KEY, parts->urls, parts->url_bytes, parts->marks, parts->marked);
}

/* For the kept keys, the flags, the marks and the URLs, in that order. */
static char *room_for(Py_ssize_t links, Py_ssize_t url_bytes)
{
    char *room = PyMem_Malloc((size_t)(links * (KEY + 1 + MARK) + url_bytes + 1));
    if (!room)
        PyErr_NoMemory();
    return room;
}

static PyObject *parted_in(char *room, PyObject *const *given, PyObject *numbers, Py_ssize_t links)
{
    char *flags = room + links * KEY;
    Parts parts = {room, flags + links + links * MARK, flags + links, 0, 0, 0};
    memset(flags, 0, (size_t)links);
    if (!mark_kept(numbers, flags, links))
        return NULL;
    Py_ssize_t lines = part(
        PyBytes_AS_STRING(given[KEYS]), flags, links, text_of(given[URLS]), text_of(given[SECTION]),
        text_of(given[PAGE]), &parts);
    if (lines == links)
        return made_of(&parts);
    PyErr_SetString(PyExc_ValueError, "as many URLs as keys");
    return NULL;
}

static PyObject *parted(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    int fits = count == PARTED && PyBytes_CheckExact(given[KEYS]);
    for (int text = 0; fits && text < 3; text++) {
        PyObject *one = given[(int[]){URLS, SECTION, PAGE}[text]];
        fits = PyUnicode_CheckExact(one) && PyUnicode_IS_ASCII(one);
    }
    if (!fits) {
        PyErr_SetString(PyExc_TypeError, "keys, URLs, numbers, a section and a page's URL, in ASCII");
        return NULL;
    }
    Py_ssize_t links = PyBytes_GET_SIZE(given[KEYS]) / KEY;
    PyObject *numbers = PySequence_Tuple(given[NUMBERS]);
    char *room = numbers ? room_for(links, PyUnicode_GET_LENGTH(given[URLS])) : NULL;
    PyObject *parts = room ? parted_in(room, given, numbers, links) : NULL;
    PyMem_Free(room);
    Py_XDECREF(numbers);
    return parts;
}

static PyMethodDef methods[] = {
    {"parted", (PyCFunction)(void (*)(void))parted, METH_FASTCALL,
     "Keys and URLs of some links, and marks of the others that lie in a section."},
    {"picked", (PyCFunction)(void (*)(void))picked, METH_FASTCALL, "Some links of a bundle, by their places."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "bundles", NULL, -1, methods, NULL, NULL, NULL, NULL};

/* Interned, as the names of a class's fields are: else each is compared letter by letter. */
static PyObject *interned_names(void)
{
    static const char *const said[] = {
        "url", "key", "host", "depth", "via", "parent", "hops", "priority", "requisite"};
    const Py_ssize_t count = sizeof said / sizeof *said;
    PyObject *made = PyTuple_New(count);
    for (Py_ssize_t i = 0; made && i < count; i++) {
        PyObject *name = PyUnicode_InternFromString(said[i]);
        if (!name)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, i, name);
    }
    return made;
}

PyMODINIT_FUNC PyInit_bundles(void)
{
    names = interned_names();
    return names ? PyModule_Create(&definition) : NULL;
}
