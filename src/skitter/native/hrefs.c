/* The plain hrefs of a page resolved and hashed in one call: names and `../` only, on a folder of the same host, and
 * nothing in the path that a canonical form would change. All others are left to urls/canonical.py and urls/keys.py,
 * whose answers these are. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "blake2b.h"

enum { ROOM = 2048 };

typedef struct {
    const char *bytes;
    size_t length;
    size_t root; /* where the path begins */
    PyObject *host;
    const char *prefix; /* BLAKE2B_KEY bytes */
} Folder;

static PyObject *href_name;

static int is_name(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* One or more segments that begin with a letter, a digit, `_` or `-`, with one slash between them or at the end. */
static int is_plain(const char *href, size_t length)
{
    int begins = 1;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)href[i];
        if (is_name(c))
            begins = 0;
        else if (begins || (c != '.' && c != '~' && c != '/'))
            return 0;
        else
            begins = c == '/';
    }
    return length > 0;
}

static int is_folded(const char *path, size_t length)
{
    return memchr(path, '?', length) || memchr(path, '%', length) || memchr(path, ';', length)
           || memchr(path, '(', length);
}

/* How much of the folder is left after `ups` steps up; never less than its root. */
static size_t above(const Folder *folder, size_t ups)
{
    size_t end = folder->length - 1;
    for (; ups && end > folder->root; ups--)
        do
            end--;
        while (folder->bytes[end] != '/');
    return end + 1;
}

static PyObject *resolved(const Folder *folder, const char *url, size_t length)
{
    uint8_t key[2 * BLAKE2B_KEY];
    memcpy(key, folder->prefix, BLAKE2B_KEY);
    blake2b_key((const uint8_t *)url + folder->root, length - folder->root, key + BLAKE2B_KEY);
    PyObject *text = PyUnicode_New((Py_ssize_t)length, 127);
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)key, sizeof key);
    PyObject *triple = text && bytes ? PyTuple_New(3) : NULL;
    if (!triple) {
        Py_XDECREF(text);
        Py_XDECREF(bytes);
        return NULL;
    }
    memcpy(PyUnicode_1BYTE_DATA(text), url, length);
    PyTuple_SET_ITEM(triple, 0, text);
    PyTuple_SET_ITEM(triple, 1, bytes);
    PyTuple_SET_ITEM(triple, 2, Py_NewRef(folder->host));
    return triple;
}

/* A new reference: the URL, its key and its host, or None where the href is not plain. */
static PyObject *resolve_one(const Folder *folder, PyObject *href)
{
    if (!PyUnicode_Check(href)) {
        PyErr_SetString(PyExc_TypeError, "an href is a str");
        return NULL;
    }
    if (!PyUnicode_IS_ASCII(href))
        Py_RETURN_NONE;
    const char *rest = (const char *)PyUnicode_1BYTE_DATA(href);
    size_t length = (size_t)PyUnicode_GET_LENGTH(href), ups = 0;
    if (folder->length + length > ROOM)
        Py_RETURN_NONE;
    for (; length >= 3 && !memcmp(rest, "../", 3); ups++, rest += 3, length -= 3)
        ;
    if (!is_plain(rest, length))
        Py_RETURN_NONE;
    char url[ROOM];
    size_t kept = above(folder, ups);
    memcpy(url, folder->bytes, kept);
    memcpy(url + kept, rest, length);
    if (is_folded(url + folder->root, kept + length - folder->root))
        Py_RETURN_NONE;
    return resolved(folder, url, kept + length);
}

/* False, with no error set, where no href on this folder is plain. */
static int is_usable(PyObject *folder, PyObject *host)
{
    if (!PyUnicode_IS_ASCII(folder) || !PyUnicode_IS_ASCII(host))
        return 0;
    const char *bytes = (const char *)PyUnicode_1BYTE_DATA(folder);
    size_t length = (size_t)PyUnicode_GET_LENGTH(folder), root = (size_t)PyUnicode_GET_LENGTH(host);
    if (root >= length || bytes[root] != '/' || bytes[length - 1] != '/')
        return 0;
    return !memchr(bytes, '@', length) && !memchr(bytes, '#', length);
}

static int fill(PyObject *found, PyObject *links, const Folder *folder)
{
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(links); i++) {
        PyObject *href = PyObject_GetAttr(PySequence_Fast_GET_ITEM(links, i), href_name);
        PyObject *one = href ? folder ? resolve_one(folder, href) : Py_NewRef(Py_None) : NULL;
        Py_XDECREF(href);
        if (!one)
            return -1;
        PyList_SET_ITEM(found, i, one);
    }
    return 0;
}

static PyObject *resolve(PyObject *module, PyObject *args)
{
    PyObject *given, *folder, *host;
    const char *prefix;
    Py_ssize_t prefix_length;
    if (!PyArg_ParseTuple(args, "OUUy#", &given, &folder, &host, &prefix, &prefix_length))
        return NULL;
    if (prefix_length != BLAKE2B_KEY) {
        PyErr_SetString(PyExc_ValueError, "a prefix is of 8 bytes");
        return NULL;
    }
    /* A tuple: an attribute that is Python code could otherwise change what is being walked. */
    PyObject *links = PySequence_Tuple(given);
    PyObject *found = links ? PyList_New(PyTuple_GET_SIZE(links)) : NULL;
    Folder plain = {NULL, 0, 0, host, prefix};
    int usable = is_usable(folder, host);
    if (usable) {
        plain.bytes = (const char *)PyUnicode_1BYTE_DATA(folder);
        plain.length = (size_t)PyUnicode_GET_LENGTH(folder);
        plain.root = (size_t)PyUnicode_GET_LENGTH(host);
    }
    if (found && fill(found, links, usable ? &plain : NULL))
        Py_CLEAR(found);
    Py_XDECREF(links);
    return found;
}

static PyMethodDef methods[] = {
    {"resolve", resolve, METH_VARARGS, "Of each link the URL, key and host, or None where its href is not plain."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "hrefs", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_hrefs(void)
{
    href_name = PyUnicode_InternFromString("href");
    return href_name ? PyModule_Create(&definition) : NULL;
}
