"""`python -m skitter` is `skitter`."""

import sys

from skitter.cli import main

sys.exit(main())
