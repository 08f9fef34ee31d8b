"""`python -m skitter` is `skitter`."""

from skitter.cli import run

run()
