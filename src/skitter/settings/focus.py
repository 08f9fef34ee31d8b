"""The settings of a focused crawl: `[focus]`. docs/focus.md explains them to users."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Doc = Meta


class FocusSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A crawl about a topic: pages about it and what they link come first. docs/focus.md."""

    words: Annotated[
        tuple[str, ...],
        Doc(
            description="Words and phrases of the topic; a page is about it as far as its text is made of them. "
            "`replicat*` stands for any ending."
        ),
    ] = ()
    model: Annotated[
        str,
        Doc(description="A file that `skitter focus train` made of example pages; it scores pages instead."),
    ] = ""
    floor: Annotated[
        Annotated[float, Meta(ge=0, le=1)], Doc(description="A page that scores less is off the topic.")
    ] = 0.1
    tunnel: Annotated[
        Annotated[int, Meta(ge=0)],
        Doc(
            description="Pages off the topic in a row whose links are followed; what only more of them lead to "
            "is refused."
        ),
    ] = 3
