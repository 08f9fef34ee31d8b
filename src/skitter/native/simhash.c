/* SimHash of a text, as skitter/parse/fingerprint_plain.py defines it, to the bit: fingerprints lie on disk.
 *
 * Words are runs of letters and of bytes above ASCII; in scripts without spaces every character begins a word of its
 * own, which is that character and the next. A word is a polynomial in its folded bytes. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "mixing.h"

enum { MOST_BYTES = 16384, FEWEST_WORDS = 20, MOST_REPEATS = 16, PAIR = 6, PLANES = 16 };

/* Every byte of 16 KB can end one word and begin a dense one. */
enum { MOST_WORDS = MOST_BYTES + MOST_BYTES / 2 + 1, TABLE = 65536 };

static const uint64_t GOLDEN = 0x9E3779B97F4A7C15u;
static const uint64_t LOWEST = 0x0001000100010001u;

typedef struct {
    uint64_t word;
    uint64_t count;
} Slot;

static uint8_t fold[256];

static void fill_fold(void)
{
    for (int code = 0; code < 256; code++) {
        int upper = code >= 'A' && code <= 'Z';
        int lower = code >= 'a' && code <= 'z';
        fold[code] = (uint8_t)(code >= 0x80 || lower ? code : upper ? code + 32 : 0);
    }
}

/* `text` is of at most MOST_BYTES; `words` has room for MOST_WORDS. */
static size_t find_words(const uint8_t *text, size_t length, uint64_t *words)
{
    size_t found = 0, at = 0;
    while (at < length) {
        while (at < length && !fold[text[at]])
            at++;
        if (at == length)
            break;
        uint64_t word = 0, power = 1;
        for (; at < length && fold[text[at]]; at++, power *= GOLDEN)
            word += fold[text[at]] * power;
        words[found++] = word;
    }
    return found;
}

static size_t find_dense_words(const uint8_t *text, size_t length, uint64_t *words)
{
    size_t found = 0;
    for (size_t at = 0; at < length; at++) {
        if (text[at] < 0xE3 || text[at] > 0xED)
            continue;
        uint64_t word = 0, power = 1;
        for (size_t next = at; next < at + PAIR && next < length; next++, power *= GOLDEN)
            word += fold[text[next]] * power;
        words[found++] = word;
    }
    return found;
}

/* `table` is of `size` slots, a power of two and at least twice `found`. */
static uint64_t majority(const uint64_t *words, size_t found, Slot *table, size_t size)
{
    uint64_t planes[PLANES] = {0};
    uint64_t total = 0, result = 0;
    memset(table, 0, size * sizeof *table);
    for (size_t i = 0; i < found; i++) {
        size_t place = (size_t)(words[i] * GOLDEN >> 40) & (size - 1);
        while (table[place].count && table[place].word != words[i])
            place = (place + 1) & (size - 1);
        table[place].word = words[i];
        table[place].count++;
    }
    for (size_t place = 0; place < size; place++) {
        uint64_t count = table[place].count;
        if (!count)
            continue;
        count = count < MOST_REPEATS ? count : MOST_REPEATS;
        total += count;
        uint64_t bits = mixed(table[place].word);
        /* Four counters of 16 bits in each plane: no text has 65,536 words. */
        for (int shift = 0; shift < PLANES; shift++)
            planes[shift] += (bits >> shift & LOWEST) * count;
    }
    for (int bit = 0; bit < 64; bit++)
        if ((planes[bit % PLANES] >> (bit / PLANES * PLANES) & 0xFFFF) > total / 2)
            result |= (uint64_t)1 << bit;
    return result;
}

static PyObject *simhash_of(const uint8_t *text, size_t length)
{
    static uint64_t words[MOST_WORDS];
    static Slot table[TABLE];
    size_t found = find_words(text, length, words);
    found += find_dense_words(text, length, words + found);
    if (found < FEWEST_WORDS)
        Py_RETURN_NONE;
    size_t size = 64;
    while (size < 2 * found)
        size *= 2;
    return PyLong_FromUnsignedLongLong(majority(words, found, table, size));
}

static PyObject *simhash(PyObject *module, PyObject *text)
{
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a text is a str");
        return NULL;
    }
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    if (PyUnicode_IS_ASCII(text)) {
        length = length < MOST_BYTES ? length : MOST_BYTES;
        return simhash_of(PyUnicode_1BYTE_DATA(text), (size_t)length);
    }
    PyObject *start = PyUnicode_Substring(text, 0, MOST_BYTES);
    PyObject *coded = start ? PyUnicode_AsEncodedString(start, "utf-8", "replace") : NULL;
    Py_XDECREF(start);
    if (!coded)
        return NULL;
    length = PyBytes_GET_SIZE(coded);
    PyObject *result = simhash_of(
        (const uint8_t *)PyBytes_AS_STRING(coded), (size_t)(length < MOST_BYTES ? length : MOST_BYTES));
    Py_DECREF(coded);
    return result;
}

static PyMethodDef methods[] = {
    {"simhash", simhash, METH_O, "SimHash of a text; None when it is too short to say anything."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "simhash", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_simhash(void)
{
    fill_fold();
    return PyModule_Create(&definition);
}
