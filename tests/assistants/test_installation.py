"""Installed in settings that people wrote by hand, and taken out again byte for byte."""

import json
import os
import sys
import tomllib
from pathlib import Path

import pytest

from eunoe.assistants.installation import (
    Assistant,
    Options,
    carry_out,
    find_assistant,
    install,
    load_assistants,
    make_options,
    uninstall,
)
from eunoe.assistants.settings_file import Document
from eunoe.errors import ConflictError, InputError, NotFoundError, StoreError

JSON_CONFIGS = {
    "empty file": b"",
    "blank": b"\r\n \t",
    "empty object": b"{}",
    "object with room": b"{\n\n}\n",
    "one line": b'{"theme":"dark","mcpServers":{"other":{"command":"x"}}}',
    "comments": b'// mine\n{\n    "a": 1, // one\n    /* two\n     */ "b": [1, 2,],\n    // the end\n}\n// after\n',
    "tabs and crlf": b'{\r\n\t"a": {\r\n\t\t"b": null\r\n\t}\r\n}\r\n',
    "bom": b'\xef\xbb\xbf{"a": "\\ud83d\\ude00 \xc3\xa9"}',
    "no newline at the end": b'{\n  "z": 1,\n  "a": 2\n}',
    "large numbers": b'{"a": 123456789012345678901234567890, "b": 1.10, "c": 1e5}',
    "hooks of others": b'{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}], "Mine": []}}',
    "flat hooks of others": b'{"version": 1, "hooks": {"beforeSubmitPrompt": [{"command": "./audit.sh"}]}}',
    "an entry of this name": b'{"mcpServers": {"eunoe": {"command": "/old/eunoe", "args": ["mine"]}}}',
    "escapes": b'{"a//b": "/* no comment */", "c": "\\"}"}',
}
TOML_CONFIGS = {
    "empty file": b"",
    "keys": b'model = "gpt"  # mine\n\n[features]\nhooks = true',
    "other servers": b'[mcp_servers.other]\ncommand = "x"\nargs = ["[mcp_servers.eunoe]"]\n\n# the end\n',
    "an entry of this name": b'[mcp_servers.eunoe]  # mine\ncommand = "/old/eunoe"\nenv = { A = "b" }\n\n[tui]\n',
    "crlf": b'model = "gpt"\r\n[tui]\r\ntheme = "dark"\r\n',
    "text of many lines": b'notes = """\n[mcp_servers.other]\n"""\nratio = nan\n',
}


@pytest.fixture
def options(home: Path) -> Options:
    return Options(store=home / "memory.db", scope="user=anna")


def with_hooks(options: Options, assistant: Assistant) -> Options:
    return Options(store=options.store, scope=options.scope, hooks=assistant.hooks is not None)


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def configs_of(assistant: Assistant) -> dict[str, bytes]:
    return TOML_CONFIGS if assistant.format == "toml" else JSON_CONFIGS


@pytest.mark.parametrize("name", load_assistants())
def test_what_was_installed_is_taken_out_byte_for_byte(name: str, options: Options, home: Path) -> None:
    assistant = find_assistant(name)
    for title, content in configs_of(assistant).items():
        write(assistant.path, content)
        if assistant.hooks and assistant.hooks.path != assistant.path:
            write(assistant.hooks.path, JSON_CONFIGS["hooks of others"])
        before = tree(home)
        install(name, with_hooks(options, assistant)).write()
        assert tree(home) != before, title
        uninstall(name).write()
        assert tree(home) == before, title


@pytest.mark.parametrize("name", load_assistants())
def test_what_others_wrote_stays(name: str, options: Options) -> None:
    assistant = find_assistant(name)
    for title, content in configs_of(assistant).items():
        write(assistant.path, content)
        install(name, with_hooks(options, assistant)).write()
        text = assistant.path.read_bytes().decode("utf-8-sig")
        kept = "" if "of this name" in title else content.decode("utf-8-sig").strip()
        letters = iter(text)
        assert all(letter in letters for letter in kept), title
        uninstall(name).write()


