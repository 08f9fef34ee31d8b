/* The tables of keys for Python: ../core/keyset.h. What is asked of many keys at once prefetches all of their places. */

#include "kernels.h"

#include "../core/keyset.h"

/* -- for Python */

static const uint8_t *key_in(PyObject *key)
{
    if (PyBytes_CheckExact(key) && PyBytes_GET_SIZE(key) == KEY)
        return (const uint8_t *)PyBytes_AS_STRING(key);
    PyErr_SetString(PyExc_ValueError, "a key is 16 bytes");
    return NULL;
}

static int has_arguments(Py_ssize_t given, Py_ssize_t wanted)
{
    if (given == wanted)
        return 1;
    PyErr_Format(PyExc_TypeError, "%zd arguments, not %zd", given, wanted);
    return 0;
}

/* A writable buffer of at least `least` bytes, aligned as what lies in it is. */
static int open_table(PyObject *owner, Py_buffer *table, Py_ssize_t least)
{
    if (PyObject_GetBuffer(owner, table, PyBUF_WRITABLE) < 0)
        return 0;
    if (table->len >= least && (uintptr_t)table->buf % sizeof(uint64_t) == 0)
        return 1;
    PyBuffer_Release(table);
    PyErr_SetString(PyExc_ValueError, "a table is aligned and not empty");
    return 0;
}

static uint64_t buckets_of(const Py_buffer *table)
{
    return (uint64_t)table->len / BUCKET;
}

static PyObject *certain_has(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer table;
    const uint8_t *key;
    if (!has_arguments(count, 2) || !(key = key_in(given[1])) || !open_table(given[0], &table, BUCKET))
        return NULL;
    int found = touch(table.buf, buckets_of(&table), both_halves(key), 0);
    PyBuffer_Release(&table);
    return PyBool_FromLong(found);
}

static PyObject *certain_add(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer table;
    const uint8_t *key;
    if (!has_arguments(count, 2) || !(key = key_in(given[1])) || !open_table(given[0], &table, BUCKET))
        return NULL;
    touch(table.buf, buckets_of(&table), both_halves(key), 1);
    PyBuffer_Release(&table);
    Py_RETURN_NONE;
}

static int are_all_keys(PyObject *keys)
{
    if (!PyList_CheckExact(keys)) {
        PyErr_SetString(PyExc_TypeError, "keys are a list");
        return 0;
    }
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(keys); at++)
        if (!key_in(PyList_GET_ITEM(keys, at)))
            return 0;
    return 1;
}

static PyObject *certain_add_all(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer table;
    if (!has_arguments(count, 2) || !are_all_keys(given[1]) || !open_table(given[0], &table, BUCKET))
        return NULL;
    Py_ssize_t all = PyList_GET_SIZE(given[1]);
    for (Py_ssize_t at = 0; at < all; at++)
        prefetch_bucket(table.buf, buckets_of(&table), key_in(PyList_GET_ITEM(given[1], at)));
    for (Py_ssize_t at = 0; at < all; at++)
        touch(table.buf, buckets_of(&table), both_halves(key_in(PyList_GET_ITEM(given[1], at))), 1);
    PyBuffer_Release(&table);
    Py_RETURN_NONE;
}

static PyObject *certain_move(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer from, to;
    if (!has_arguments(count, 2) || !open_table(given[0], &from, BUCKET))
        return NULL;
    int is_open = open_table(given[1], &to, BUCKET);
    if (is_open) {
        move_all(from.buf, buckets_of(&from), to.buf, buckets_of(&to));
        PyBuffer_Release(&to);
    }
    PyBuffer_Release(&from);
    if (!is_open)
        return NULL;
    Py_RETURN_NONE;
}

static int note(PyObject *list, Py_ssize_t number)
{
    PyObject *found = PyLong_FromSsize_t(number);
    int failed = !found || PyList_Append(list, found) < 0;
    Py_XDECREF(found);
    return !failed;
}

/* All buckets are prefetched before the first is looked at. */
static void prefetch_buckets(const Py_buffer *table, const uint8_t *keys, Py_ssize_t length)
{
    for (Py_ssize_t at = 0; at + KEY <= length; at += KEY)
        prefetch_bucket(table->buf, buckets_of(table), keys + at);
}

/* Which hosts were seen to link which key: two bytes of each host, by key, in the young dict or else in the old one.
 * `parent` is the key of the page that links now. */
typedef struct {
    PyObject *young, *old;
    const uint8_t *parent;
} Heard;

