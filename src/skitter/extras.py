"""Parts of skitter that are installed on their own, and the line that says so where one is missing.

The lowest layer. A crawl with its WARC archive needs none of them. Whoever is about to import a library of an
extra calls `need` first. Imports nothing of the extras itself.
"""

from __future__ import annotations

from skitter.errors import MissingExtra

# By library: its extra in pyproject.toml, and what it is for.
EXTRAS = {
    "duckdb": ("query", "to read an archive by SQL, list its pages, verify or export it"),
    "pyarrow": ("query", "to read and write Parquet tables"),
    "numpy": ("serve", "to serve the dashboard, and to crawl where skitter was built without a C compiler"),
    "pypdfium2": ("pdf", "to read PDF files"),
    "obstore": ("objects", "to keep an archive in an object store"),
    "psycopg": ("postgres", "to keep the frontier's log in PostgreSQL"),
    "confluent_kafka": ("kafka", "to send rows to Kafka"),
    "cryptography": ("identities", "to log in to hosts, and to sign requests and WACZ files"),
}


def has(library: str) -> bool:
    from importlib.util import find_spec  # five modules that `--help` does without

    return find_spec(library) is not None


def need(library: str) -> None:
    """Raises MissingExtra where the library is not installed."""
    if not has(library):
        raise MissingExtra(advice(library))


def advice(library: str) -> str:
    extra, what_for = EXTRAS[library]
    return f"{library} is not installed, which is needed {what_for}: pip install 'skitter[{extra}]'"
