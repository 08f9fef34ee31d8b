/* The plain hrefs of a page resolved and hashed in one call (../core/hrefs.h says which those are). All others are left to
 * urls/canonical.py and urls/keys.py, whose answers these are. And what is made of a page's links once they are
 * resolved (urls/links_plain.py). */

#include "kernels.h"

#include "../core/blake2b.h"
#include "../core/hrefs.h"

typedef struct {
    Folder folder;
    PyObject *host;
    const char *prefix;   /* BLAKE2B_KEY bytes */
    PyObject *parameters; /* a set of names: those that a canonical form keeps with any value */
} Page;

static PyObject *href_name, *rel_name, *nofollow, *line_end;

/* A new reference: the URL, its key and its host. */
static PyObject *triple_of(PyObject *host, const char *url, size_t length, const uint8_t *key)
{
    PyObject *text = PyUnicode_New((Py_ssize_t)length, 127);
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)key, 2 * BLAKE2B_KEY);
    PyObject *triple = text && bytes ? PyTuple_New(3) : NULL;
    if (!triple) {
        Py_XDECREF(text);
        Py_XDECREF(bytes);
        return NULL;
    }
    memcpy(PyUnicode_1BYTE_DATA(text), url, length);
    PyTuple_SET_ITEM(triple, 0, text);
    PyTuple_SET_ITEM(triple, 1, bytes);
    PyTuple_SET_ITEM(triple, 2, Py_NewRef(host));
    return triple;
}

static PyObject *resolved(const Page *page, const Plain *plain, const Written *written)
{
    uint8_t key[2 * BLAKE2B_KEY];
    blake2b_key((const uint8_t *)written->form, written->form_length, key + BLAKE2B_KEY);
    if (!plain->is_other) {
        memcpy(key, page->prefix, BLAKE2B_KEY);
        return triple_of(page->host, written->url, written->url_length, key);
    }
    blake2b_key((const uint8_t *)written->url, plain->root, key);
    PyObject *host = PyUnicode_FromStringAndSize(written->url, (Py_ssize_t)plain->root);
    PyObject *triple = host ? triple_of(host, written->url, written->url_length, key) : NULL;
    Py_XDECREF(host);
    return triple;
}

/* 1 when all names are among those that are kept, -1 on an error. */
static int are_kept(PyObject *names, const Parameter *parameters, size_t count)
{
    int kept = 1;
    for (size_t i = 0; i < count && kept > 0; i++) {
        PyObject *name = PyUnicode_FromStringAndSize(parameters[i].text, (Py_ssize_t)parameters[i].name_length);
        kept = name ? PySet_Contains(names, name) : -1;
        Py_XDECREF(name);
    }
    return kept;
}

/* Of an href with a query: None where the query is not plain. */
static PyObject *resolve_query(const Page *page, const Plain *plain, Written *written)
{
    Parameter parameters[MOST_PARAMETERS];
    size_t count = split_query(plain->query, plain->query_length, parameters);
    int kept = count ? are_kept(page->parameters, parameters, count) : 0;
    if (kept < 0)
        return NULL;
    if (!kept)
        Py_RETURN_NONE;
    write_with_query(plain, parameters, count, written);
    return resolved(page, plain, written);
}

/* A new reference: the URL, its key and its host, or None where the href is not plain. */
static PyObject *resolve_one(const Page *page, PyObject *href, Written *written)
{
    if (!PyUnicode_Check(href)) {
        PyErr_SetString(PyExc_TypeError, "an href is a str");
        return NULL;
    }
    if (!PyUnicode_IS_ASCII(href))
        Py_RETURN_NONE;
    Plain plain;
    size_t length = (size_t)PyUnicode_GET_LENGTH(href);
    if (!take_apart(&page->folder, (const char *)PyUnicode_1BYTE_DATA(href), length, &plain))
        Py_RETURN_NONE;
    if (plain.query)
        return resolve_query(page, &plain, written);
    write_without_query(&plain, written);
    return resolved(page, &plain, written);
}