/* 1 when one more linker is noted, -1 on an error. */
static int note_linker(const Heard *heard, PyObject *key, const uint8_t *linkers, Py_ssize_t length)
{
    PyObject *more = PyBytes_FromStringAndSize(NULL, length + LINKER);
    if (!more)
        return -1;
    memcpy(PyBytes_AS_STRING(more), linkers, (size_t)length);
    memcpy(PyBytes_AS_STRING(more) + length, heard->parent, LINKER);
    int failed = PyDict_SetItem(heard->young, key, more);
    Py_DECREF(more);
    return failed ? -1 : 1;
}

/* Notes who links a key that is known. 1 when nothing has to be asked about the link; -1 on an error. */
static int note_known_link(const Heard *heard, PyObject *key, const uint8_t *linkers, Py_ssize_t length)
{
    if (!memcmp(PyBytes_AS_STRING(key), heard->parent, HALF) || length >= MOST_LINKERS * LINKER
        || has_linker(linkers, (size_t)length, heard->parent))
        return 1;
    return is_doubled((size_t)length + LINKER) ? 0 : note_linker(heard, key, linkers, length);
}

/* A borrowed reference; NULL, perhaps with an error, when there are none. */
static PyObject *linkers_of(const Heard *heard, PyObject *key)
{
    PyObject *linkers = PyDict_GetItemWithError(heard->young, key);
    if (!linkers && !PyErr_Occurred())
        linkers = PyDict_GetItemWithError(heard->old, key);
    if (!linkers || PyBytes_CheckExact(linkers))
        return linkers;
    PyErr_SetString(PyExc_TypeError, "linkers are bytes");
    return NULL;
}

/* Notes a link between hosts. 1 when it says nothing new; -1 on an error. */
static int note_link_between_hosts(const Py_buffer *table, const Heard *heard, const uint8_t *bytes)
{
    int sure = -1;
    PyObject *key = PyBytes_FromStringAndSize((const char *)bytes, KEY);
    PyObject *linkers = key ? linkers_of(heard, key) : NULL;
    if (linkers)
        sure = note_known_link(heard, key, (const uint8_t *)PyBytes_AS_STRING(linkers), PyBytes_GET_SIZE(linkers));
    else if (!PyErr_Occurred()) /* its linkers were forgotten, or are on disk alone: begin anew */
        sure = touch(table->buf, buckets_of(table), both_halves(bytes), 0) ? note_known_link(heard, key, bytes, 0) : 0;
    Py_XDECREF(key);
    return sure;
}

/* 1 when nothing has to be asked about a key; -1 on an error. Links are noted where `heard` is given. */
static int check_key(const Py_buffer *table, const uint8_t *key, const uint8_t *host, const Heard *heard)
{
    if (!memcmp(key, host, HALF) && touch(table->buf, buckets_of(table), both_halves(key), 0))
        return 1;
    return heard ? note_link_between_hosts(table, heard, key) : 0;
}

static PyObject *find_unsure(const Py_buffer *table, PyObject *keys, PyObject *host, const Heard *heard)
{
    const uint8_t *first = (const uint8_t *)PyBytes_AS_STRING(keys);
    Py_ssize_t length = PyBytes_GET_SIZE(keys);
    PyObject *unsure = PyList_New(0);
    prefetch_buckets(table, first, length);
    for (Py_ssize_t at = 0; unsure && at + KEY <= length; at += KEY) {
        int sure = check_key(table, first + at, (const uint8_t *)PyBytes_AS_STRING(host), heard);
        if (sure < 0 || (!sure && !note(unsure, at / KEY)))
            Py_CLEAR(unsure);
    }
    return unsure;
}

static int are_keys(PyObject *keys, PyObject *host)
{
    if (PyBytes_CheckExact(keys) && PyBytes_GET_SIZE(keys) % KEY == 0 && PyBytes_CheckExact(host)
        && PyBytes_GET_SIZE(host) == HALF)
        return 1;
    PyErr_SetString(PyExc_ValueError, "keys are 16 bytes each, and a host is 8");
    return 0;
}

static PyObject *certain_find_missing(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer table;
    if (!has_arguments(count, 3) || !are_keys(given[1], given[2]) || !open_table(given[0], &table, BUCKET))
        return NULL;
    PyObject *unsure = find_unsure(&table, given[1], given[2], NULL);
    PyBuffer_Release(&table);
    return unsure;
}

