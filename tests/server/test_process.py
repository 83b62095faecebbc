"""One server process: how it starts, its connections, its helpers, and how it ends."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from tests.support.live_server import LiveServer, StartServer
from tests.support.waiting import wait_until

import eunoe
from eunoe.server import process
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


_HALF = "GET /healthz HTTP/1.1\r\nHost: {}\r\nX-"
_WITHOUT_KEY = "POST /v1/memories HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000000\r\n\r\n{{"
_LOGIN = "POST /session HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000\r\n\r\n{{"


@pytest.mark.parametrize("sent", ["", "\r\n\r\n", _HALF, _WITHOUT_KEY])
def test_a_request_that_never_ends_is_given_up(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, sent: str
) -> None:
    monkeypatch.setattr(process, "REQUEST_SECONDS", 0.1)
    server = start_server()
    with _connect(server, sent) as connection:
        assert _is_closed(connection)


@pytest.mark.parametrize("sent", ["", _HALF, _LOGIN])
def test_many_that_wait_keep_nobody_out(start_server: StartServer, monkeypatch: pytest.MonkeyPatch, sent: str) -> None:
    monkeypatch.setattr(process, "max_waiting", lambda: 10)
    server = start_server()
    with ExitStack() as stack:
        waiting = [stack.enter_context(_connect(server, sent)) for _ in range(30)]
        assert server.call("GET", "/healthz").status == 200
        assert all(map(_is_closed, waiting[:20]))


def _connect(server: LiveServer, sent: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    connection.sendall(sent.format(server.host).encode())
    return connection


def _is_closed(connection: socket.socket) -> bool:
    """Wait until the server closes it, whatever it answers before. A timeout is raised."""
    with suppress(ConnectionError):
        while connection.recv(10_000):
            pass
    return True


_TOGETHER = 2


@pytest.fixture
def server(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    options = ["--store", str(tmp_path / "memory.db"), "--port", "0", "--embedder", "none", "--llm", "none"]
    command = [sys.executable, "-m", "eunoe", "serve", "--print-link", "--processes", str(_TOGETHER), *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def link(process: subprocess.Popen[str]) -> tuple[str, str]:
    """The address and the token that a server prints."""
    assert process.stderr
    lines = iter(process.stderr.readline, "")
    url, _, token = next(line for line in lines if "#token=" in line).split()[-1].partition("/#token=")
    return url, token


def helpers(process: subprocess.Popen[str]) -> list[int]:
    """The processes that a server has started to answer requests."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    numbers = children.read_text().split() if children.exists() else []
    commands = ((number, Path(f"/proc/{number}/cmdline").read_bytes()) for number in numbers)
    return [int(number) for number, command in commands if b"spawn_main" in command]


def is_gone(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    try:
        return "\nState:\tZ" in status.read_text()
    except OSError:
        return True


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in /proc, which is Linux' own")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_they_answer_for_one_store_and_end_with_the_first(
    server: subprocess.Popen[str], number: signal.Signals
) -> None:
    url, token = link(server)
    wait_until(lambda: len(helpers(server)) == _TOGETHER - 1)
    started = helpers(server)
    with eunoe.connect(url, token) as memory:
        for fact in range(30):
            assert memory.remember("user=anna", f"Fact {fact}.")
        assert len(memory.list("user=anna", limit=100).items) == 30
    server.send_signal(number)
    server.wait()
    wait_until(lambda: all(map(is_gone, started)))
