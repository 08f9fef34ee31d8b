"""Keys by the default settings, for benchmarks that make URLs of their own."""

from __future__ import annotations

from skitter.settings import KeySettings
from skitter.urls.keys import Keys

KEYS = Keys(KeySettings())
key_of = KEYS.key_of