/* False, with no error set, where no href on this folder is plain. */
static int open_folder(Page *page, PyObject *folder, int others)
{
    if (!PyUnicode_IS_ASCII(folder) || !PyUnicode_IS_ASCII(page->host))
        return 0;
    const char *bytes = (const char *)PyUnicode_1BYTE_DATA(folder);
    size_t length = (size_t)PyUnicode_GET_LENGTH(folder), root = (size_t)PyUnicode_GET_LENGTH(page->host);
    if (!is_usable(bytes, length, root))
        return 0;
    page->folder = folder_of(bytes, length, root, others);
    return 1;
}

static int append_place(PyObject *places, Py_ssize_t place)
{
    PyObject *number = PyLong_FromSsize_t(place);
    int failed = !number || PyList_Append(places, number) < 0;
    Py_XDECREF(number);
    return failed ? -1 : 0;
}

/* What the caller knows of hrefs that are not plain: in this folder, and in all of them. */
typedef struct {
    PyObject *here, *anywhere;
} Known;

/* What is known of an href, else None and a place among the odd. */
static PyObject *recall(const Known *known, PyObject *href, PyObject *odd, Py_ssize_t place)
{
    PyObject *one = PyDict_GetItemWithError(known->here, href);
    if (!one && !PyErr_Occurred())
        one = PyDict_GetItemWithError(known->anywhere, href);
    if (!one && (PyErr_Occurred() || append_place(odd, place)))
        return NULL;
    return Py_NewRef(one ? one : Py_None);
}

static int fill(PyObject *found, PyObject *odd, PyObject *links, const Page *page, const Known *known)
{
    Written written;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(links); i++) {
        PyObject *href = PyObject_GetAttr(PyTuple_GET_ITEM(links, i), href_name);
        PyObject *one = href ? page ? resolve_one(page, href, &written) : Py_NewRef(Py_None) : NULL;
        if (one == Py_None) {
            Py_DECREF(one);
            one = recall(known, href, odd, i);
        }
        Py_XDECREF(href);
        if (!one)
            return -1;
        PyList_SET_ITEM(found, i, one);
    }
    return 0;
}

static PyObject *resolve_links(PyObject *module, PyObject *args)
{
    PyObject *given, *folder;
    Known known;
    Page page;
    Py_ssize_t prefix_length;
    int others;
    if (!PyArg_ParseTuple(
            args, "OUUy#pO!O!O!", &given, &folder, &page.host, &page.prefix, &prefix_length, &others, &PySet_Type,
            &page.parameters, &PyDict_Type, &known.here, &PyDict_Type, &known.anywhere))
        return NULL;
    if (prefix_length != BLAKE2B_KEY) {
        PyErr_SetString(PyExc_ValueError, "a prefix is of 8 bytes");
        return NULL;
    }
    /* A tuple: an attribute that is Python code could otherwise change what is being walked. */
    PyObject *links = PySequence_Tuple(given);
    PyObject *found = links ? PyList_New(PyTuple_GET_SIZE(links)) : NULL;
    PyObject *odd = PyList_New(0), *both = NULL;
    int usable = open_folder(&page, folder, others);
    if (found && odd && !fill(found, odd, links, usable ? &page : NULL, &known))
        both = PyTuple_Pack(2, found, odd);
    Py_XDECREF(links);
    Py_XDECREF(found);
    Py_XDECREF(odd);
    return both;
}

/* Links that were resolved. */

enum { URL, KEY, WHOLE_KEY = 2 * BLAKE2B_KEY, FEW = 128 };

/* Which targets were there before: places in `resolved`, by their keys, which are hashes already. A page cannot choose
 * what collides: the factor is the process's own. */
typedef struct {
    uint32_t few[2 * FEW], *places;
    int bits;
    PyObject *resolved;
} Targets;

static uint64_t factor;

