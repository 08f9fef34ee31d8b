"""All kernels. Each function has a Python twin that defines it; the comment above a group names where."""

from collections.abc import Callable, Sequence
from mmap import mmap
from typing import TypeVar

from skitter.frontier.keyset_plain import Part
from skitter.model import Host, Link, TaskKind, UrlKey, Via

_T = TypeVar("_T")
_Triple = tuple[str | None, str | None, str | None]
_Resolved = tuple[str, UrlKey, Host]

# -- parse/markup/html_tree.py: the parts of a page, or None when only a tree could tell. The parts are those of
# `parse.html_parts.Parts` but the last, with iframes for frames; then the declared charsets (charset,
# content), whether all is ASCII, and whether there is a charset at the beginning that is none of those.
def read_html(
    body: bytes,
    with_text: bool,
    with_anchors: bool,
    product: bytes,
    link: Callable[[str, str, str, str], _T],
    clean: Callable[[str], str],
    /,
) -> (
    tuple[
        str | None,
        str | None,
        str | None,
        str | None,
        list[_Triple],
        list[_Triple],
        list[_T],
        list[_Triple],
        list[_Triple],
        str,
        bool,
        list[_Triple],
        bool,
        bool,
    ]
    | None
): ...

# -- parse/fingerprints/fingerprint_plain.py
def simhash(text: str, /) -> int | None: ...

# -- parse/fingerprints/figures_plain.py
def figures(text: str, url: str, title: str, /) -> bytes: ...

# -- urls/canonical.py and keys.py: the plain hrefs of a page; the numbers are of links that are neither plain
# nor known
def resolve_links(
    links: Sequence[Link],
    folder: str,
    host: str,
    prefix: bytes,
    others: bool,
    parameters: set[str],
    known: dict[str, _Resolved | None],
    anywhere: dict[str, _Resolved | None],
    /,
) -> tuple[list[_Resolved | None], list[int]]: ...

# -- urls/links_plain.py
def select_followed(
    url: str, links: Sequence[Link], resolved: Sequence[_Resolved | None], /
) -> tuple[bytes, str]: ...
def list_targets(
    links: Sequence[Link], resolved: Sequence[_Resolved | None], /
) -> tuple[tuple[str, Link], ...]: ...

# -- frontier/link_batches_plain.py
def select_links(
    keys: bytes,
    urls: str,
    numbers: Sequence[int],
    make: Callable[..., _T],
    depth: int,
    via: Via,
    parent: UrlKey | None,
    hops: int,
    priority: int | None,
    kind: TaskKind,
    nesting: int,
    /,
) -> list[_T]: ...
def split_batch(
    keys: bytes, urls: str, numbers: Sequence[int], section: str, page: str, /
) -> tuple[bytes, str, bytes]: ...

# -- frontier/keyset_plain.py
def certain_has(table: mmap, key: bytes, /) -> bool: ...
def certain_add(table: mmap, key: bytes, /) -> None: ...
def certain_add_all(table: mmap, keys: list[bytes], /) -> None: ...
def certain_add_own(table: mmap, keys: bytes, host: bytes, /) -> None: ...
def certain_find_missing(table: mmap, keys: bytes, host: bytes, /) -> list[int]: ...
def certain_find_news(
    table: mmap,
    keys: bytes,
    host: bytes,
    young: dict[bytes, bytes],
    old: dict[bytes, bytes],
    parent: bytes,
    /,
) -> list[int]: ...
def certain_move(table: mmap, larger: mmap, /) -> None: ...
def bloom_has(filter: mmap, hashes: int, key: bytes, /) -> bool: ...
def bloom_add(filter: mmap, hashes: int, key: bytes, /) -> None: ...
def add_new_keys(table: mmap, parts: list[Part], hashes: int, keys: list[bytes], /) -> bytes: ...

# -- frontier/tables/nearwords_plain.py
def near_add(words: mmap, masks: bytes, fingerprints: list[int], /) -> None: ...
def near_find_candidates(words: mmap, masks: bytes, fingerprints: list[int], /) -> list[list[int]]: ...
def near_select_close(fingerprint: int, others: list[int], most: int, /) -> list[int]: ...
def near_unpack_close(fingerprint: int, stored: bytes, most: int, /) -> list[int]: ...

# -- archive/digests.py
def digests(head: bytes, body: bytes, /) -> tuple[bytes, bytes] | None: ...
