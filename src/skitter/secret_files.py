"""Files that hold a secret: read only if nobody else can read them.

For the tokens of a server and of a worker. A secret that others can read is no secret, and whoever wrote the file
should hear of it before it is used.
"""

from __future__ import annotations

import stat
from pathlib import Path

from skitter.errors import UsageError

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_secret(file: Path, what: str) -> str:
    """The text of the file. A pipe, as of `<(pass show token)`, has no rights to look at."""
    try:
        with file.open(encoding="utf-8") as text:
            mode = file.stat().st_mode
            if stat.S_ISREG(mode) and mode & _OTHERS:
                raise UsageError(
                    f"cannot read {what} from {file}: others on this machine may read or change it "
                    f"(mode {stat.S_IMODE(mode):04o}); run: chmod 600 {file}"
                )
            return text.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {what} from {file}: {error}") from error