static PyObject *certain_add_own(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer table;
    if (!has_arguments(count, 3) || !are_keys(given[1], given[2]) || !open_table(given[0], &table, BUCKET))
        return NULL;
    const uint8_t *first = (const uint8_t *)PyBytes_AS_STRING(given[1]);
    Py_ssize_t length = PyBytes_GET_SIZE(given[1]);
    prefetch_buckets(&table, first, length);
    for (Py_ssize_t at = 0; at + KEY <= length; at += KEY)
        if (!memcmp(first + at, PyBytes_AS_STRING(given[2]), HALF))
            touch(table.buf, buckets_of(&table), both_halves(first + at), 1);
    PyBuffer_Release(&table);
    Py_RETURN_NONE;
}

static int is_parent(PyObject *parent)
{
    if (PyBytes_CheckExact(parent) && PyBytes_GET_SIZE(parent) == KEY)
        return 1;
    PyErr_SetString(PyExc_ValueError, "a parent is a key of 16 bytes");
    return 0;
}

static PyObject *certain_find_news(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer table;
    if (!has_arguments(count, 6) || !are_keys(given[1], given[2]) || !is_parent(given[5]))
        return NULL;
    if (!PyDict_CheckExact(given[3]) || !PyDict_CheckExact(given[4])) {
        PyErr_SetString(PyExc_TypeError, "linkers lie in dicts");
        return NULL;
    }
    if (!open_table(given[0], &table, BUCKET))
        return NULL;
    Heard heard = {given[3], given[4], (const uint8_t *)PyBytes_AS_STRING(given[5])};
    PyObject *unsure = find_unsure(&table, given[1], given[2], &heard);
    PyBuffer_Release(&table);
    return unsure;
}

static int hashes_in(PyObject *number)
{
    long hashes = PyLong_AsLong(number);
    if (hashes >= 1 && hashes <= MOST_HASHES)
        return (int)hashes;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "a filter has 1 to 32 hashes");
    return 0;
}

static PyObject *bloom_has(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer filter;
    const uint8_t *key;
    int hashes;
    if (!has_arguments(count, 3) || !(hashes = hashes_in(given[1])) || !(key = key_in(given[2]))
        || !open_table(given[0], &filter, 1))
        return NULL;
    int found = may_have(filter.buf, (uint64_t)filter.len * 8, hashes, walk_of(key));
    PyBuffer_Release(&filter);
    return PyBool_FromLong(found);
}

static PyObject *bloom_add(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer filter;
    const uint8_t *key;
    int hashes;
    if (!has_arguments(count, 3) || !(hashes = hashes_in(given[1])) || !(key = key_in(given[2]))
        || !open_table(given[0], &filter, 1))
        return NULL;
    put_in(filter.buf, (uint64_t)filter.len * 8, hashes, walk_of(key));
    PyBuffer_Release(&filter);
    Py_RETURN_NONE;
}

enum { MOST_LAYERS = 16 };

/* A part of the seen filter: how many keys its youngest layer has and may have, and the bits of all layers, the youngest
 * first. One that is not believed has none. */
typedef struct {
    Py_buffer tally, layers[MOST_LAYERS];
    int count;
} Part;

static void close_part(Part *part)
{
    while (part->count-- > 0)
        PyBuffer_Release(&part->layers[part->count]);
    PyBuffer_Release(&part->tally);
}

static int is_part(PyObject *given)
{
    if (PyTuple_CheckExact(given) && PyTuple_GET_SIZE(given) != 1 && PyTuple_GET_SIZE(given) <= 1 + MOST_LAYERS)
        return 1;
    PyErr_SetString(PyExc_ValueError, "a part is a tally and one to sixteen layers, or nothing");
    return 0;
}

/* Whether it has layers; with an error set when they are none. */
static int open_part(PyObject *given, Part *part)
{
    if (!is_part(given) || !PyTuple_GET_SIZE(given)
        || !open_table(PyTuple_GET_ITEM(given, 0), &part->tally, 2 * sizeof(int64_t)))
        return 0;
    for (part->count = 0; part->count < PyTuple_GET_SIZE(given) - 1; part->count++)
        if (!open_table(PyTuple_GET_ITEM(given, part->count + 1), &part->layers[part->count], 1)) {
            close_part(part);
            return 0;
        }
    return 1;
}

static uint64_t bits_of(const Py_buffer *layer)
{
    return (uint64_t)layer->len * 8;
}

/* A new key is put into the youngest layer; the others mostly say no by their first two bits. */
static void prefetch_bits(const Part *part, int hashes, Walk walk)
{
    for (int layer = 0; layer < part->count; layer++) {
        Walk ahead = walk;
        for (int hash = 0; hash < (layer && hashes > 2 ? 2 : hashes); hash++, ahead.at += ahead.step)
            prefetch((const uint8_t *)part->layers[layer].buf + (place_of(ahead.at, bits_of(&part->layers[layer])) >> 3));
    }
}