static int begin_targets(Targets *targets, PyObject *resolved)
{
    size_t most = 2 * (size_t)PyTuple_GET_SIZE(resolved);
    targets->resolved = resolved;
    targets->places = targets->few;
    for (targets->bits = 4; (size_t)1 << targets->bits < most; targets->bits++)
        ;
    size_t size = sizeof(uint32_t) << targets->bits;
    if (size > sizeof targets->few && !(targets->places = PyMem_Malloc(size))) {
        PyErr_NoMemory();
        return -1;
    }
    memset(targets->places, 0, size);
    return 0;
}

static void end_targets(Targets *targets)
{
    if (targets->places != targets->few)
        PyMem_Free(targets->places);
}

static int is_same(PyObject *one, PyObject *other)
{
    return one == other || (PyUnicode_GET_LENGTH(one) == PyUnicode_GET_LENGTH(other) && !PyUnicode_Compare(one, other));
}

/* Whether the URL at that place is none of those asked about before. */
static int is_new(Targets *targets, Py_ssize_t place)
{
    PyObject *one = PyTuple_GET_ITEM(targets->resolved, place);
    uint64_t hash;
    memcpy(&hash, PyBytes_AS_STRING(PyTuple_GET_ITEM(one, KEY)) + BLAKE2B_KEY, sizeof hash);
    size_t slot = (size_t)(hash * factor >> (64 - targets->bits)), mask = ((size_t)1 << targets->bits) - 1;
    for (; targets->places[slot]; slot = (slot + 1) & mask) {
        PyObject *known = PyTuple_GET_ITEM(targets->resolved, targets->places[slot] - 1);
        if (is_same(PyTuple_GET_ITEM(known, URL), PyTuple_GET_ITEM(one, URL)))
            return 0;
    }
    targets->places[slot] = (uint32_t)place + 1;
    return 1;
}

static int is_resolved(PyObject *one)
{
    return PyTuple_Check(one) && PyTuple_GET_SIZE(one) == 3 && PyUnicode_Check(PyTuple_GET_ITEM(one, URL))
           && PyBytes_Check(PyTuple_GET_ITEM(one, KEY))
           && PyBytes_GET_SIZE(PyTuple_GET_ITEM(one, KEY)) == WHOLE_KEY;
}

/* Two tuples, of links and of what each stands for; false with an error set when they are not that. */
static int pair_up(PyObject *given, PyObject *targets, PyObject **links, PyObject **resolved)
{
    *links = PySequence_Tuple(given);
    *resolved = *links ? PySequence_Tuple(targets) : NULL;
    int fits = *resolved && PyTuple_GET_SIZE(*links) == PyTuple_GET_SIZE(*resolved);
    for (Py_ssize_t i = 0; fits && i < PyTuple_GET_SIZE(*resolved); i++)
        fits = PyTuple_GET_ITEM(*resolved, i) == Py_None || is_resolved(PyTuple_GET_ITEM(*resolved, i));
    if (!fits && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "of each link a URL, a key and a host, or None");
    return fits;
}

/* 1 when a link with that rel may be followed, -1 on an error. */
static int may_be_followed(PyObject *link)
{
    PyObject *rel = PyObject_GetAttr(link, rel_name);
    int forbidden = rel ? PyObject_IsTrue(rel) : -1;
    if (forbidden > 0)
        forbidden = PyUnicode_Contains(rel, nofollow);
    Py_XDECREF(rel);
    return forbidden < 0 ? -1 : !forbidden;
}

/* The URLs of all links that are followed, into `urls`, and their keys; gives how many, -1 on an error. */
static Py_ssize_t gather(PyObject *page, PyObject *links, Targets *targets, PyObject *urls, char *keys)
{
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(links); i++) {
        PyObject *one = PyTuple_GET_ITEM(targets->resolved, i);
        if (one == Py_None || is_same(PyTuple_GET_ITEM(one, URL), page))
            continue;
        int follows = may_be_followed(PyTuple_GET_ITEM(links, i));
        if (follows < 0)
            return -1;
        if (!follows || !is_new(targets, i))
            continue;
        memcpy(keys + count * WHOLE_KEY, PyBytes_AS_STRING(PyTuple_GET_ITEM(one, KEY)), WHOLE_KEY);
        PyTuple_SET_ITEM(urls, count++, Py_NewRef(PyTuple_GET_ITEM(one, URL)));
    }
    return count;
}

