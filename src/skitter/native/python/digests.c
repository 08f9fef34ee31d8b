/* The two digests that a record has of one body, at once; skitter/archive/digests.py has them one by one. */

#include "kernels.h"

#include "../core/digests.h"

static int usable;

static PyObject *digests(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyBytes_Check(args[0]) || !PyBytes_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "a head and a body, as bytes");
        return NULL;
    }
    if (!usable)
        Py_RETURN_NONE;
#ifdef SKITTER_HAS_SHA
    uint8_t of_body[SHA256_DIGEST], of_both[SHA256_DIGEST];
    sha256_digests(
        (const uint8_t *)PyBytes_AS_STRING(args[0]), (size_t)PyBytes_GET_SIZE(args[0]),
        (const uint8_t *)PyBytes_AS_STRING(args[1]), (size_t)PyBytes_GET_SIZE(args[1]), of_body, of_both);
    return Py_BuildValue("(y#y#)", of_body, (Py_ssize_t)SHA256_DIGEST, of_both, (Py_ssize_t)SHA256_DIGEST);
#else
    Py_RETURN_NONE;
#endif
}

PyMethodDef digests_functions[] = {
    {"digests", FAST(digests),
     "SHA-256 of the body, and of head and body; None where the processor has no instructions for it."},
    {NULL, NULL, 0, NULL},
};

int start_digests(void)
{
#ifdef SKITTER_HAS_SHA
    usable = sha256_is_usable();
#endif
    return 0;
}
