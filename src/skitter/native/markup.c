/* A page of HTML in one pass: what skitter/parse/html_tree.py finds in a tree, from the bytes and the elements that are
 * open. None for a page of which a tree might say something else.
 *
 * The pass itself, in the headers beside this, knows no Python: it reads hostile bytes and is fuzzed alone. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "markup_modes.h"
#include "utf8_core.h"

enum { LARGEST = 64 << 20, KEPT_ROOM = 1 << 20 };

static Page page;
static Bytes normal; /* the body without carriage returns */
/* While a page is read, Python is called for an odd href, and may let another thread run. */
static bool busy;

/* What the caller asks for, and how its objects are made. */
typedef struct {
    int text, anchors;
    Py_buffer product;
    PyObject *link, *clean;
} Wanted;

typedef struct {
    bool odd, returns, high;
} Census;

/* In blocks, so that the compiler makes vectors of it: 1.5 us for 27 KB. */
static Census census_of(const uint8_t *from, size_t length)
{
    uint8_t odd = 0, returns = 0, high = 0;
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = from[i];
        odd |= (byte < 0x20) & (byte != '\t') & (byte != '\n') & (byte != '\f') & (byte != '\r');
        returns |= byte == '\r';
        high |= byte;
    }
    return (Census){odd != 0, returns != 0, high >= 0x80};
}

static void without_returns(const uint8_t *from, size_t length)
{
    normal.used = 0;
    if (!make_room(&normal, length))
        return;
    uint8_t *out = normal.at;
    for (size_t i = 0; i < length; i++) {
        if (from[i] != '\r')
            *out++ = from[i];
        else if (i + 1 == length || from[i + 1] != '\n')
            *out++ = '\n';
    }
    normal.used = (size_t)(out - normal.at);
}

enum { STRIDE = 64 };

static size_t occurrences_from(const uint8_t *from, const uint8_t *until, const uint8_t *end, const char *of)
{
    size_t found = 0;
    for (; from < until; from++)
        found += begins(from, end, of);
    return found;
}

/* How often a name of at least three bytes is there. In strides, as above: 2 us for 27 KB, where memchr takes 7. */
static size_t occurrences(const uint8_t *from, const uint8_t *end, const char *of)
{
    size_t found = 0;
    const uint8_t first = (uint8_t)of[0], second = (uint8_t)of[1], third = (uint8_t)of[2];
    for (; end - from > STRIDE + 2; from += STRIDE) {
        uint8_t hit = 0;
        for (int i = 0; i < STRIDE; i++)
            hit |= (from[i] == first) & (from[i + 1] == second) & (from[i + 2] == third);
        if (hit)
            found += occurrences_from(from, from + STRIDE, end, of);
    }
    return found + occurrences_from(from, end, end, of);
}

static void release(Bytes *bytes)
{
    if (bytes->room <= KEPT_ROOM && !bytes->failed)
        return;
    free(bytes->at);
    *bytes = (Bytes){0};
}

static void begin(const uint8_t *body, size_t length, int region, const Wanted *wanted)
{
    page.body = body;
    page.end = body + length;
    page.product = wanted->product.buf;
    page.product_length = (size_t)wanted->product.len;
    page.mode = page.depth = page.open_p = page.formatted = page.adoptions = 0;
    page.open_templates = 0;
    page.given_up = page.quirks_unknown = page.drop_newline = page.text_open = false;
    page.with_anchors = wanted->anchors;
    page.serial = page.form = 0;
    page.region = region;
    page.root_depth = page.silent_depth = page.verbatim = page.gap = page.mains = page.articles = 0;
    page.text.used = page.kept.used = page.scratch.used = page.anchor_text.used = 0;
    page.event_count = page.known_count = page.charsets_in_metas = 0;
    page.anchor_depth = page.anchor_nodes = 0;
    if (page.known)
        memset(page.known, 0, page.known_room * sizeof *page.known);
}

static void finish(void)
{
    release(&page.text);
    release(&page.kept);
    release(&page.scratch);
    release(&page.anchor_text);
    release(&normal);
    if (page.known_room > 4096) {
        free(page.known);
        page.known = NULL;
        page.known_room = 0;
    }
    if (page.event_room > 4096) {
        free(page.events);
        page.events = NULL;
        page.event_room = 0;
    }
}

/* The text is of the one `main`, else of the one `article`, else of the document. */
static int region_of(size_t mains, size_t articles)
{
    return mains == 1 ? OF_MAIN : articles == 1 ? OF_ARTICLE : OF_DOCUMENT;
}

static void read_whole(const uint8_t *body, size_t length, const Wanted *wanted)
{
    int region = NO_TEXT;
    if (wanted->text) {
        const uint8_t *end = body + length;
        size_t mains = occurrences(body, end, "<main");
        region = region_of(mains, mains == 1 ? 0 : occurrences(body, end, "<article"));
    }
    begin(body, length, region, wanted);
    read_markup_page(&page);
    int truly = region_of((size_t)page.mains, (size_t)page.articles);
    if (!wanted->text || page.given_up || truly == region)
        return;
    begin(body, length, truly, wanted);
    read_markup_page(&page);
}

/* What was read, as Python's. */

static PyObject *string_of(Span span)
{
    if (span.length == ABSENT)
        Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8((const char *)page.kept.at + span.at, span.length, NULL);
}

static PyObject *tuple_of(const Event *event)
{
    PyObject *tuple = PyTuple_New(3);
    for (int i = 0; tuple && i < 3; i++) {
        PyObject *part = string_of(event->parts[i]);
        if (!part)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, part);
    }
    return tuple;
}