/* Adds a key that no layer has to the youngest one. False when a layer has it, or there is no room. */
static int add_to_part(Part *part, int hashes, Walk walk)
{
    int64_t *tally = part->tally.buf;
    if (tally[0] >= tally[1])
        return 0;
    for (int layer = 0; layer < part->count; layer++)
        if (may_have(part->layers[layer].buf, bits_of(&part->layers[layer]), hashes, walk))
            return 0;
    put_in(part->layers[0].buf, bits_of(&part->layers[0]), hashes, walk);
    tally[0]++;
    return 1;
}

/* All parts, of which one is open at a time: most keys of a run are of one host, and so of one part. */
typedef struct {
    PyObject *all, *current;
    Part part;
    int hashes;
} Parts;

static void close_current(Parts *parts)
{
    if (parts->current)
        close_part(&parts->part);
    parts->current = NULL;
}

/* Opens the layers of the part that a key belongs to. False when it has none. */
static int open_part_of(Parts *parts, const uint8_t *key)
{
    PyObject *wanted = PyList_GET_ITEM(parts->all, key[0] * PyList_GET_SIZE(parts->all) >> 8);
    if (wanted != parts->current) {
        close_current(parts);
        parts->current = open_part(wanted, &parts->part) ? wanted : NULL;
    }
    return parts->current != NULL;
}

static int prefetch_key(const Py_buffer *table, Parts *parts, const uint8_t *key)
{
    prefetch_bucket(table->buf, buckets_of(table), key);
    if (open_part_of(parts, key))
        prefetch_bits(&parts->part, parts->hashes, walk_of(key));
    return !PyErr_Occurred();
}

static int add_key(const Py_buffer *table, Parts *parts, const uint8_t *key)
{
    uint64_t both = both_halves(key);
    if (touch(table->buf, buckets_of(table), both, 0) || !open_part_of(parts, key)
        || !add_to_part(&parts->part, parts->hashes, walk_of(key)))
        return 0;
    touch(table->buf, buckets_of(table), both, 1);
    return 1;
}

static PyObject *add_keys(const Py_buffer *table, Parts *parts, PyObject *keys)
{
    Py_ssize_t all = PyList_GET_SIZE(keys);
    for (Py_ssize_t at = 0; at < all; at++)
        if (!prefetch_key(table, parts, key_in(PyList_GET_ITEM(keys, at))))
            return NULL;
    PyObject *met = PyBytes_FromStringAndSize(NULL, all);
    for (Py_ssize_t at = 0; met && at < all; at++)
        PyBytes_AS_STRING(met)[at] = (char)add_key(table, parts, key_in(PyList_GET_ITEM(keys, at)));
    return met;
}

static PyObject *add_new_keys(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer table;
    int hashes;
    if (!has_arguments(count, 4) || !(hashes = hashes_in(given[2])) || !are_all_keys(given[3]))
        return NULL;
    if (!PyList_CheckExact(given[1]) || !PyList_GET_SIZE(given[1]) || PyList_GET_SIZE(given[1]) > 256) {
        PyErr_SetString(PyExc_ValueError, "one to 256 parts are a list");
        return NULL;
    }
    if (!open_table(given[0], &table, BUCKET))
        return NULL;
    Parts parts = {.all = given[1], .current = NULL, .hashes = hashes};
    PyObject *met = add_keys(&table, &parts, given[3]);
    close_current(&parts);
    PyBuffer_Release(&table);
    return met;
}

PyMethodDef keyset_functions[] = {
    {"certain_has", FAST(certain_has), "Whether a key is certainly known."},
    {"certain_add", FAST(certain_add), "A key is certainly known from now on."},
    {"certain_add_all", FAST(certain_add_all), "The keys of a list are certainly known from now on."},
    {"certain_add_own", FAST(certain_add_own), "Those of many keys that are of one host are certainly known from now on."},
    {"certain_find_missing", FAST(certain_find_missing), "Numbers of those of many keys that are of another host or not known."},
    {"certain_find_news", FAST(certain_find_news), "The same, without links between hosts that say nothing new, which are noted."},
    {"certain_move", FAST(certain_move), "What a table knows is known to a larger one from now on."},
    {"bloom_has", FAST(bloom_has), "Whether a key may have been added."},
    {"bloom_add", FAST(bloom_add), "Add a key."},
    {"add_new_keys", FAST(add_new_keys), "Of each key whether it was new; then both tables have it from now on."},
    {NULL, NULL, 0, NULL},
};
