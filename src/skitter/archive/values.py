"""A column's strings as a Parquet page has them: by the kernel in C where it was built, else by the Python that
defines it.

Between `columns.py`, which finds the strings, and `parquet.py`, which puts pages together. Pure. 5 us for all the
strings of a page where the Python takes 130.
"""

from __future__ import annotations

__all__ = ["extremes", "plain", "repeated"]

try:
    from skitter.native.values import extremes, plain, repeated
except ImportError:
    from skitter.archive.values_plain import extremes, plain, repeated
