"""The figures of a text: by the kernel in C where it was built, else by the Python that defines them. Pure.

After the reading of a page and before its settling, where the frontier asks whether pages alike have figures of
their own. Both give the same bytes.
"""

from __future__ import annotations

__all__ = ["figures"]

try:
    from skitter.native._kernels import figures
except ImportError:
    from skitter.parse.fingerprints.figures_plain import figures
