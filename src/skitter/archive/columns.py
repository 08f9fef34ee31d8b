"""A stretch of a journal, by column: by the kernel in C where it was built and the rows are of this version, else
by the Python that defines it.

Between the journal and `tables.py`, which hands the buffers to Arrow as they are: no value of a row becomes a
Python object. 6 us a page where msgspec, Python and Arrow's own splitting took 22. Never lets through what is not
UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable

from skitter.archive import columns_plain
from skitter.archive.columns_plain import NAMES, Buffers, Columns

__all__ = ["NAMES", "Columns", "columns_of"]

_kernel: Callable[[bytes | memoryview], Buffers | None] | None
try:
    from skitter.native.columns import columns_of as _kernel
except ImportError:
    _kernel = None


def columns_of(journal: bytes | memoryview) -> Columns:
    found = _kernel(journal) if _kernel is not None else None
    return Columns(*found) if found is not None else columns_plain.columns_of(bytes(journal))