@pytest.mark.parametrize("name", load_assistants())
def test_a_file_that_was_not_there_is_removed_again(name: str, options: Options, home: Path) -> None:
    install(name, with_hooks(options, find_assistant(name))).write()
    assert find_assistant(name).path.exists()
    uninstall(name).write()
    assert [path for path in home.rglob("*") if path.is_file()] == []
    assert not (home / ".cursor").exists()


@pytest.mark.parametrize("name", load_assistants())
def test_the_entry_has_absolute_paths(name: str, options: Options) -> None:
    assistant = find_assistant(name)
    install(name, options).write()
    text = assistant.path.read_text()
    servers = tomllib.loads(text) if assistant.format == "toml" else json.loads(text)
    entry = servers[assistant.key[0]]["eunoe"]
    assert entry["command"] == sys.executable
    assert entry["args"][:4] == ["-P", "-m", "eunoe", "mcp"]
    assert entry["args"][4:] == ["--store", str(options.store), "--scope", "user=anna"]


def test_a_second_installation_changes_nothing(options: Options, home: Path) -> None:
    hooked = with_hooks(options, find_assistant("claude-code"))
    write(home / ".claude.json", JSON_CONFIGS["comments"])
    install("claude-code", hooked).write()
    once = tree(home)
    again = install("claude-code", hooked)
    assert (again.diff, again.changes) == ("", ())
    again.write()
    assert tree(home) == once


def test_an_installation_anew_still_goes_back_to_the_first_file(options: Options, home: Path) -> None:
    write(home / ".claude.json", JSON_CONFIGS["comments"])
    install("claude-code", options).write()
    install("claude-code", Options(store=home / "other.db", scope="user=ben", hooks=True)).write()
    assert "other.db" in (home / ".claude.json").read_text()
    uninstall("claude-code").write()
    assert tree(home) == {str(home / ".claude.json"): JSON_CONFIGS["comments"]}


def test_of_a_file_that_was_changed_since_only_our_entry_goes(options: Options, home: Path) -> None:
    path = home / ".gemini" / "settings.json"
    write(path, JSON_CONFIGS["hooks of others"])
    install("gemini", Options(store=options.store, scope=options.scope, hooks=True)).write()
    changed = Document(path.read_text()).with_value(("theme",), "dark")
    path.write_text(changed)
    plan = uninstall("gemini")
    plan.write()
    assert json.loads(path.read_text()) == json.loads(JSON_CONFIGS["hooks of others"]) | {
        "theme": "dark",
        "mcpServers": {},
    }
    assert "has changed since" in plan.notes[0]
    assert uninstall("gemini").changes == ()


def test_a_changed_toml_file_keeps_its_changes(options: Options, home: Path) -> None:
    path = home / ".codex" / "config.toml"
    write(path, TOML_CONFIGS["other servers"])
    install("codex", options).write()
    path.write_text(path.read_text() + "\n# and then\n[tui]\ntheme = 'dark'\n")
    uninstall("codex").write()
    assert path.read_bytes() == TOML_CONFIGS["other servers"] + b"\n# and then\n[tui]\ntheme = 'dark'\n"


@pytest.mark.parametrize("change", ["a file that changed", "installed anew after a change"])
def test_an_entry_that_the_user_wrote_comes_back(change: str, options: Options, home: Path) -> None:
    path = home / ".codeium" / "windsurf" / "mcp_config.json"
    write(path, b'{"mcpServers": {"eunoe": {"command": "/old/eunoe",  "args": ["mine"]}}}')
    install("windsurf", options).write()
    path.write_text(Document(path.read_text()).with_value(("theme",), "dark"))
    if change == "installed anew after a change":
        install("windsurf", Options(store=home / "other.db", scope="user=ben")).write()
    plan = uninstall("windsurf")
    plan.write()
    assert '{"eunoe": {"command": "/old/eunoe",  "args": ["mine"]}}' in path.read_text()
    assert json.loads(path.read_text())["theme"] == "dark"
    after = path.read_bytes()
    again = uninstall("windsurf")
    assert (again.changes, path.read_bytes()) == ((), after)
    assert "that Eunoe did not write" in again.notes[0]


