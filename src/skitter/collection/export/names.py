"""File names for URLs: safe whatever the URL says, readable where it allows, never two the same.

Between a page and the folder it is exported to. Pure. URLs come from strangers: no name leaves the folder,
none is special to any file system, none is longer than all take, and two URLs that differ get names that
differ, also where the file system ignores case.
"""

from __future__ import annotations

import re
from hashlib import sha256
from urllib.parse import unquote

_UNSAFE = re.compile(r"[^\w.,=@+~()-]+")
# Names that Windows keeps for devices, whatever follows the dot.
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.I)
_PARTS = re.compile(r"https?://(?:[^/?#@]*@)?([^/?#]*)([^?#]*)(?:\?([^#]*))?", re.I)
_LONGEST = 80
_DEEPEST = 12


def file_name(url: str, suffix: str) -> str:
    """A relative path: host, folders of the path, name, a mark of the whole URL, suffix."""
    found = _PARTS.match(url)
    host, path, query = found.groups() if found else ("", url, None)
    *folders, last = [part for part in unquote(path or "", errors="replace").split("/") if part] or ["index"]
    if (path or "/").endswith("/") and last != "index":
        folders, last = [*folders, last], "index"
    stem = last if not query else f"{last}_{unquote(query, errors='replace')}"
    stem = stem.removesuffix(suffix)
    # Always marked: /a, /A and /a? may all be pages, and /a both a page and a folder of others.
    mark = sha256(url.encode("utf-8", "replace")).hexdigest()[:12]
    shown = [_safe(host or "unknown"), *(_safe(folder) for folder in folders[:_DEEPEST])]
    return "/".join((*shown, f"{_safe(stem)}-{mark}{suffix}"))


def _safe(part: str) -> str:
    """One name: ASCII letters and a few signs, lower case, not hidden, not a device, not too long."""
    shown = _UNSAFE.sub("_", part.encode("ascii", "replace").decode().replace("?", "_"))
    shown = shown.lower().strip(" .")[:_LONGEST].rstrip(" .")
    if not shown or _DEVICES.match(shown):
        return f"_{shown}"
    return shown
