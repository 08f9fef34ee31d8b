/* Keys that are certainly known, and a Bloom filter of keys: skitter/frontier/keyset_plain.py defines both.
 *
 * Tables are buffers that Python owns and keeps; a key is 16 bytes, its host's half first. Nothing is kept here. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "fetching.h"
#include "mixing.h"

enum { KEY = 16, HALF = 8, ENTRY = 6, WAYS = 10, BUCKET = 64, MOST_HASHES = 32, MOST_LAYERS = 16 };
enum { MARK = 2, MOST_LINKERS = 32 }; /* of linkers */

static const uint64_t MOST_OF_ENTRY = ((uint64_t)1 << 8 * ENTRY) - 1;

static uint64_t half(const uint8_t *bytes)
{
    uint64_t number = 0;
    for (int at = 0; at < HALF; at++)
        number = number << 8 | bytes[at];
    return number;
}

/* -- keys known for certain: buckets of ten places, 6 bytes a place, the youngest first, and 4 bytes to spare: a bucket
 * is a line of the processor's cache. Which bucket it is says the rest of a key: with more than 65,536 of them, which is
 * the caller's to see to, nothing of its 64 bits is lost. */

static uint64_t both_halves(const uint8_t *key)
{
    return half(key) ^ half(key + HALF);
}

/* Two bytes more are read than it has, in one go with them: the last place of a bucket has four behind it. */
static uint64_t entry_at(const uint8_t *place)
{
    uint64_t entry = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(&entry, place, sizeof entry);
#else
    for (int at = sizeof entry; at-- > 0;)
        entry = entry << 8 | place[at];
#endif
    return entry & MOST_OF_ENTRY;
}

static void put_first(uint8_t *bucket, int from, uint64_t entry)
{
    memmove(bucket + ENTRY, bucket, (size_t)from * ENTRY);
    for (int at = 0; at < ENTRY; at++, entry >>= 8)
        bucket[at] = (uint8_t)entry;
}

/* What was asked for is young again: a site's menu is linked by all of its pages, most others by one. */
static int is_certain(uint8_t *table, uint64_t buckets, uint64_t both, int is_added)
{
    uint64_t entry = (both / buckets + 1) & MOST_OF_ENTRY; /* 0 is an empty place */
    uint8_t *bucket = table + both % buckets * BUCKET;
    for (int way = 0; way < WAYS; way++) {
        if (entry_at(bucket + way * ENTRY) != entry)
            continue;
        if (way)
            put_first(bucket, way, entry);
        return 1;
    }
    if (is_added)
        put_first(bucket, WAYS - 1, entry);
    return 0;
}

/* All keys of a table go to a larger one, of each bucket the oldest first: the youngest is the first again. */
static void move_all(const uint8_t *from, uint64_t buckets, uint8_t *to, uint64_t more)
{
    for (uint64_t bucket = 0; bucket < buckets; bucket++)
        for (int way = WAYS; way-- > 0;) {
            uint64_t entry = entry_at(from + bucket * BUCKET + way * ENTRY);
            if (entry)
                is_certain(to, more, (entry - 1) * buckets + bucket, 1);
        }
}

/* -- the Bloom filter: double hashing, each place by the upper half of a product */

typedef struct {
    uint64_t at, step;
} Walk;

static Walk walk_of(const uint8_t *key)
{
    uint64_t host = half(key), rest = half(key + HALF);
    /* Hosts have the same paths, and paths the same host: neither half may stand for the key. */
    uint64_t at = mixed(host * 0x9E3779B97F4A7C15u + rest);
    return (Walk){at, mixed(at ^ rest) | 1};
}

static uint64_t place_of(uint64_t at, uint64_t bits)
{
    return (uint64_t)((unsigned __int128)at * bits >> 64);
}

static int may_have(const uint8_t *filter, uint64_t bits, int hashes, Walk walk)
{
    for (int turn = 0; turn < hashes; turn++, walk.at += walk.step) {
        uint64_t place = place_of(walk.at, bits);
        if (!(filter[place >> 3] >> (place & 7) & 1))
            return 0;
    }
    return 1;
}

static void put_in(uint8_t *filter, uint64_t bits, int hashes, Walk walk)
{
    for (int turn = 0; turn < hashes; turn++, walk.at += walk.step) {
        uint64_t place = place_of(walk.at, bits);
        filter[place >> 3] |= (uint8_t)(1 << (place & 7));
    }
}

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
    int found = is_certain(table.buf, buckets_of(&table), both_halves(key), 0);
    PyBuffer_Release(&table);
    return PyBool_FromLong(found);
}

static PyObject *certain_add(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer table;
    const uint8_t *key;
    if (!has_arguments(count, 2) || !(key = key_in(given[1])) || !open_table(given[0], &table, BUCKET))
        return NULL;
    is_certain(table.buf, buckets_of(&table), both_halves(key), 1);
    PyBuffer_Release(&table);
    Py_RETURN_NONE;
}