def test_a_table_that_the_user_wrote_comes_back(options: Options, home: Path) -> None:
    path = home / ".codex" / "config.toml"
    write(path, TOML_CONFIGS["an entry of this name"])
    install("codex", options).write()
    path.write_text(path.read_text() + "theme = 'dark'\n")
    uninstall("codex").write()
    assert path.read_bytes() == TOML_CONFIGS["an entry of this name"] + b"theme = 'dark'\n"


def test_an_entry_that_the_user_put_there_since_stays(options: Options, home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    install("cursor", options).write()
    path.write_bytes(b'{"mcpServers": {"eunoe": {"command": "/new/eunoe"}}}')
    assert uninstall("cursor").changes == ()


def test_what_was_taken_out_has_no_advice_for_an_installation(options: Options) -> None:
    for name, assistant in load_assistants().items():
        install(name, options).write()
        said: list[str] = []
        carry_out(uninstall(name), lambda _: None, said.append, lambda: True)
        assert said == [f"{assistant.title}: done"]


def test_without_the_record_only_our_entry_goes(options: Options, home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    write(path, b'{"mcpServers": {"other": {"command": "x"}}}')
    install("cursor", options).write()
    (home / ".local" / "share" / "eunoe" / "assistants" / "cursor.json").write_text("{ damaged")
    uninstall("cursor").write()
    assert path.read_bytes() == b'{"mcpServers": {"other": {"command": "x"}}}'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": ', "line 1"),
        (b"[]", "no object"),
        (b'{"mcpServers": []}', "mcpServers is no object"),
        ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
        (b'{"mcpServers": {}, "mcpServers": {}}', "twice"),
        (b"\x00\x01", "line 1"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_name(
    content: bytes, message: str, options: Options, home: Path
) -> None:
    path = home / ".cursor" / "mcp.json"
    write(path, content)
    with pytest.raises(InputError, match=message) as caught:
        install("cursor", options)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "content", [b"mcp_servers = { other = { command = 'x' } }\n", b"[mcp_servers]\neunoe.command = 'x'\n", b"a = ["]
)
def test_toml_that_cannot_be_changed_safely_is_refused(content: bytes, options: Options, home: Path) -> None:
    path = home / ".codex" / "config.toml"
    write(path, content)
    with pytest.raises(InputError, match=r"config\.toml"):
        install("codex", options)
    assert path.read_bytes() == content


def test_a_link_is_followed_and_stays_a_link(options: Options, home: Path) -> None:
    real = home / "dotfiles" / "zed.json"
    write(real, JSON_CONFIGS["comments"])
    real.chmod(0o640)
    link = home / ".config" / "zed" / "settings.json"
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    install("zed", options).write()
    assert link.is_symlink()
    assert b"context_servers" in real.read_bytes()
    assert real.stat().st_mode & 0o777 == 0o640
    uninstall("zed").write()
    assert link.is_symlink()
    assert real.read_bytes() == JSON_CONFIGS["comments"]


def test_what_is_kept_is_for_the_user_alone(options: Options, home: Path) -> None:
    write(home / ".claude.json", b'{"apiKey": "secret"}')
    install("claude-code", options).write()
    kept = home / ".local" / "share" / "eunoe" / "assistants" / "claude-code.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700


def test_a_file_that_changes_before_it_is_written_is_left(options: Options, home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    write(path, b"{}")
    plan = install("cursor", options)
    path.write_bytes(b'{"a": 1}')
    with pytest.raises(ConflictError, match="meanwhile"):
        plan.write()
    assert path.read_bytes() == b'{"a": 1}'


def test_a_folder_in_the_place_of_the_file_is_left(options: Options, home: Path) -> None:
    (home / ".cursor" / "mcp.json").mkdir(parents=True)
    with pytest.raises(OSError, match=r"mcp\.json"):
        install("cursor", options)
    assert list(home.rglob("*")) == [home / ".cursor", home / ".cursor" / "mcp.json"]


def test_a_failed_write_leaves_the_file_and_nothing_beside_it(
    options: Options, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / ".cursor" / "mcp.json"
    write(path, b"{}")
    plan = install("cursor", options)
    replace = os.replace

    def fail(old: str, new: Path) -> None:
        if new == path:
            raise OSError(28, "No space left on device")
        replace(old, new)

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="No space"):
        plan.write()
    assert list(path.parent.iterdir()) == [path]
    assert path.read_bytes() == b"{}"


def test_hooks_stand_beside_those_of_others(options: Options, home: Path) -> None:
    path = home / ".claude" / "settings.json"
    write(path, JSON_CONFIGS["hooks of others"])
    install("claude-code", Options(store=options.store, scope=options.scope, hooks=True)).write()
    hooks = json.loads(path.read_text())["hooks"]
    assert set(hooks) == {"Stop", "Mine", "SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd"}
    assert hooks["Stop"][0] == {"hooks": [{"type": "command", "command": "say done"}]}
    command = hooks["Stop"][1]["hooks"][0]["command"]
    assert command.startswith(f"{sys.executable} -P ")
    assert command.endswith(f"answer --assistant claude-code --store {options.store} --scope user=anna")


def test_a_python_in_a_cache_is_warned_of(options: Options) -> None:
    assert install("zed", options).notes == ()
    cached = Options(store=options.store, scope=options.scope, python="/home/anna/.cache/uv/archive-v0/x/bin/python")
    assert "may be emptied" in install("zed", cached).notes[0]


def test_one_without_hooks_says_so(options: Options) -> None:
    with pytest.raises(NotFoundError, match="Zed has no hooks"):
        install("zed", Options(store=options.store, scope=options.scope, hooks=True))


def test_an_unknown_assistant_is_named_with_those_there_are(options: Options) -> None:
    with pytest.raises(
        NotFoundError, match="claude-desktop, claude-code, cursor, vscode, zed, windsurf, codex, gemini"
    ):
        install("emacs", options)


@pytest.mark.parametrize(
    ("platform", "name", "variables", "expected"),
    [
        ("darwin", "claude-desktop", {}, "{home}/Library/Application Support/Claude/claude_desktop_config.json"),
        ("win32", "claude-desktop", {"APPDATA": "{home}/Roaming"}, "{home}/Roaming/Claude/claude_desktop_config.json"),
        ("darwin", "vscode", {}, "{home}/Library/Application Support/Code/User/mcp.json"),
        ("darwin", "zed", {}, "{home}/.config/zed/settings.json"),
        ("win32", "zed", {"APPDATA": "{home}/Roaming"}, "{home}/Roaming/Zed/settings.json"),
        ("linux", "zed", {"XDG_CONFIG_HOME": "{home}/etc"}, "{home}/etc/zed/settings.json"),
        ("win32", "cursor", {}, "{home}/.cursor/mcp.json"),
        ("linux", "codex", {"CODEX_HOME": "{home}/codex"}, "{home}/codex/config.toml"),
        ("darwin", "claude-code", {"CLAUDE_CONFIG_DIR": "{home}/c"}, "{home}/c/.claude.json"),
    ],
)
def test_paths_of_each_platform(
    platform: str, name: str, variables: dict[str, str], expected: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value.format(home=home))
    assert find_assistant(name).path == Path(expected.format(home=home))


@pytest.mark.parametrize("target", [":memory:", "http://127.0.0.1:8765"])
def test_only_a_store_in_a_file_can_be_installed(target: str, home: Path) -> None:
    with pytest.raises((InputError, StoreError), match=r"store in a file|no store for http"):
        make_options(target)


def test_a_store_becomes_absolute(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    assert make_options("notes.db").store == home / "notes.db"
    assert make_options("sqlite:///notes.db").store == home / "notes.db"
    assert make_options().store == home / ".local" / "share" / "eunoe" / "memory.db"


@pytest.mark.parametrize("agrees", [True, False])
def test_a_plan_is_shown_and_written_only_if_the_user_agrees(agrees: bool, options: Options, home: Path) -> None:
    shown: list[str] = []
    said: list[str] = []
    assert carry_out(install("cursor", options), shown.append, said.append, lambda: agrees) is agrees
    assert f"+++ {home}/.cursor/mcp.json" in shown[0]
    assert '+    "eunoe": {' in shown[0]
    assert said == ["Cursor: done; restart Cursor" if agrees else "nothing was written"]
    assert (home / ".cursor" / "mcp.json").exists() is agrees
