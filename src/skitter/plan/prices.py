"""What things cost: a table that the operator edits (TOML). The one that is shipped is an example, no offer."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from skitter.errors import UsageError

Price = Annotated[float, Meta(ge=0)]


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`name` says whose prices they are. A gigabyte is 10^9 bytes, a month has 30 days."""

    name: str
    currency: str
    machine_hour: Price
    disk_gb_month: Price
    stored_gb_month: Price
    put_thousand: Price
    received_gb: Price


def parse_prices(text: str, where: str) -> Prices:
    try:
        return msgspec.toml.decode(text, type=Prices)
    except (msgspec.ValidationError, msgspec.DecodeError, ValueError) as error:
        raise UsageError(
            f"{where} is no table of prices: {error}; skitter plan --example-prices prints one"
        ) from None
