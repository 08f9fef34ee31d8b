"""What keeps a browser away from the network, layer by layer. All of them are always on: only tests that prove
that one holds without the others take any away.

The kernel's filter is the boundary. The others keep the browser from trying, and pages from waiting for what
cannot come.
"""

from __future__ import annotations

from enum import StrEnum


class Layer(StrEnum):
    FILTER = "filter"
    """The kernel refuses every socket but those between processes (seccomp)."""
    FILES = "files"
    """The kernel refuses files, TCP and signals to other processes (Landlock), where it has that."""
    NAMESPACE = "namespace"
    """A network of its own without any interface, where the kernel lets us."""
    FLAGS = "flags"
    """The browser is told to resolve no name and to call nobody by itself."""
    INTERCEPTION = "interception"
    """Every request of a page is answered by us, before it is made."""
    SCRIPT = "script"
    """Pages have no sockets, peer connections, service workers or dialogs."""


ALL = frozenset(Layer)
