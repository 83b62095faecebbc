"""What a newcomer meets first: refusals that say what to do, and a token that stays out of logs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.live_server import LiveServer

import eunoe
from eunoe.errors import AccessError, InputError


@pytest.mark.parametrize(
    ("body", "headers", "said"),
    [
        ('{"scope": "user=anna", "query": "tea"}', {"Content-Type": "text/plain"}, "Content-Type: application/json"),
        ("", {"Content-Type": "application/json"}, "the body is empty"),
        ("[]", {"Content-Type": "application/json"}, "JSON object"),
    ],
)
def test_a_body_that_cannot_be_read_is_told_how_to_send_it(
    server: LiveServer, body: str, headers: dict[str, str], said: str
) -> None:
    answer = server.call("POST", "/v1/recall", body, key=server.owner, headers=headers)
    assert answer.status in (400, 422)
    assert said in answer.json["detail"]


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/nothing"), ("DELETE", "/v1/recall")])
def test_a_wrong_path_has_a_hint(server: LiveServer, method: str, path: str) -> None:
    assert server.call(method, path, key=server.owner).json["hint"]


def test_a_backup_that_is_refused_leaves_no_folder(server: LiveServer) -> None:
    _, acme = server.services.keys.create("acme", tenant="acme")
    assert server.call("POST", "/v1/backup", {}, key=acme).status == 403
    assert not (Path(server.services.files.state).parent / "backups").exists()


def test_an_empty_key_is_not_a_wish_for_the_owners_token(server: LiveServer) -> None:
    with pytest.raises(InputError, match="no key"):
        eunoe.connect(server.origin, "")


def test_who_may_not_forget_cannot_import_that_something_was_forgotten(server: LiveServer) -> None:
    with eunoe.open(":memory:", embedder="none", llm="none") as other:
        id = other.remember("user=anna", "Anna likes tea.").id
        other.forget("user=anna", id)
        lines: list[str] = []

        class Lines:
            def write(self, text: str) -> int:
                lines.append(text)
                return len(text)

        other.admin.export("user=anna", Lines())  # type: ignore[arg-type]
        writer = other.restricted(tenant="acme", rights=["read", "write"])
        with pytest.raises(AccessError, match="forget"):
            writer.admin.import_("".join(lines).splitlines())


@pytest.mark.parametrize("named", [False, True])
def test_a_start_says_which_store_it_is_and_shows_the_token_to_who_asks(tmp_path: Path, named: bool) -> None:
    """The store is the project memory's where only the environment names one; what is no terminal gets no token."""
    own, other = tmp_path / "own.db", tmp_path / "projects" / "eunoe.db"
    command = [sys.executable, "-m", "eunoe", "serve", "--port", "0", "--embedder", "none"]
    command += ["--store", str(own), "--print-link"] if named else []
    places = {"MEMORY_SAVE_DIR": str(other.parent), "EUNOE_STORE": str(tmp_path / "third.db")}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **places}) as process:
        assert process.stderr
        said = "".join(process.stderr.readline() for _ in range(2 if named else 3))
        process.send_signal(signal.SIGTERM)
        process.communicate()
    store = own if named else other
    assert [path for path in (own, other) if path.exists()] == [store]
    assert (f"The store is that of MEMORY_SAVE_DIR: {other}" in said) is not named
    token = store.with_suffix(".token").read_text()
    assert (f"/#token={token}" in said) is named
    assert named or (token not in said and str(store.with_suffix(".token")) in said)