static PyObject *string_or_empty(Span span)
{
    return string_of(span.length == ABSENT ? (Span){0, 0} : span);
}

/* Its href, by `clean` where it is not clean as it is. */
static PyObject *href_of(const Event *event, PyObject *clean)
{
    PyObject *href = string_of(event->parts[0]);
    if (event->clean || !href)
        return href;
    PyObject *cleaned = PyObject_CallOneArg(clean, href);
    Py_DECREF(href);
    return cleaned;
}

/* `link` called with href, text, rel and "a", None where there is nothing to follow: 0.15 us, against 0.4 for a tuple
 * from which Python makes one. */
static PyObject *link_of(const Event *event, PyObject *link, PyObject *clean)
{
    static PyObject *tag;
    if (!tag && !(tag = PyUnicode_InternFromString("a")))
        return NULL;
    PyObject *parts[4] = {href_of(event, clean), NULL, NULL, tag}, *made = NULL;
    if (parts[0] && (parts[1] = string_or_empty(event->parts[2])) && (parts[2] = string_or_empty(event->parts[1])))
        made = PyObject_IsTrue(parts[0]) ? PyObject_Vectorcall(link, parts, 4, NULL) : Py_NewRef(Py_None);
    for (int i = 0; i < 3; i++)
        Py_XDECREF(parts[i]);
    return made;
}

/* Of one kind. Anchors are made by `link`, the others are tuples. */
static PyObject *list_of(int kind, PyObject *link, PyObject *clean)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < page.event_count; i++) {
        const Event *event = &page.events[i];
        if (event->kind != kind)
            continue;
        PyObject *item = kind == ANCHOR_SEEN ? link_of(event, link, clean) : tuple_of(event);
        if (!item || (item != Py_None && PyList_Append(list, item) < 0))
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *text_of_page(void)
{
    return PyUnicode_DecodeUTF8(page.text.used ? (const char *)page.text.at : "", (Py_ssize_t)page.text.used, NULL);
}

static PyObject *result(const Wanted *wanted, bool ascii, bool stray_charset)
{
    PyObject *link = wanted->link, *clean = wanted->clean;
    return Py_BuildValue("(NNNNNNNNNNNOO)", string_of(page.title), string_of(page.base), string_of(page.lang),
        string_of(page.xml_lang), list_of(META_SEEN, link, clean), list_of(HEAD_LINK_SEEN, link, clean),
        list_of(ANCHOR_SEEN, link, clean), list_of(AREA_SEEN, link, clean), list_of(IFRAME_SEEN, link, clean),
        text_of_page(), list_of(CHARSET_SEEN, link, clean), ascii ? Py_True : Py_False,
        stray_charset ? Py_True : Py_False);
}

static PyObject *read_bytes(const uint8_t *body, size_t length, const Wanted *wanted)
{
    Census census = census_of(body, length);
    if (length > LARGEST || census.odd || (census.high && !is_utf8(body, length)))
        Py_RETURN_NONE;
    const uint8_t *prescanned = body + (length < PRESCANNED ? length : PRESCANNED);
    size_t charsets = count_charsets(body, prescanned);
    if (census.returns) {
        without_returns(body, length);
        if (normal.failed)
            return PyErr_NoMemory();
        body = normal.at;
        length = normal.used;
    }
    read_whole(body, length, wanted);
    if (has_failed(&page))
        return PyErr_NoMemory();
    if (page.given_up)
        Py_RETURN_NONE;
    return result(wanted, !census.high, charsets > page.charsets_in_metas);
}

static PyObject *read_page(PyObject *module, PyObject *arguments)
{
    Py_buffer body;
    Wanted wanted;
    if (!PyArg_ParseTuple(arguments, "y*ppy*OO:read", &body, &wanted.text, &wanted.anchors, &wanted.product,
            &wanted.link, &wanted.clean))
        return NULL;
    const uint8_t *from = body.buf;
    size_t length = (size_t)body.len, mark = begins(from, from + length, "\xEF\xBB\xBF") ? 3 : 0;
    PyObject *read;
    if (busy) {
        read = Py_NewRef(Py_None);
    } else {
        busy = true;
        read = read_bytes(from + mark, length - mark, &wanted);
        finish();
        busy = false;
    }
    PyBuffer_Release(&body);
    PyBuffer_Release(&wanted.product);
    return read;
}

static PyMethodDef methods[] = {
    {"read", read_page, METH_VARARGS, "What a page says, or None when only a tree could tell."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "markup", NULL, -1, methods, NULL, NULL, NULL, NULL};

static bool add_references(PyObject *table)
{
    PyObject *name, *text;
    Py_ssize_t position = 0, name_length, text_length;
    while (PyDict_Next(table, &position, &name, &text)) {
        const char *name_bytes = PyUnicode_AsUTF8AndSize(name, &name_length);
        const char *text_bytes = name_bytes ? PyUnicode_AsUTF8AndSize(text, &text_length) : NULL;
        if (!text_bytes)
            return false;
        if (!add_reference(name_bytes, (size_t)name_length, text_bytes, (size_t)text_length)) {
            PyErr_SetString(PyExc_ImportError, "html.entities.html5 is larger than expected");
            return false;
        }
    }
    return true;
}

PyMODINIT_FUNC PyInit_markup(void)
{
    fill_names();
    fill_classes();
    PyObject *entities = PyImport_ImportModule("html.entities");
    PyObject *table = entities ? PyObject_GetAttrString(entities, "html5") : NULL;
    bool filled = table && PyDict_Check(table) && add_references(table);
    Py_XDECREF(table);
    Py_XDECREF(entities);
    return filled ? PyModule_Create(&definition) : NULL;
}
