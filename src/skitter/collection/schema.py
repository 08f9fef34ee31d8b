"""The tables of an archive: their columns, in Common Crawl's names where they mean the same, and short names.

What `query` and `pages()` promise, whoever wrote the files. An older archive that lacks a column has nulls
there.
"""

from __future__ import annotations

PAGES: dict[str, str] = {
    "url_surtkey": "VARCHAR",
    "url": "VARCHAR",
    "url_host_name": "VARCHAR",
    "url_host_tld": "VARCHAR",
    "url_host_registered_domain": "VARCHAR",
    "url_protocol": "VARCHAR",
    "url_port": "INTEGER",
    "url_path": "VARCHAR",
    "url_query": "VARCHAR",
    "fetch_time": "TIMESTAMP",
    "fetch_status": "SMALLINT",
    "fetch_redirect": "VARCHAR",
    "content_digest": "VARCHAR",
    "content_mime_type": "VARCHAR",
    "content_mime_detected": "VARCHAR",
    "content_charset": "VARCHAR",
    "content_languages": "VARCHAR",
    "content_truncated": "VARCHAR",
    "warc_filename": "VARCHAR",
    "warc_record_offset": "BIGINT",
    "warc_record_length": "BIGINT",
    "kind": "VARCHAR",
    "size": "BIGINT",
    "title": "VARCHAR",
    "depth": "SMALLINT",
    "directives": "VARCHAR",
    "etag": "VARCHAR",
    "last_modified": "VARCHAR",
    "address": "VARCHAR",
    "http_version": "VARCHAR",
    "fetch_ms": "FLOAT",
    "revisit_of": "VARCHAR",
    "text_digest": "VARCHAR",
    "simhash": "UBIGINT",
    "near_duplicate_of": "VARCHAR",
    "failure": "VARCHAR",
}
LINKS = {
    "url": "VARCHAR",
    "fetch_time": "TIMESTAMP",
    "links": 'STRUCT(target VARCHAR, "text" VARCHAR, rel VARCHAR, tag VARCHAR)[]',
}
TEXT = {
    "url": "VARCHAR",
    "fetch_time": "TIMESTAMP",
    "title": "VARCHAR",
    "language": "VARCHAR",
    "text": "VARCHAR",
    "content_digest": "VARCHAR",
}
COLUMNS = {"pages": PAGES, "links": LINKS, "text": TEXT}

# Besides the names above.
SHORT: dict[str, dict[str, str]] = {
    "pages": {
        "status": "fetch_status",
        "host": "url_host_name",
        "domain": "url_host_registered_domain",
        "path": "url_path",
        "mime": "coalesce(nullif(content_mime_detected, ''), content_mime_type)",
        "charset": "content_charset",
        "language": "content_languages",
        "digest": "content_digest",
        "redirect": "fetch_redirect",
        "truncated": "content_truncated",
        "fetched_at": "fetch_time",
        "file": "warc_filename",
        '"offset"': "warc_record_offset",
        '"length"': "warc_record_length",
    },
    "links": {"fetched_at": "fetch_time"},
    "text": {"fetched_at": "fetch_time", "digest": "content_digest"},
}
