/* The Bloom filter over halves of fingerprints, as skitter/frontier/rocks/nearwords_plain.py defines it.
 *
 * The words and the masks are buffers that Python owns; the same bits as the twin's, since files of them are kept. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "fetching.h"

enum { PROBES = 33, ASKED = 2 * PROBES + 1, MASKS = 4096, WORDS = 2, WIDTH = 8 };

static const uint64_t FIRST = 0x9E3779B97F4A7C15u, SECOND = 0xBF58476D1CE4E5B9u;
static const uint64_t LOWER = (uint64_t)1 << 32, PARITY = (uint64_t)1 << 33;

typedef struct {
    uint64_t *words;
    uint64_t count;
    const uint64_t *masks;
} Filter;

static uint64_t mixed(uint64_t half)
{
    half *= FIRST;
    half ^= half >> 32;
    half *= SECOND;
    return half ^ half >> 29;
}

static uint64_t again(uint64_t mix)
{
    mix *= FIRST;
    return mix ^ mix >> 32;
}

static uint64_t *word_of(const Filter *filter, uint64_t mix)
{
    return filter->words + ((mix >> 32) * filter->count >> 32);
}

static uint64_t mask_of(const Filter *filter, uint64_t mix)
{
    return filter->masks[mix & (MASKS - 1)];
}

static int has(const Filter *filter, uint64_t mix)
{
    for (int turn = 0; turn < WORDS; turn++, mix = again(mix)) {
        uint64_t mask = mask_of(filter, mix);
        if ((*word_of(filter, mix) & mask) != mask)
            return 0;
    }
    return 1;
}

static void put(const Filter *filter, uint64_t half)
{
    uint64_t mix = mixed(half);
    for (int turn = 0; turn < WORDS; turn++, mix = again(mix))
        *word_of(filter, mix) |= mask_of(filter, mix);
}

static uint64_t lower_of(uint64_t fingerprint)
{
    uint64_t parity = (uint64_t)__builtin_parityll(fingerprint) ? PARITY : 0;
    return parity | LOWER | (fingerprint & 0xFFFFFFFFu);
}

static void add_one(const Filter *filter, uint64_t fingerprint)
{
    put(filter, fingerprint >> 32);
    put(filter, lower_of(fingerprint));
}

/* The upper half in its forms, the lower one in its forms at an odd distance, the lower one at an even distance. All
 * are fetched from memory before the first is looked at: 67 misses take as long as a few. */
static void mix_all(const Filter *filter, uint64_t fingerprint, uint64_t *mixes)
{
    uint64_t upper = fingerprint >> 32, lower = lower_of(fingerprint);
    for (int probe = 0; probe < PROBES; probe++) {
        uint64_t flip = probe ? (uint64_t)1 << (probe - 1) : 0;
        mixes[probe] = mixed(upper ^ flip);
        mixes[PROBES + probe] = mixed(lower ^ (flip | PARITY));
    }
    mixes[ASKED - 1] = mixed(lower);
    for (int asked = 0; asked < ASKED; asked++)
        fetch(word_of(filter, mixes[asked]));
}

static int append(PyObject *list, long number)
{
    PyObject *found = PyLong_FromLong(number);
    int failed = !found || PyList_Append(list, found) < 0;
    Py_XDECREF(found);
    return !failed;
}

static PyObject *suspects_of(const Filter *filter, uint64_t fingerprint)
{
    uint64_t mixes[ASKED];
    int has_lower = 0;
    PyObject *found = PyList_New(0);
    mix_all(filter, fingerprint, mixes);
    for (int asked = 0; found && asked < ASKED; asked++) {
        int is_lower = asked == PROBES || asked == ASKED - 1;
        if ((is_lower && has_lower) || !has(filter, mixes[asked]))
            continue;
        has_lower |= is_lower;
        if (!append(found, is_lower ? PROBES : asked))
            Py_CLEAR(found);
    }
    return found;
}

/* -- for Python */

static int open_filter(PyObject *words, PyObject *masks, Py_buffer *held, Filter *filter)
{
    if (!PyBytes_CheckExact(masks) || PyBytes_GET_SIZE(masks) != MASKS * (Py_ssize_t)sizeof(uint64_t)) {
        PyErr_SetString(PyExc_ValueError, "there are 4096 masks of 8 bytes");
        return 0;
    }
    if (PyObject_GetBuffer(words, held, PyBUF_WRITABLE) < 0)
        return 0;
    uint64_t count = (uint64_t)held->len / sizeof(uint64_t);
    if (!count || count > UINT32_MAX || (uintptr_t)held->buf % sizeof(uint64_t)) {
        PyBuffer_Release(held);
        PyErr_SetString(PyExc_ValueError, "words are aligned, and 1 to 2**32");
        return 0;
    }
    *filter = (Filter){held->buf, count, (const uint64_t *)PyBytes_AS_STRING(masks)};
    return 1;
}

