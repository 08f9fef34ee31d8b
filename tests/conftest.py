"""What all tests share: Hypothesis looks for new cases at a committer, and repeats the same ones in CI."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("committer", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "committer")
