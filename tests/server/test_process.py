"""Where a server may listen, and where it says that it does."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from eunoe.server.config import ServerConfig
from eunoe.server.keys import Keys
from eunoe.server.process import ServerError, local_url, serve
from eunoe.server.state import ServerState


def _own_addresses() -> list[str]:
    """Addresses of this machine that others may reach."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            return []
        address = probe.getsockname()[0]
    return [] if address.startswith("127.") else [address]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", *_own_addresses()])
@pytest.mark.parametrize("has_ended_key", [False, True])
def test_where_others_reach_it_a_server_without_keys_does_not_start(
    tmp_path: Path, host: str, has_ended_key: bool
) -> None:
    if host == "::" and not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    path = tmp_path / "memory.db"
    state = ServerState(path.with_suffix(".server.db"))
    if has_ended_key:
        keys = Keys(state)
        keys.revoke(keys.create("old")[0].id)
    state.close()
    config = ServerConfig(target=str(path), host=host, port=0, embedder="none", llm="none", worker=False)
    with pytest.raises(ServerError, match="there are no keys"):
        serve(config, lambda *_: pytest.fail("it started"))
    assert not path.with_suffix(".server.json").exists()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8765"),
        ("0.0.0.0", "http://127.0.0.1:8765"),
        ("::", "http://[::1]:8765"),
        ("192.168.1.5", "http://192.168.1.5:8765"),
        ("localhost", "http://localhost:8765"),
    ],
)
def test_local_clients_are_told_an_address_that_they_reach(host: str, url: str) -> None:
    assert local_url(ServerConfig(host=host)) == url


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("localhost", True)]
    + [(host, False) for host in ("0.0.0.0", "::", "192.168.1.5", "example.com", "localhost.example.com", "")],
)
def test_loopback_is_known(host: str, is_loopback: bool) -> None:
    assert ServerConfig(host=host).is_loopback is is_loopback