/* 0 with an exception set when it is no fingerprint. */
static int read_fingerprint(PyObject *number, uint64_t *fingerprint)
{
    *fingerprint = PyLong_AsUnsignedLongLong(number);
    return !(*fingerprint == UINT64_MAX && PyErr_Occurred());
}

static int is_call(PyObject *const *given, Py_ssize_t count, Py_ssize_t list)
{
    if (count == 3 && PyList_CheckExact(given[list]))
        return 1;
    PyErr_SetString(PyExc_TypeError, "three arguments, with a list of fingerprints");
    return 0;
}

static PyObject *add(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer held;
    Filter filter;
    uint64_t fingerprint;
    if (!is_call(given, count, 2) || !open_filter(given[0], given[1], &held, &filter))
        return NULL;
    int whole = 1;
    for (Py_ssize_t at = 0; whole && at < PyList_GET_SIZE(given[2]); at++)
        if ((whole = read_fingerprint(PyList_GET_ITEM(given[2], at), &fingerprint)))
            add_one(&filter, fingerprint);
    PyBuffer_Release(&held);
    if (!whole)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *suspects(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer held;
    Filter filter;
    uint64_t fingerprint;
    if (!is_call(given, count, 2) || !open_filter(given[0], given[1], &held, &filter))
        return NULL;
    PyObject *all = PyList_New(0);
    for (Py_ssize_t at = 0; all && at < PyList_GET_SIZE(given[2]); at++) {
        int is_read = read_fingerprint(PyList_GET_ITEM(given[2], at), &fingerprint);
        PyObject *found = is_read ? suspects_of(&filter, fingerprint) : NULL;
        if (!found || PyList_Append(all, found) < 0)
            Py_CLEAR(all);
        Py_XDECREF(found);
    }
    PyBuffer_Release(&held);
    return all;
}

static PyObject *close_ones(PyObject *others, uint64_t fingerprint, long most)
{
    PyObject *found = PyList_New(0);
    for (Py_ssize_t at = 0; found && at < PyList_GET_SIZE(others); at++) {
        PyObject *number = PyList_GET_ITEM(others, at);
        uint64_t other;
        if (!read_fingerprint(number, &other))
            Py_CLEAR(found);
        else if (__builtin_popcountll(other ^ fingerprint) <= most && PyList_Append(found, number) < 0)
            Py_CLEAR(found);
    }
    return found;
}

static PyObject *close_to(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    uint64_t fingerprint;
    if (!is_call(given, count, 1) || !read_fingerprint(given[0], &fingerprint))
        return NULL;
    long most = PyLong_AsLong(given[2]);
    if (most == -1 && PyErr_Occurred())
        return NULL;
    return close_ones(given[1], fingerprint, most);
}

static uint64_t big_endian(const unsigned char *bytes)
{
    uint64_t number = 0;
    for (int at = 0; at < WIDTH; at++)
        number = number << 8 | bytes[at];
    return number;
}

static PyObject *close_in(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    uint64_t fingerprint;
    if (count != 3 || !PyBytes_Check(given[1])) {
        PyErr_SetString(PyExc_TypeError, "a fingerprint, others in bytes, and how many bits may differ");
        return NULL;
    }
    if (!read_fingerprint(given[0], &fingerprint))
        return NULL;
    long most = PyLong_AsLong(given[2]);
    if (most == -1 && PyErr_Occurred())
        return NULL;
    const unsigned char *bytes = (const unsigned char *)PyBytes_AS_STRING(given[1]);
    PyObject *found = PyList_New(0);
    for (Py_ssize_t at = 0; found && at + WIDTH <= PyBytes_GET_SIZE(given[1]); at += WIDTH) {
        uint64_t other = big_endian(bytes + at);
        if (__builtin_popcountll(other ^ fingerprint) > most)
            continue;
        PyObject *number = PyLong_FromUnsignedLongLong(other);
        if (!number || PyList_Append(found, number) < 0)
            Py_CLEAR(found);
        Py_XDECREF(number);
    }
    return found;
}

#define FAST(function) (PyCFunction)(void (*)(void))function, METH_FASTCALL

static PyMethodDef methods[] = {
    {"add", FAST(add), "Add the halves of fingerprints."},
    {"suspects", FAST(suspects), "For each fingerprint the numbers of its probes that may be there."},
    {"close_to", FAST(close_to), "Those of many fingerprints that differ from one in so many bits at most."},
    {"close_in", FAST(close_in), "The same of fingerprints as they are stored, one behind the other."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition
    = {PyModuleDef_HEAD_INIT, "nearwords", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_nearwords(void)
{
    return PyModule_Create(&definition);
}
