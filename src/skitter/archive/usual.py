"""The usual head and the usual path: by the kernel in C where it was built, else by the Python that defines them.

Before `heads.py` and `surt.py`, which do what is left. Pure. 0.4 us each where the Python takes 2 to 3, and twice
that between the hashing of a page and its compressing.
"""

from __future__ import annotations

__all__ = ["usual_head", "usual_path"]

try:
    from skitter.native.usual import usual_head, usual_path
except ImportError:
    from skitter.archive.usual_plain import usual_head, usual_path
