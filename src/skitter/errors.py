"""Our own faults. What the web does wrong is a value (`model.Failed`), never an exception.

    SkitterError            a one-line message that says what is wrong and what to do; exit code 1
    |- UsageError           the command or its input cannot be carried out as given; exit code 2
    |  |- SettingsError     a setting is unknown or has the wrong type; names where
    |  |- NotACrawl         the folder holds no crawl (or something else)
    |  |- MissingExtra      a library of an extra is not installed; says which extra
    |  `- NoContact         public hosts, and no contact address
    |- FolderInUse          another process works in the folder
    |- StoreFailed          the frontier's store could not read or write
    |  `- LogFailed         the frontier's log elsewhere cannot be used
    |- Fenced               another machine goes on with this crawl: whoever hears it stops at once
    |- OwnedElsewhere       another machine works on this crawl
    |- TargetFailed         the target of a sink does not answer, or lost the connection; it is tried again
    |- TargetRefused        the target of a sink does not take the rows: trying again is of no use
    |- RenderFailed         there is no browser that can be trusted with pages; nothing is rendered
    `- ArchiveFailed        the archive could not be written or is damaged
       |- DiskFull          no room left; nothing that was settled is lost
       `- ObjectsFailed     the object store does not answer, or refuses; it is tried again

Foreign exceptions are translated once, at the adapter that calls the foreign library.
"""

from __future__ import annotations


class SkitterError(Exception):
    exit_code = 1


class UsageError(SkitterError):
    exit_code = 2


class SettingsError(UsageError):
    pass


class NotACrawl(UsageError):
    pass


class MissingExtra(UsageError):
    pass


class NoContact(UsageError):
    pass


class FolderInUse(SkitterError):
    """`holder` is the id of the process that works there."""

    def __init__(self, message: str, holder: str = "unknown") -> None:
        super().__init__(message)
        self.holder = holder


class StoreFailed(SkitterError):
    pass


class LogFailed(StoreFailed):
    pass


class Fenced(SkitterError):
    pass


class OwnedElsewhere(SkitterError):
    pass


class TargetFailed(SkitterError):
    """`wait` is how long the target asked to be left alone, in seconds."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


class TargetRefused(SkitterError):
    pass


class RenderFailed(SkitterError):
    pass


class ArchiveFailed(SkitterError):
    pass


class DiskFull(ArchiveFailed):
    pass


class ObjectsFailed(ArchiveFailed):
    pass
