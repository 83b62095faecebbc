"""Which addresses a tenant's webhook may have."""

from __future__ import annotations

import pytest

from eunoe.errors import InputError
from eunoe.server.webhooks import DeliveryError, check_url, find_address

INSIDE = [
    *("127.0.0.1", "localhost", "LOCALHOST.", "a.localhost", "[::1]", "10.0.0.1", "169.254.169.254", "0.0.0.0"),
    *("[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.1."),
    *("[64:ff9b::7f00:1]", "[64:ff9b:1::1]", "[fec0::1]", "[::7f00:1]", "[::ffff:8.8.8.8]", "[2002:7f00:1::]"),
    *("224.0.0.1", "239.1.1.1", "[ff0e::1]", "[fd00::1]", "[fe80::1]", "[2001:db8::1]", "100.64.0.1", "240.0.0.1"),
]


@pytest.mark.parametrize("host", INSIDE)
def test_an_address_inside_this_network_is_refused_at_once(host: str) -> None:
    with pytest.raises(InputError, match="inside this network"):
        check_url(f"https://{host}/", allow_private=False)


@pytest.mark.parametrize("host", [host for host in INSIDE if host not in ("LOCALHOST.", "a.localhost", "127.0.0.1.")])
def test_an_address_inside_this_network_is_refused_when_something_is_sent(host: str) -> None:
    with pytest.raises(DeliveryError, match="inside this network"):
        find_address(check_url(f"https://{host}/", allow_private=True), allow_private=False)


@pytest.mark.parametrize("host", ["example.org", "8.8.8.8", "[2606:4700:4700::1111]", "localhost.example.org"])
def test_other_addresses_are_taken(host: str) -> None:
    assert check_url(f"https://{host}/", allow_private=False).hostname
