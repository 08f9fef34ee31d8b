"""SimHash of a text: by the kernel in C where it was built, else by the Python that defines it. Pure.

After the reading of a page and before its settling, where the frontier looks for pages alike. Both say the same
to the bit: a crawl may go on on a machine without a compiler. 20 us for 8 KB; with numpy 60, and 0.1 s to load.
"""

from __future__ import annotations

__all__ = ["simhash"]

try:
    from skitter.native.simhash import simhash
except ImportError:
    from skitter.parse.fingerprint_plain import simhash
