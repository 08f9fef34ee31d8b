"""SimHash of a text: by the kernel in C where it was built, else by the Python that defines it. Pure.

After the reading of a page and before its settling, where the frontier looks for similar pages. Both give the
same bits: a crawl can be continued on a machine without a compiler.
"""

from __future__ import annotations

__all__ = ["simhash"]

try:
    from skitter.native._kernels import simhash
except ImportError:
    from skitter.parse.fingerprints.fingerprint_plain import simhash
