"""Kernels in C: the few loops over bytes that cost most of a page's time in Python.

Below everything. `core/` has the loops in plain C, `python/` what makes one extension module of them. Each
function is imported by the one module that has the same in Python, which is used where the kernels were not
built. A kernel says exactly what its Python twin says and trusts no byte that it reads (`make fuzz`); it
knows no file and no setting. `SKITTER_KERNELS=off` turns them off, should one ever be at fault.
"""

import os

if os.environ.get("SKITTER_KERNELS") == "off":
    raise ImportError("kernels are off, by SKITTER_KERNELS")
