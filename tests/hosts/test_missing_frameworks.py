"""A framework that is not there breaks its own adapter alone, and the error says what to install."""

import subprocess
import sys

import pytest

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


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BLOCK + code], capture_output=True, text=True, check=False)


def test_the_memory_and_the_command_line_need_no_framework() -> None:
    code = """
import eunoe
import eunoe.cli.app
import eunoe.hosts.mem0
with eunoe.open(":memory:", embedder="none") as memory:
    memory.remember("user=anna", "Anna likes tea.")
    print(memory.recall("user=anna", "tea")[0].text)
"""
    result = run(code)
    assert (result.returncode, result.stdout) == (0, "Anna likes tea.\n"), result.stderr


def test_nothing_of_a_framework_is_loaded_unless_it_is_used() -> None:
    names = f"sorted(name for name in sys.modules if name.partition('.')[0] in {FRAMEWORKS})"
    code = f"import sys, eunoe, eunoe.cli.app; eunoe.open(':memory:').close(); print({names})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "[]\n"), result.stderr


@pytest.mark.parametrize(("module", "extra"), ADAPTERS.items())
def test_an_adapter_says_what_to_install(module: str, extra: str) -> None:
    code = f"""
import eunoe.errors
try:
    import {module}
except eunoe.errors.MissingPackageError as error:
    assert isinstance(error, ImportError)
    print(error)
"""
    result = run(code)
    assert f"pip install 'eunoe[{extra}]'" in result.stdout, result.stderr
