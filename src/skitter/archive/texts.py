"""The texts of an exchange: by the kernel in C where it was built, else by the Python that defines them. Pure.

Between the hashing of a page and its compressing, where the interpreter finds its caches swept: 4 us there, where
the Python takes 45.
"""

from __future__ import annotations

__all__ = ["texts"]

try:
    from skitter.native.texts import texts
except ImportError:
    from skitter.archive.texts_plain import texts
