/* A page of HTML in one pass: what skitter/parse/markup/html_tree.py finds in a tree, from the bytes and the elements that are
 * open. None for a page of which a tree might say something else.
 *
 * The pass itself, in ../core/markup, knows no Python: it reads hostile bytes and is fuzzed alone. */

#include "kernels.h"

#include "../core/markup/document.h"

static Document document;
/* While a page is read, Python is called for an odd href, and may let another thread run. */
static bool is_busy;

/* How the objects of a page are made. */
typedef struct {
    PyObject *link, *clean;
} Makers;

/* What was read, as Python's. */

static PyObject *string_of(Span span)
{
    if (span.length == ABSENT)
        Py_RETURN_NONE;
    const uint8_t *from = document.page.kept.at + span.at;
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

/* `link` called with href, text, rel and "a"; None where there is nothing to follow. */
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
    for (size_t i = 0; list && i < document.page.event_count; i++) {
        const Event *event = &document.page.events[i];
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
    return PyUnicode_DecodeUTF8(document.page.text.used ? (const char *)document.page.text.at : "", (Py_ssize_t)document.page.text.used, NULL);
}

static PyObject *result(const Makers *makers)
{
    const Page *page = &document.page;
    PyObject *link = makers->link, *clean = makers->clean;
    return Py_BuildValue("(NNNNNNNNNNONOO)", string_of(page->title), string_of(page->base), string_of(page->lang),
        string_of(page->xml_lang), list_of(META_SEEN, link, clean), list_of(HEAD_LINK_SEEN, link, clean),
        list_of(ANCHOR_SEEN, link, clean), list_of(AREA_SEEN, link, clean), list_of(IFRAME_SEEN, link, clean),
        text_of_page(), page->distinct ? Py_True : Py_False, list_of(CHARSET_SEEN, link, clean),
        document.is_ascii ? Py_True : Py_False, document.has_stray_charset ? Py_True : Py_False);
}

static PyObject *read_bytes(const Py_buffer *body, const Wanted *wanted, const Makers *makers)
{
    switch (read_document(&document, body->buf, (size_t)body->len, wanted)) {
    case IS_READ:
        return result(makers);
    case IS_OUT_OF_MEMORY:
        return PyErr_NoMemory();
    default:
        Py_RETURN_NONE;
    }
}

static PyObject *read_html(PyObject *module, PyObject *arguments)
{
    Py_buffer body, product;
    Makers makers;
    int text, anchors;
    if (!PyArg_ParseTuple(
            arguments, "y*ppy*OO:read_html", &body, &text, &anchors, &product, &makers.link, &makers.clean))
        return NULL;
    Wanted wanted = {text, anchors, product.buf, (size_t)product.len};
    PyObject *read;
    if (is_busy) {
        read = Py_NewRef(Py_None);
    } else {
        is_busy = true;
        read = read_bytes(&body, &wanted, &makers);
        release_document(&document);
        is_busy = false;
    }
    PyBuffer_Release(&body);
    PyBuffer_Release(&product);
    return read;
}

PyMethodDef markup_functions[] = {
    {"read_html", read_html, METH_VARARGS, "What a page says, or None when only a tree could tell."},
    {NULL, NULL, 0, NULL},
};

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

int start_markup(void)
{
    fill_names();
    fill_classes();
    PyObject *entities = PyImport_ImportModule("html.entities");
    PyObject *table = entities ? PyObject_GetAttrString(entities, "html5") : NULL;
    bool filled = table && PyDict_Check(table) && add_references(table);
    if (table && !filled && !PyErr_Occurred())
        PyErr_SetString(PyExc_ImportError, "html.entities.html5 is not a dict");
    Py_XDECREF(table);
    Py_XDECREF(entities);
    return filled ? 0 : -1;
}
