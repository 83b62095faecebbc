"""The doctor finds what is wrong, says what to do, and changes nothing."""

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Cli, LlmServer
from tests.support.live_server import LiveServer

import eunoe
from eunoe.assistants.hook import write_to_spool
from eunoe.assistants.installation import install, make_options
from eunoe.assistants.intake import take_in
from eunoe.server.config import ServerConfig

Doctor = Callable[[], dict[str, tuple[str, str]]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "EUNOE_SCOPE"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def doctor(cli: Cli, home: Path) -> Doctor:
    """What it says of each subject: the worst state, and the text that goes with it."""

    def ask() -> dict[str, tuple[str, str]]:
        result = cli("doctor", "--json")
        findings: dict[str, tuple[str, str]] = {}
        for each in sorted(result.json, key=lambda each: ["ok", "warning", "problem"].index(each["state"])):
            assert each["state"] == "ok" or each["advice"]
            findings[each["subject"]] = (each["state"], each["text"])
        assert result.code == int(any(state == "problem" for state, _ in findings.values()))
        return findings

    return ask


def tree(*folders: Path) -> dict[Path, tuple[bytes, int]]:
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def event(assistant: str = "claude-code") -> dict[str, object]:
    fields = {"event": "prompt", "scope": "user=anna", "session": "s1", "transcript": "", "prompt": "Hi.", "answer": ""}
    return {**fields, "assistant": assistant, "time": 1.8e9}


def test_all_is_well_and_nothing_is_changed(doctor: Doctor, cli: Cli, store: Path, home: Path) -> None:
    store.chmod(0o600)
    install("claude-code", make_options(str(store), hooks=True)).write()
    write_to_spool(str(store), event())
    take_in(str(store))
    before = tree(store.parent)
    found = doctor()
    assert {name: state for name, (state, _) in found.items()} == {
        "disk": "ok",
        "store": "ok",
        "embedder": "warning",
        "llm": "ok",
        "server": found["server"][0],  # the port may be taken on this machine
        "mcp": "ok",
        "claude-code": "ok",
        "claude-code hooks": "ok",
    }
    assert "answers in" in found["claude-code"][1]
    assert "last run 2027-01-15" in found["claude-code hooks"][1]
    assert tree(store.parent) == before


def test_a_file_that_is_no_store(doctor: Doctor, store: Path) -> None:
    store.write_bytes(b"letters")
    assert doctor()["store"] == ("problem", f"{store} is no store")


@pytest.mark.parametrize(("version", "state"), [(0, "warning"), (200, "problem")])
def test_a_store_of_another_schema_is_not_opened(doctor: Doctor, store: Path, version: int, state: str) -> None:
    content = bytearray(store.read_bytes())
    content[60:64] = version.to_bytes(4)
    store.write_bytes(content)
    found = doctor()["store"]
    assert found[0] == state
    assert f"schema {version}" in found[1]
    assert store.read_bytes() == content


@pytest.mark.parametrize(("mark", "words"), [(b"EUNO", "written by an older Eunoe"), (b"GPKG", "another program's")])
def test_a_database_that_is_not_of_this_eunoe(doctor: Doctor, store: Path, mark: bytes, words: str) -> None:
    content = bytearray(store.read_bytes())
    content[60:64] = (11).to_bytes(4)
    content[68:72] = mark
    store.write_bytes(content)
    found = doctor()["store"]
    assert found[0] == "problem"
    assert words in found[1]
    assert store.read_bytes() == content


def test_what_others_can_read_is_told(doctor: Doctor, store: Path) -> None:
    store.chmod(0o644)
    token = store.with_suffix(".token")
    token.write_text("secret")
    token.chmod(0o644)
    found = doctor()
    assert "others on this computer can read" in found["store"][1]
    assert found["token"][0] == "problem"
    assert "secret" not in json.dumps(found)


def test_a_server_that_runs(doctor: Doctor, store: Path) -> None:
    server = LiveServer(ServerConfig(target=str(store), embedder="none", llm="none", port=0, worker=False))
    server.services.write_address(server.origin)
    try:
        assert doctor()["server"][1].startswith(f"runs at {server.origin}")
    finally:
        server.stop()


@pytest.fixture
def foreign_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_server_that_is_gone_and_one_whose_port_was_taken(doctor: Doctor, store: Path, foreign_port: int) -> None:
    address = store.with_suffix(".server.json")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        free = listener.getsockname()[1]
    address.write_text(json.dumps({"url": f"http://127.0.0.1:{free}", "pid": 1}))
    assert doctor()["server"][0] == "warning"
    address.write_text(json.dumps({"url": f"http://127.0.0.1:{foreign_port}", "pid": 1}))
    found = doctor()["server"]
    assert (found[0], "something else answers" in found[1]) == ("problem", True)
    address.write_text("{")
    assert doctor()["server"][0] == "problem"


def test_a_language_model_that_answers_or_not(
    doctor: Doctor, llm_server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EUNOE_LLM", llm_server.address)
    llm_server.answers.append("ready")
    assert doctor()["llm"][0] == "ok"
    assert doctor()["llm"][0] == "problem"


def test_a_broken_embedder(doctor: Doctor, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.unlink()
    with eunoe.open(store, embedder="static") as memory:
        memory.remember("user=anna", "Anna likes tea.")

    def fail(*_: object) -> None:
        raise OSError("the model file is damaged")

    monkeypatch.setattr("eunoe.embed.word_vectors.StaticEmbedder.embed_query", fail)
    found = doctor()["embedder"]
    assert (found[0], "damaged" in found[1]) == ("problem", True)


def test_settings_that_do_not_work_any_more(doctor: Doctor, store: Path, home: Path) -> None:
    options = make_options(str(store), hooks=True)
    install("claude-code", options).write()
    install("cursor", make_options(str(store.with_name("other.db")))).write()
    settings = home / ".claude.json"
    settings.write_text(settings.read_text().replace(options.python, "/gone/python"))
    hooks = home / ".claude" / "settings.json"
    hooks.write_text(hooks.read_text().replace("assistants/hook.py", "gone/assistants/hook.py"))
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text("{ broken")
    found = doctor()
    assert found["claude-code"] == ("problem", "/gone/python is not there any more")
    assert found["claude-code hooks"][0] == "problem"
    assert found["cursor"][0] == "warning"
    assert "other.db" in found["cursor"][1]
    assert found["gemini"][0] == "problem"
    assert str(home / ".gemini" / "settings.json") in found["gemini"][1]


def test_a_command_that_does_not_answer(doctor: Doctor, store: Path, home: Path) -> None:
    install("zed", make_options(str(store), arguments=("--no-such-option",))).write()
    found = doctor()["zed"]
    assert found[0] == "problem"
    assert "no-such-option" in found[1]


def test_events_that_wait_and_a_hook_that_failed(doctor: Doctor, store: Path, home: Path) -> None:
    install("codex", make_options(str(store), hooks=True)).write()
    assert "none has run yet" in doctor()["codex hooks"][1]
    write_to_spool(str(store), event("codex") | {"scope": "nonsense"})
    assert doctor()["spool"] == ("warning", "1 events wait to be taken in")
    take_in(str(store))
    found = doctor()
    assert found["codex hooks"] == ("problem", "the last one failed with ScopeError")
    assert found["spool"][1] == "1 events could not be read"


def test_the_command_installs_and_takes_out(cli: Cli, store: Path, home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    shown = cli("mcp", "--install", "cursor", "--hooks", "--dry-run")
    assert (shown.code, path.exists()) == (0, False)
    assert str(store) in shown.out
    assert cli("mcp", "--install", "cursor", stdin="n\n").code == 0
    assert not path.exists()
    assert cli("mcp", "--install", "cursor", "--profile", "read", "--hooks", "--yes").code == 0
    assert json.loads(path.read_text())["mcpServers"]["eunoe"]["args"][-2:] == ["--profile", "read"]
    assert (home / ".cursor" / "hooks.json").exists()
    assert cli("mcp", "--uninstall", "cursor", "--yes").code == 0
    assert list(home.rglob("*.json")) == []
    assert cli("mcp", "--uninstall", "cursor", "--yes").code == 0
    assert cli("mcp", "--install", "cursor", "--uninstall", "cursor").code == 2
    assert cli("mcp", "--install", "emacs").code == 1
