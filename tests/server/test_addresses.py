"""Names and origins that are given when a server is set up."""

from __future__ import annotations

import pytest

from eunoe.errors import InputError
from eunoe.server.config import Addresses, ServerConfig


@pytest.mark.parametrize(
    "origin", ["*", "null", "app.example", "https://", "https://a.example/path", "ftp://a.example"]
)
def test_an_origin_is_named_one_by_one(origin: str) -> None:
    with pytest.raises(InputError, match="--origin"):
        Addresses(ServerConfig(origins=(origin,)))


def test_an_origin_may_be_written_as_people_do() -> None:
    addresses = Addresses(ServerConfig(origins=("https://App.example/", "http://localhost:3000")))
    named = [addresses.is_named_origin(each) for each in ("https://app.example", "http://localhost:3000", "")]
    assert named == [True, True, False]


@pytest.mark.parametrize(
    "url",
    [
        "memory.example.com",
        "http://memory.example.com",
        "https://memory.example.com/path",
        "https://memory.example.com?x=1",
        "https://user:password@memory.example.com",
        "ftp://memory.example.com",
        "https://",
    ],
)
def test_a_public_address_is_an_origin_by_https(url: str) -> None:
    with pytest.raises(InputError, match="--public-url"):
        Addresses(ServerConfig(public_url=url))


@pytest.mark.parametrize(
    "url", ["https://Memory.example.com/", "http://127.0.0.1:8765", "http://localhost:1", "http://[::1]:1"]
)
def test_without_https_it_is_on_this_machine(url: str) -> None:
    assert Addresses(ServerConfig(public_url=url)).public_url == url.rstrip("/").lower()


def test_port_80_need_not_be_said() -> None:
    addresses = Addresses(ServerConfig(port=80))
    assert [addresses.is_own_host(host) for host in ("127.0.0.1", "127.0.0.1:80", "[::1]")] == [True, False, True]


def test_the_page_has_to_come_from_where_the_request_goes() -> None:
    addresses = Addresses(ServerConfig(port=8765, allowed_hosts=("memory.lan",)))
    assert addresses.is_own_origin("http://127.0.0.1:8765", "127.0.0.1:8765")
    assert addresses.is_own_origin("https://memory.lan", "memory.lan")
    assert not addresses.is_own_origin("http://localhost:8765", "127.0.0.1:8765")
    assert not addresses.is_own_origin("http://127.0.0.1:8765", "memory.lan")
    assert not addresses.is_own_origin("", "")
