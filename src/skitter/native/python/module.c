/* The extension module `skitter.native._kernels`: the functions of all kernels under one name. */

#include "kernels.h"

static int add_functions(PyObject *module)
{
    PyMethodDef *const tables[] = {
        markup_functions, hrefs_functions, keyset_functions, link_batch_functions, near_words_functions, simhash_functions,
        digests_functions, figures_functions};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (PyModule_AddFunctions(module, tables[i]) < 0)
            return -1;
    return 0;
}

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kernels", NULL, -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernels(void)
{
    if (start_markup() || start_hrefs() || start_link_batch() || start_simhash() || start_digests())
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module && add_functions(module))
        Py_CLEAR(module);
    return module;
}
