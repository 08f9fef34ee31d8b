"""Kernels in C: the few loops over bytes that cost most of a page's time in Python.

Below everything. Each is imported by the one module that has the same in Python and falls back to it where no
kernel was built; it is a pure function of its arguments, says exactly what its Python twin says, and trusts no
byte that it reads. Nothing here knows a file or a setting. `SKITTER_KERNELS=off` does without them, should one
ever be at fault: a page that crashes it would crash the next run as well.
"""

import os

if os.environ.get("SKITTER_KERNELS") == "off":
    raise ImportError("kernels are off, by SKITTER_KERNELS")
