/* What the parts of the one extension module share: each part has a table of functions, and some need a start. */

#ifndef SKITTER_KERNELS_H
#define SKITTER_KERNELS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define FAST(function) (PyCFunction)(void (*)(void))function, METH_FASTCALL

extern PyMethodDef markup_functions[], hrefs_functions[], keyset_functions[], link_batch_functions[],
    near_words_functions[], simhash_functions[], digests_functions[], figures_functions[];

/* They fill tables and intern strings, once. -1 with an exception set when that fails. */
int start_markup(void);
int start_hrefs(void);
int start_link_batch(void);
int start_simhash(void);
int start_digests(void);

#endif
