"""A framework that is not there breaks its own adapter alone, and the error says what to install."""

import json
import subprocess
import sys

FRAMEWORKS = [
    *("agentflow", "agents", "anthropic", "deepagents", "langchain", "langchain_core", "langgraph", "langmem"),
    *("llama_index", "mem0", "qdrant_client", "tenxgraph"),
]
BLOCK = f"import sys; sys.modules.update(dict.fromkeys({FRAMEWORKS}))\n"
ADAPTERS = {
    "eunoe.hosts.agentflow": "agentflow",
    "eunoe.hosts.anthropic": "anthropic",
    "eunoe.hosts.langchain": "langchain",
    "eunoe.hosts.langgraph": "langgraph",
    "eunoe.hosts.llama_index": "llama-index",
    "eunoe.hosts.openai_agents": "openai-agents",
    "eunoe.apps.wiki.tools": "langchain",
}


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", BLOCK + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_frameworks_the_rest_works_and_each_adapter_says_what_to_install() -> None:
    said = run(f"""
import importlib, json
import eunoe, eunoe.errors
import eunoe.cli.app
import eunoe.hosts.mem0
with eunoe.open(":memory:", embedder="none") as memory:
    memory.remember("user=anna", "Anna likes tea.")
    found = memory.recall("user=anna", "tea")[0].text
errors = {{}}
for name in {list(ADAPTERS)}:
    try:
        importlib.import_module(name)
    except eunoe.errors.MissingPackageError as error:
        assert isinstance(error, ImportError)
        errors[name] = str(error)
print(json.dumps([found, errors]))
""")
    found, errors = json.loads(said)
    assert found == "Anna likes tea."
    assert {name: errors[name].rpartition("pip install ")[2] for name in ADAPTERS} == {
        name: f"'eunoe[{extra}]'" for name, extra in ADAPTERS.items()
    }


def test_nothing_of_a_framework_is_loaded_unless_it_is_used() -> None:
    names = f"sorted(name for name in sys.modules if name.partition('.')[0] in {FRAMEWORKS})"
    code = f"import sys, eunoe, eunoe.cli.app; eunoe.open(':memory:').close(); print({names})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