/* All places are fetched from memory before the first is looked at: 30 misses take as long as a few. */
static void fetch_place(const Py_buffer *table, const uint8_t *key)
{
    fetch((const uint8_t *)table->buf + both_halves(key) % buckets_of(table) * BUCKET);
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
        fetch_place(&table, key_in(PyList_GET_ITEM(given[1], at)));
    for (Py_ssize_t at = 0; at < all; at++)
        is_certain(table.buf, buckets_of(&table), both_halves(key_in(PyList_GET_ITEM(given[1], at))), 1);
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

static void fetch_places(const Py_buffer *table, const uint8_t *keys, Py_ssize_t length)
{
    for (Py_ssize_t at = 0; at + KEY <= length; at += KEY)
        fetch_place(table, keys + at);
}

/* Who was heard to link what: marks by key, among the young or else among the old. The parent is a key of who links. */
typedef struct {
    PyObject *young, *old;
    const uint8_t *parent;
} Heard;

static int has_linker(const uint8_t *marks, Py_ssize_t length, const uint8_t *linker)
{
    for (Py_ssize_t at = 0; at + MARK <= length; at += MARK)
        if (!memcmp(marks + at, linker, MARK))
            return 1;
    return 0;
}

static int is_doubled(Py_ssize_t length)
{
    Py_ssize_t count = length / MARK;
    return count > 1 && !(count & (count - 1));
}

/* 1 when one more linker is noted, -1 on an error. */
static int note_linker(const Heard *heard, PyObject *key, const uint8_t *marks, Py_ssize_t length)
{
    PyObject *more = PyBytes_FromStringAndSize(NULL, length + MARK);
    if (!more)
        return -1;
    memcpy(PyBytes_AS_STRING(more), marks, (size_t)length);
    memcpy(PyBytes_AS_STRING(more) + length, heard->parent, MARK);
    int failed = PyDict_SetItem(heard->young, key, more);
    Py_DECREF(more);
    return failed ? -1 : 1;
}

/* 1 when nothing has to be asked about a link to what is known, after these marks; -1 on an error. */
static int is_old_news(const Heard *heard, PyObject *key, const uint8_t *marks, Py_ssize_t length)
{
    if (!memcmp(PyBytes_AS_STRING(key), heard->parent, HALF) || length >= MOST_LINKERS * MARK
        || has_linker(marks, length, heard->parent))
        return 1;
    return is_doubled(length + MARK) ? 0 : note_linker(heard, key, marks, length);
}

/* Borrowed; NULL, perhaps with an error, when there are none. */
static PyObject *marks_of(const Heard *heard, PyObject *key)
{
    PyObject *marks = PyDict_GetItemWithError(heard->young, key);
    if (!marks && !PyErr_Occurred())
        marks = PyDict_GetItemWithError(heard->old, key);
    if (!marks || PyBytes_CheckExact(marks))
        return marks;
    PyErr_SetString(PyExc_TypeError, "marks are bytes");
    return NULL;
}

/* 1 when a link between hosts says nothing new; -1 on an error. */
static int is_heard(const Py_buffer *table, const Heard *heard, const uint8_t *bytes)
{
    int sure = -1;
    PyObject *key = PyBytes_FromStringAndSize((const char *)bytes, KEY);
    PyObject *marks = key ? marks_of(heard, key) : NULL;
    if (marks)
        sure = is_old_news(heard, key, (const uint8_t *)PyBytes_AS_STRING(marks), PyBytes_GET_SIZE(marks));
    else if (!PyErr_Occurred()) /* who links it was forgotten, or is on disk alone: heard anew, from nobody on */
        sure = is_certain(table->buf, buckets_of(table), both_halves(bytes), 0) ? is_old_news(heard, key, bytes, 0) : 0;
    Py_XDECREF(key);
    return sure;
}

/* 1 when nothing has to be asked about a key; -1 on an error. `heard` may be nothing. */
static int is_sure(const Py_buffer *table, const uint8_t *key, const uint8_t *host, const Heard *heard)
{
    if (!memcmp(key, host, HALF) && is_certain(table->buf, buckets_of(table), both_halves(key), 0))
        return 1;
    return heard ? is_heard(table, heard, key) : 0;
}

static PyObject *all_unsure(const Py_buffer *table, PyObject *keys, PyObject *host, const Heard *heard)
{
    const uint8_t *first = (const uint8_t *)PyBytes_AS_STRING(keys);
    Py_ssize_t length = PyBytes_GET_SIZE(keys);
    PyObject *unsure = PyList_New(0);
    fetch_places(table, first, length);
    for (Py_ssize_t at = 0; unsure && at + KEY <= length; at += KEY) {
        int sure = is_sure(table, first + at, (const uint8_t *)PyBytes_AS_STRING(host), heard);
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

static PyObject *certain_lacks(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer table;
    if (!has_arguments(count, 3) || !are_keys(given[1], given[2]) || !open_table(given[0], &table, BUCKET))
        return NULL;
    PyObject *unsure = all_unsure(&table, given[1], given[2], NULL);
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
    fetch_places(&table, first, length);
    for (Py_ssize_t at = 0; at + KEY <= length; at += KEY)
        if (!memcmp(first + at, PyBytes_AS_STRING(given[2]), HALF))
            is_certain(table.buf, buckets_of(&table), both_halves(first + at), 1);
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

static PyObject *certain_unheard(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer table;
    if (!has_arguments(count, 6) || !are_keys(given[1], given[2]) || !is_parent(given[5]))
        return NULL;
    if (!PyDict_CheckExact(given[3]) || !PyDict_CheckExact(given[4])) {
        PyErr_SetString(PyExc_TypeError, "marks lie in dicts");
        return NULL;
    }
    if (!open_table(given[0], &table, BUCKET))
        return NULL;
    Heard heard = {given[3], given[4], (const uint8_t *)PyBytes_AS_STRING(given[5])};
    PyObject *unsure = all_unsure(&table, given[1], given[2], &heard);
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
static void fetch_bits(const Part *part, int hashes, Walk walk)
{
    for (int layer = 0; layer < part->count; layer++) {
        Walk ahead = walk;
        for (int turn = 0; turn < (layer && hashes > 2 ? 2 : hashes); turn++, ahead.at += ahead.step)
            fetch((const uint8_t *)part->layers[layer].buf + (place_of(ahead.at, bits_of(&part->layers[layer])) >> 3));
    }
}

/* Whether no layer has the key, and the youngest has now. */
static int is_met(Part *part, int hashes, Walk walk)
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

/* Whether the part of a key has layers; they are open then. */
static int is_in_part(Parts *parts, const uint8_t *key)
{
    PyObject *wanted = PyList_GET_ITEM(parts->all, key[0] * PyList_GET_SIZE(parts->all) >> 8);
    if (wanted != parts->current) {
        close_current(parts);
        parts->current = open_part(wanted, &parts->part) ? wanted : NULL;
    }
    return parts->current != NULL;
}

static int fetch_key(const Py_buffer *table, Parts *parts, const uint8_t *key)
{
    fetch_place(table, key);
    if (is_in_part(parts, key))
        fetch_bits(&parts->part, parts->hashes, walk_of(key));
    return !PyErr_Occurred();
}

static int is_key_met(const Py_buffer *table, Parts *parts, const uint8_t *key)
{
    uint64_t both = both_halves(key);
    if (is_certain(table->buf, buckets_of(table), both, 0) || !is_in_part(parts, key)
        || !is_met(&parts->part, parts->hashes, walk_of(key)))
        return 0;
    is_certain(table->buf, buckets_of(table), both, 1);
    return 1;
}

static PyObject *met_keys(const Py_buffer *table, Parts *parts, PyObject *keys)
{
    Py_ssize_t all = PyList_GET_SIZE(keys);
    for (Py_ssize_t at = 0; at < all; at++)
        if (!fetch_key(table, parts, key_in(PyList_GET_ITEM(keys, at))))
            return NULL;
    PyObject *met = PyBytes_FromStringAndSize(NULL, all);
    for (Py_ssize_t at = 0; met && at < all; at++)
        PyBytes_AS_STRING(met)[at] = (char)is_key_met(table, parts, key_in(PyList_GET_ITEM(keys, at)));
    return met;
}

static PyObject *keys_met(PyObject *module, PyObject *const *given, Py_ssize_t count)
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
    PyObject *met = met_keys(&table, &parts, given[3]);
    close_current(&parts);
    PyBuffer_Release(&table);
    return met;
}

#define FAST(function) (PyCFunction)(void (*)(void))function, METH_FASTCALL

static PyMethodDef methods[] = {
    {"certain_has", FAST(certain_has), "Whether a key is certainly known."},
    {"certain_add", FAST(certain_add), "A key is certainly known from now on."},
    {"certain_add_all", FAST(certain_add_all), "The keys of a list are certainly known from now on."},
    {"certain_add_own", FAST(certain_add_own), "Those of many keys that are of one host are certainly known from now on."},
    {"certain_lacks", FAST(certain_lacks), "Numbers of those of many keys that are of another host or not known."},
    {"certain_unheard", FAST(certain_unheard), "The same, without links between hosts that say nothing new, which are noted."},
    {"certain_move", FAST(certain_move), "What a table knows is known to a larger one from now on."},
    {"bloom_has", FAST(bloom_has), "Whether a key may have been added."},
    {"bloom_add", FAST(bloom_add), "Add a key."},
    {"keys_met", FAST(keys_met), "Of each key whether nobody knew it, which both tables do from now on."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "keyset", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_keyset(void)
{
    return PyModule_Create(&definition);
}
