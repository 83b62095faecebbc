"""The command line as tests call it: in this process, on a store of its own."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest

import eunoe
from eunoe.cli.app import run


class Result(NamedTuple):
    """The exit code and the streams of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def items(self) -> list[Any]:
        return list(self.json["items"])

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Cli = Callable[..., Result]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with eunoe.open(path, embedder="none"):
        pass
    return path


@pytest.fixture
def cli(store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command line on the test's store."""
    monkeypatch.setenv("EUNOE_STORE", str(store))
    for name in ("EUNOE_LLM", "EUNOE_LLM_FAST", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    def call(*args: str | Path, stdin: str | bytes = b"") -> Result:
        content = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="latin-1"))
        code = run([str(arg) for arg in args])
        return Result(code, *capsys.readouterr())

    return call


class LlmServer(NamedTuple):
    """A real server that speaks as OpenAI's do: what it answers next, and what it was asked. It refuses a question for
    which it has no answer."""

    address: str
    answers: list[str]
    requests: list[dict[str, Any]]


@pytest.fixture
def llm_server() -> Iterator[LlmServer]:
    answers: list[str] = []
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            content = answers.pop(0) if answers else ""
            answer: dict[str, Any] = {"choices": [{"message": {"role": "assistant", "content": content}}]}
            body = json.dumps(answer if content else {"error": {"message": "no key"}}).encode()
            self.send_response(200 if content else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        yield LlmServer(f"http://127.0.0.1:{http.server_port}/v1?model=tiny", answers, requests)
        http.shutdown()
        thread.join()


@pytest.fixture
def broken_llm(llm_server: LlmServer) -> str:
    """The address of a server that refuses every question."""
    return llm_server.address
