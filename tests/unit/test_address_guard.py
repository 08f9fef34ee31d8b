from __future__ import annotations

import pytest

from skitter.fetch.guard import AddressGuard

STRICT = AddressGuard(allow_private=False)
INTRANET = AddressGuard(allow_private=True)

SPECIAL = [
    "127.0.0.1",
    "10.1.2.3",
    "172.31.255.255",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "192.0.2.1",
    "198.19.255.255",
    "::",
    "::1",
    "fe80::1",
    "fd12::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "2002:7f00:1::",
    "64:ff9b::7f00:1",
    "3fff::1",
    "5f00::1",
    "4000::1",
    "1fff:ffff::1",
    "e000::1",
]
METADATA = [
    "169.254.169.254",
    "169.254.0.1",
    "169.254.170.23",
    "::ffff:169.254.169.254",
    "::169.254.169.254",
    "::ffff:0:169.254.169.254",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1:a9fe:00a9:fe00::",
    "2002:a9fe:a9fe::1",
    "2001:0:4136:e378:8000:63bf:5601:5601",
    "fd00:ec2::254",
    "168.63.129.16",
    "100.100.100.200",
]
PUBLIC = ["1.1.1.1", "172.32.0.1", "::ffff:1.1.1.1", "2606:4700:4700::1111", "100.128.0.1"]


@pytest.mark.parametrize("address", [*SPECIAL, *METADATA])
def test_a_special_address_is_refused_by_name(address: str) -> None:
    reason = STRICT.refusal(address)
    assert reason is not None
    assert reason.endswith(f"address {address}")
    assert not STRICT.is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_passes(address: str) -> None:
    assert STRICT.refusal(address) is None
    assert STRICT.is_public(address)


def test_the_reason_says_what_is_special() -> None:
    assert STRICT.refusal("127.0.0.1") == "loopback address 127.0.0.1"
    assert STRICT.refusal("169.254.169.254") == "cloud metadata address 169.254.169.254"
    assert STRICT.refusal("::ffff:10.0.0.1") == "private address ::ffff:10.0.0.1"


@pytest.mark.parametrize("address", SPECIAL)
def test_a_crawl_that_allows_private_addresses_reaches_them(address: str) -> None:
    assert INTRANET.refusal(address) is None


@pytest.mark.parametrize("address", METADATA)
def test_metadata_services_stay_out_of_reach_of_a_private_crawl(address: str) -> None:
    assert INTRANET.refusal(address) is not None


@pytest.mark.parametrize("port", [22, 25, 6000, 6667, 10080])
@pytest.mark.parametrize("guard", [STRICT, INTRANET])
def test_ports_of_other_services_are_never_dialled(guard: AddressGuard, port: int) -> None:
    assert guard.refusal("1.1.1.1", port) == (
        f"port {port} is never dialled: another service than a web server listens there"
    )


@pytest.mark.parametrize("port", [80, 443, 8080, 8443, 3000, 65535])
def test_other_ports_are(port: int) -> None:
    assert STRICT.refusal("1.1.1.1", port) is None


def test_without_a_contact_no_public_address_is_dialled() -> None:
    guard = AddressGuard(allow_private=True, allow_public=False)
    assert guard.refusal("1.1.1.1") == "public address 1.1.1.1 and no contact given"
    assert guard.refusal("127.0.0.1") is None


@pytest.mark.parametrize(
    "text",
    ["", "example.org", "010.0.0.1", "127.1", "0x7f000001", "1.1.1.1 ", "[::1]", "1.1.1.1\0", "::1%lo"],
)
def test_what_is_not_an_address_is_refused_whatever_is_allowed(text: str) -> None:
    assert AddressGuard(allow_private=False).refusal(text) is not None
    if "%" not in text:
        assert INTRANET.refusal(text) is not None


@pytest.mark.parametrize("address", ["2606:4700::1%eth0", "::ffff:1.1.1.1%1"])
def test_a_zone_does_not_make_an_address_public(address: str) -> None:
    assert STRICT.refusal(address) is not None
