"""Stand-ins for coding agents: programs called `claude` and `codex` that behave as the documentation of the real says.

They take the options of the real ones, read the prompt from standard input, keep their sessions in a folder, print JSON
of the same form, and fail as the real ones do. What they are to do stands in the prompt, a line each:

    write PATH TEXT      write a file (Codex: only with `--sandbox workspace-write`)
    commit TEXT          commit everything
    say TEXT             answer this
    fail TEXT            fail with this message
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

_COMMON = f"""#!{sys.executable}
import json, os, pathlib, subprocess, sys, uuid
HOME = pathlib.Path(__file__).parent
CALLS = HOME / (pathlib.Path(__file__).name + ".calls")

def take_down(prompt):
    with CALLS.open("a") as file:
        file.write(json.dumps({{"argv": sys.argv[1:], "stdin": prompt, "cwd": os.getcwd()}}) + "\\n")

def orders(prompt):
    for line in prompt.splitlines():
        verb, _, rest = line.partition(" ")
        if verb in ("write", "commit", "say", "fail"):
            yield verb, rest

def option(name, default=""):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default

def emit(**event):
    print(json.dumps(event), flush=True)
"""

# Forms and messages: code.claude.com/docs (CLI reference, headless mode), github.com/anthropics/claude-code.
_CLAUDE = (
    _COMMON
    + """
prompt = sys.stdin.read()
take_down(prompt)
if "-p" not in sys.argv or option("--output-format") not in ("json", "stream-json"):
    sys.exit("Error: Input must be provided either through stdin or as a prompt argument when using --print")
session = option("--resume") or str(uuid.uuid4())
USAGE = {"input_tokens": 4, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 9}
END = {"type": "result", "duration_ms": 12, "duration_api_ms": 9, "num_turns": 1, "stop_reason": None,
       "total_cost_usd": 0.25, "usage": USAGE, "modelUsage": {}, "permission_denials": [], "uuid": str(uuid.uuid4())}

def end(code=0, **fields):
    event = {**END, "subtype": "success", "is_error": False, "session_id": session, **fields}
    if "--verbose" in sys.argv:
        print(json.dumps([{"type": "system", "subtype": "init", "session_id": session, "tools": ["Bash"]}, event]))
    else:
        emit(**event)
    sys.exit(code)

if "--resume" in sys.argv and not (HOME / f"{session}.session").exists():
    lost, session = session, str(uuid.uuid4())
    end(1, subtype="error_during_execution", is_error=True, num_turns=0, total_cost_usd=0,
        errors=[f"No conversation found with session ID: {lost}"])
(HOME / f"{session}.session").touch()
said, denied = "Done.", []
for verb, rest in orders(prompt):
    if verb == "write" and option("--permission-mode") in ("acceptEdits", "bypassPermissions"):
        path, _, text = rest.partition(" ")
        pathlib.Path(path).write_text(text)
    elif verb == "write":
        denied.append({"tool_name": "Write", "tool_use_id": "toolu_1", "tool_input": {"file_path": rest}})
    elif verb == "commit":
        subprocess.run(["git", "add", "-A"], check=True)
        subprocess.run(["git", "commit", "-qm", rest], check=True)
    elif verb == "say":
        said = rest
    elif rest == "max turns":
        end(0, subtype="error_max_turns", is_error=False, num_turns=30)
    else:
        end(1, is_error=True, result=rest)
end(result=said, permission_denials=denied)
"""
)

# Forms and messages: developers.openai.com/codex (non-interactive mode), github.com/openai/codex, docs/exec.md.
_CODEX = (
    _COMMON
    + """
args = sys.argv[1:]
if args[:1] != ["exec"] or args[-1:] != ["-"]:
    sys.exit("error: unexpected argument")
prompt = sys.stdin.read()
take_down(prompt)
sys.stderr.write("Reading prompt from stdin...\\n")
in_git = subprocess.run(["git", "rev-parse"], capture_output=True).returncode == 0
if not in_git and "--skip-git-repo-check" not in args:
    sys.exit("Not inside a trusted directory and --skip-git-repo-check was not specified.")
thread = str(uuid.uuid4())
if "resume" in args:
    if args.index("resume") < max((args.index(each) for each in args if each in ("--sandbox", "--model")), default=0):
        sys.exit("error: unexpected argument '--sandbox' found")
    thread = args[args.index("resume") + 1]
    if not (HOME / f"{thread}.session").exists():
        sys.exit(f"Error: thread/resume: thread/resume failed: no rollout found for thread id {thread} (code -32600)")
(HOME / f"{thread}.session").touch()
if "--json" not in args:
    sys.exit("this stand-in only speaks JSON")
emit(type="thread.started", thread_id=thread)
emit(type="turn.started")
number, said = 0, "Done."
can_write = option("--sandbox", "read-only") in ("workspace-write", "danger-full-access")

def item(**fields):
    global number
    emit(type="item.completed", item={"id": f"item_{number}", **fields})
    number += 1

item(type="reasoning", text="**Thinking about it**")
for verb, rest in orders(prompt):
    if verb == "write" and can_write:
        path, _, text = rest.partition(" ")
        kind = "update" if os.path.exists(path) else "add"
        pathlib.Path(path).write_text(text)
        item(type="file_change", changes=[{"path": os.path.abspath(path), "kind": kind}], status="completed")
    elif verb == "write":
        item(type="command_execution", command=f"bash -lc 'tee {rest.split()[0]}'", aggregated_output="",
             exit_code=None, status="declined")
    elif verb == "commit":
        subprocess.run(["git", "add", "-A"], check=True)
        subprocess.run(["git", "commit", "-qm", rest], check=True)
        item(type="command_execution", command="bash -lc 'git commit'", aggregated_output="", exit_code=0,
             status="completed")
    elif verb == "say":
        item(type="agent_message", text="I am looking at it.")
        said = rest
    elif verb == "fail":
        emit(type="error", message="Reconnecting... 1/5")
        emit(type="error", message=rest)
        emit(type="turn.failed", error={"message": rest})
        sys.exit(1)
item(type="agent_message", text=said)
emit(type="turn.completed", usage={"input_tokens": 24763, "cached_input_tokens": 24448, "output_tokens": 122})
"""
)


class CodingAgents:
    """Both programs, first on the PATH, with a repository to work in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name, source in (("claude", _CLAUDE), ("codex", _CODEX)):
            program = self.bin / name
            program.write_text(source)
            program.chmod(0o755)

    def calls(self, name: str) -> list[dict[str, Any]]:
        """How a program was called so far."""
        file = self.bin / f"{name}.calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def lose_sessions(self) -> None:
        for session in self.bin.glob("*.session"):
            session.unlink()


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CodingAgents:
    programs = CodingAgents(tmp_path)
    monkeypatch.setenv("PATH", f"{programs.bin}{os.pathsep}{os.environ['PATH']}")
    return programs
