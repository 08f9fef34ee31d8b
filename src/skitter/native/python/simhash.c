/* SimHash of a text, as skitter/parse/fingerprints/fingerprint_plain.py defines it, to the bit: fingerprints lie on disk. */

#include "kernels.h"

#include "../core/simhash.h"
#include "../core/utf8.h"

static PyObject *simhash_of(const uint8_t *text, size_t length)
{
    uint64_t found;
    if (!find_simhash(text, length < MOST_BYTES ? length : MOST_BYTES, &found))
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(found);
}

static PyObject *simhash_of_any(PyObject *text)
{
    PyObject *start = PyUnicode_Substring(text, 0, MOST_BYTES);
    PyObject *coded = start ? PyUnicode_AsEncodedString(start, "utf-8", "replace") : NULL;
    PyObject *result = NULL;
    if (coded)
        result = simhash_of((const uint8_t *)PyBytes_AS_STRING(coded), (size_t)PyBytes_GET_SIZE(coded));
    Py_XDECREF(start);
    Py_XDECREF(coded);
    return result;
}

static PyObject *simhash(PyObject *module, PyObject *text)
{
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a text is a str");
        return NULL;
    }
    if (PyUnicode_READY(text) < 0)
        return NULL;
    /* of at most three bytes a character, in which most texts are kept */
    static uint8_t coded[3 * MOST_BYTES];
    size_t length = (size_t)PyUnicode_GET_LENGTH(text), most = length < MOST_BYTES ? length : MOST_BYTES;
    if (PyUnicode_IS_ASCII(text))
        return simhash_of(PyUnicode_1BYTE_DATA(text), most);
    const uint8_t *end;
    switch (PyUnicode_KIND(text)) {
    case PyUnicode_1BYTE_KIND:
        end = write_utf8_of_bytes(PyUnicode_1BYTE_DATA(text), most, coded);
        break;
    case PyUnicode_2BYTE_KIND:
        end = write_utf8_of_pairs(PyUnicode_2BYTE_DATA(text), most, coded);
        break;
    default:
        return simhash_of_any(text);
    }
    return simhash_of(coded, (size_t)(end - coded));
}

PyMethodDef simhash_functions[] = {
    {"simhash", simhash, METH_O, "SimHash of a text; None when it is too short to say anything."},
    {NULL, NULL, 0, NULL},
};

int start_simhash(void)
{
    fill_fold();
    return 0;
}
