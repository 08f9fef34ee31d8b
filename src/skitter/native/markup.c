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
static Bytes taken; /* the body */
/* While a page is read, Python is called for an odd href, and may let another thread run. */
static bool busy;

/* What the caller asks for, and how its objects are made. */
typedef struct {
    int text, anchors;
    Py_buffer product;
    PyObject *link, *clean;
} Wanted;

typedef struct {
    bool odd, high;
} Census;

/* One byte of the body: a carriage return is a newline, unless one follows. */
static void take_byte(const uint8_t *at, const uint8_t *end, Census *census)
{
    uint8_t byte = *at;
    census->odd |= byte < ' ' && byte != '\r' && !(classes[byte] & WHITE);
    census->high |= byte >= 0x80;
    if (byte != '\r')
        taken.at[taken.used++] = byte;
    else if (at + 1 == end || at[1] != '\n')
        taken.at[taken.used++] = '\n';
}

/* The body as it is read: without carriage returns, and with LANES to spare. Most lanes have no other control than
 * newlines: 2 us for 27 KB. */
static Census take_body(const uint8_t *from, size_t length)
{
    Census census = {false, false};
    const uint8_t *end = from + length;
    uint32_t high = 0;
    taken.used = 0;
    if (!make_room(&taken, length))
        return census;
    while (end - from >= LANES) {
        Lanes lanes = lanes_at(from);
        if (at_most(lanes, ' ' - 1) != equal_to(lanes, '\n')) {
            for (const uint8_t *until = from + LANES; from < until; from++)
                take_byte(from, end, &census);
            continue;
        }
        high |= above_ascii(lanes);
        put_lanes(taken.at + taken.used, lanes);
        taken.used += LANES;
        from += LANES;
    }
    for (; from < end; from++)
        take_byte(from, end, &census);
    census.high |= high != 0;
    memset(taken.at + taken.used, 0, LANES);
    return census;
}

/* How often a name of at least three bytes is in the body; more than `enough` are not looked for. */
static size_t occurrences(const char *of, size_t enough)
{
    const uint8_t *end = taken.at + taken.used;
    size_t found = 0;
    for (const uint8_t *at = taken.at; end - at > 2 && found < enough; at += LANES) {
        uint32_t begin = equal_to(lanes_at(at), (uint8_t)of[0]) & equal_to(lanes_at(at + 1), (uint8_t)of[1]) &
                         equal_to(lanes_at(at + 2), (uint8_t)of[2]);
        for (; begin; begin &= begin - 1)
            found += begins(at + first_of(begin), end, of);
    }
    return found;
}

static void release(Bytes *bytes)
{
    if (bytes->room <= KEPT_ROOM && !bytes->failed)
        return;
    free(bytes->at);
    *bytes = (Bytes){0};
}

static void begin(int region, const Wanted *wanted)
{
    page.body = taken.at;
    page.end = taken.at + taken.used;
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
    page.turn = (page.turn + 1) & UINT32_MAX >> 2;
    if (!page.turn && page.known) /* all turns were had */
        memset(page.known, 0, page.known_room * sizeof *page.known);
}

static void finish(void)
{
    release(&page.text);
    release(&page.kept);
    release(&page.scratch);
    release(&page.anchor_text);
    release(&taken);
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

static void read_whole(const Wanted *wanted)
{
    int region = NO_TEXT;
    if (wanted->text) {
        /* Hardly a page has two: where the first stands, the rest is not searched. */
        size_t mains = occurrences("<main", 1);
        region = region_of(mains, mains ? 0 : occurrences("<article", 2));
    }
    begin(region, wanted);
    read_markup_page(&page);
    int truly = region_of((size_t)page.mains, (size_t)page.articles);
    if (!wanted->text || page.given_up || truly == region)
        return;
    begin(truly, wanted);
    read_markup_page(&page);
}

/* What was read, as Python's. */

static PyObject *string_of(Span span)
{
    if (span.length == ABSENT)
        Py_RETURN_NONE;
    const uint8_t *from = page.kept.at + span.at;
    if (span.length < 2 || !is_ascii(from, span.length))
        return PyUnicode_DecodeUTF8((const char *)from, span.length, NULL);
    PyObject *text = PyUnicode_New(span.length, 127);
    if (text)
        memcpy(PyUnicode_1BYTE_DATA(text), from, span.length);
    return text;
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
    return Py_BuildValue("(NNNNNNNNNNONOO)", string_of(page.title), string_of(page.base), string_of(page.lang),
        string_of(page.xml_lang), list_of(META_SEEN, link, clean), list_of(HEAD_LINK_SEEN, link, clean),
        list_of(ANCHOR_SEEN, link, clean), list_of(AREA_SEEN, link, clean), list_of(IFRAME_SEEN, link, clean),
        text_of_page(), page.distinct ? Py_True : Py_False, list_of(CHARSET_SEEN, link, clean),
        ascii ? Py_True : Py_False, stray_charset ? Py_True : Py_False);
}

static PyObject *read_bytes(const uint8_t *body, size_t length, const Wanted *wanted)
{
    if (length > LARGEST)
        Py_RETURN_NONE;
    Census census = take_body(body, length);
    if (taken.failed)
        return PyErr_NoMemory();
    if (census.odd || (census.high && !is_utf8(body, length)))
        Py_RETURN_NONE;
    size_t charsets = count_charsets(body, body + (length < PRESCANNED ? length : PRESCANNED));
    read_whole(wanted);
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