/* The first `count` of a tuple that has room for more; nothing where they could not be made. */
static PyObject *shortened(PyObject *found, Py_ssize_t count)
{
    if (count < 0)
        Py_CLEAR(found);
    else
        _PyTuple_Resize(&found, count);
    return found;
}

static PyObject *join_followed(PyObject *page, PyObject *links, Targets *targets)
{
    PyObject *urls = PyTuple_New(PyTuple_GET_SIZE(links));
    PyObject *keys = urls ? PyBytes_FromStringAndSize(NULL, PyTuple_GET_SIZE(links) * WHOLE_KEY) : NULL;
    Py_ssize_t count = keys ? gather(page, links, targets, urls, PyBytes_AS_STRING(keys)) : -1;
    PyObject *joined = NULL, *both = NULL;
    if (urls && (urls = shortened(urls, count)))
        joined = PyUnicode_Join(line_end, urls);
    if (joined && !_PyBytes_Resize(&keys, count * WHOLE_KEY))
        both = PyTuple_Pack(2, keys, joined);
    Py_XDECREF(urls);
    Py_XDECREF(keys);
    Py_XDECREF(joined);
    return both;
}

static PyObject *select_followed(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyUnicode_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "a page's URL, its links, what they stand for");
        return NULL;
    }
    PyObject *links = NULL, *resolved = NULL, *both = NULL;
    Targets targets;
    if (pair_up(args[1], args[2], &links, &resolved) && !begin_targets(&targets, resolved)) {
        both = join_followed(args[0], links, &targets);
        end_targets(&targets);
    }
    Py_XDECREF(links);
    Py_XDECREF(resolved);
    return both;
}

static Py_ssize_t fill_targets(PyObject *links, Targets *targets, PyObject *found)
{
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(links); i++) {
        PyObject *one = PyTuple_GET_ITEM(targets->resolved, i);
        if (one == Py_None || !is_new(targets, i))
            continue;
        PyObject *pair = PyTuple_Pack(2, PyTuple_GET_ITEM(one, URL), PyTuple_GET_ITEM(links, i));
        if (!pair)
            return -1;
        PyTuple_SET_ITEM(found, count++, pair);
    }
    return count;
}

static PyObject *list_targets(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "links and what they stand for");
        return NULL;
    }
    PyObject *links = NULL, *resolved = NULL, *found = NULL;
    Targets targets;
    if (pair_up(args[0], args[1], &links, &resolved) && !begin_targets(&targets, resolved)) {
        if ((found = PyTuple_New(PyTuple_GET_SIZE(links))))
            found = shortened(found, fill_targets(links, &targets, found));
        end_targets(&targets);
    }
    Py_XDECREF(links);
    Py_XDECREF(resolved);
    return found;
}

PyMethodDef hrefs_functions[] = {
    {"resolve_links", resolve_links, METH_VARARGS,
     "Of each link the URL, key and host, or None where its href is neither plain nor known; and where those are."},
    {"select_followed", FAST(select_followed),
     "The keys of the links that a page lets us follow, each URL once, and the URLs, one a line."},
    {"list_targets", FAST(list_targets), "Each target once, with its first link."},
    {NULL, NULL, 0, NULL},
};

int start_hrefs(void)
{
    href_name = PyUnicode_InternFromString("href");
    rel_name = PyUnicode_InternFromString("rel");
    nofollow = PyUnicode_InternFromString("nofollow");
    line_end = PyUnicode_InternFromString("\n");
    if (!href_name || !rel_name || !nofollow || !line_end)
        return -1;
    factor = (uint64_t)PyObject_Hash(nofollow) | 1;
    fill_allowed();
    return 0;
}
