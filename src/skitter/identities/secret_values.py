"""Secrets, read where the settings say they are: environment variables and files.

Asked once, when a worker starts. What is read stays in the memory of the process that talks to the host. Never
repeats a value in a message.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from skitter.errors import SettingsError
from skitter.settings.host_identity import SecretSource

_OTHERS = stat.S_IROTH | stat.S_IWOTH | stat.S_IXOTH
_LARGEST = 1_000_000


def read_secret(source: SecretSource, where: str) -> str:
    """`where` names the setting."""
    if source.file:
        text = read_private_file(source.file, where).rstrip("\r\n")
    else:
        text = os.environ.get(source.env, "")
        if not text:
            raise SettingsError(
                f"{where}: the environment variable {source.env} is not set; set it and start again"
            )
    if not text:
        raise SettingsError(f"{where}: {source.file} is empty; write the secret into it")
    if not text.isprintable():
        raise SettingsError(f"{where}: the secret has a line break or another character that cannot be sent")
    return text


def read_private_file(path: str, where: str) -> str:
    """A file that others cannot read."""
    check_private_file(path, where)
    try:
        return Path(path).read_bytes()[:_LARGEST].decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SettingsError(f"{where}: {path} is not UTF-8") from None
    except OSError as error:
        raise SettingsError(f"{where}: {path} cannot be read: {error.strerror}") from None


def check_private_file(path: str, where: str) -> None:
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        raise SettingsError(f"{where}: {path} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(mode):
        raise SettingsError(f"{where}: {path} is not a file")
    if mode & _OTHERS:
        raise SettingsError(f"{where}: {path} can be read by other users; run chmod o= {path}")
