"""Nothing phones home: what a process leaves in its home folder and on the network, seen by strace."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.strace import Watch, watch

from eunoe.embed.encoder import Encoder

EMBED_AND_RERANK = """
import eunoe
with eunoe.open("notes.db", embedder={embedder!r}, llm="none") as memory:
    memory.observe("session=s1/user=anna", ["I moved to Rome.", "My sister lives in Turin.", "It rained all day."])
    memory.remember("user=anna", "Anna likes garlic.")
    assert memory.flush()
    assert memory.recall("session=s1/user=anna", "Where is her sister?", recipe={recipe!r})[0].text.endswith("Turin.")
    assert memory.context("session=s1/user=anna", "Where does my sister live?").text
    memory.form("session=s1/user=anna")
    status = memory.status()
    assert not status.reranker_error and status.embedder == {name!r}
"""
"""Each opens its store by a relative path, in its working folder."""


def assert_silent(seen: Watch) -> None:
    assert (seen.files, seen.writes, seen.sockets, seen.sends) == ([], [], [], [])


@pytest.mark.parametrize(
    ("embedder", "recipe", "name"),
    [("auto", "thorough", Encoder.name), ("minilm", "default", "minilm-l6-v2"), ("static", "default", "wordllama-256")],
)
def test_a_memory_that_embeds_and_reranks_is_silent(tmp_path: Path, embedder: str, recipe: str, name: str) -> None:
    assert_silent(watch(EMBED_AND_RERANK.format(embedder=embedder, recipe=recipe, name=name), tmp_path))


def test_a_switch_that_asks_for_telemetry_is_overruled(tmp_path: Path) -> None:
    code = EMBED_AND_RERANK.format(embedder="auto", recipe="thorough", name=Encoder.name)
    assert_silent(watch(code, tmp_path, ORT_DISABLE_TELEMETRY="0"))


def test_a_host_that_sets_its_environment_anew_is_silent(tmp_path: Path) -> None:
    code = EMBED_AND_RERANK.format(embedder="auto", recipe="thorough", name=Encoder.name)
    assert_silent(watch("import os, eunoe; del os.environ['ORT_DISABLE_TELEMETRY']" + code, tmp_path))


def test_a_process_that_a_memory_starts_is_silent(tmp_path: Path) -> None:
    code = "import eunoe, subprocess, sys; subprocess.run([sys.executable, '-c', 'import onnxruntime'], check=True)"
    assert_silent(watch(code, tmp_path))


def test_the_command_line_is_silent(tmp_path: Path) -> None:
    code = """
import sys
from eunoe.cli import main
sys.argv = ["eunoe", "--store", "notes.db", *sys.argv[1:]]
main()
"""
    assert_silent(watch(code, tmp_path, "remember", "user=anna", "Anna likes garlic."))
    seen = watch(code, tmp_path, "recall", "user=anna", "garlic", "--recipe", "thorough")
    assert "Anna likes garlic." in seen.output
    assert_silent(seen)


DEPENDENCIES = {
    "numpy": "import numpy; numpy.arange(3.0) @ numpy.arange(3.0)",
    "PyStemmer": "import Stemmer; Stemmer.Stemmer('english').stemWord('walking')",
    "tokenizers": "from eunoe.embed.encoder import FOLDER; import tokenizers; "
    "tokenizers.Tokenizer.from_file(str(FOLDER / 'tokenizer.json')).encode('Anna likes garlic.')",
    "safetensors": "import numpy; from safetensors.numpy import load, save; load(save({'a': numpy.zeros(3)}))",
    "onnx": "from onnx import helper; helper.make_tensor('a', 1, [1], [1.0])",
    "typer": "import typer; app = typer.Typer(); app.command()(lambda: None); app([], standalone_mode=False)",
    "rich": "from rich.console import Console; from rich.table import Table; Console().print(Table('a'))",
    "pydantic-ai": "import asyncio; from pydantic_ai import Agent; from pydantic_ai.models.test import TestModel; "
    "asyncio.run(Agent(TestModel()).run('hello'))",
    "genai-prices": "from genai_prices import Usage, calc_price; "
    "calc_price(Usage(input_tokens=10, output_tokens=1), model_ref='gpt-4o', provider_id='openai')",
    "pyarrow": "import io, pyarrow as pa, pyarrow.parquet as pq; pq.write_table(pa.table({'a': [1]}), io.BytesIO())",
    "xllamacpp": "import xllamacpp",
    "httpx": "import httpx; httpx.Client().close()",
}
"""Everything that some path of Eunoe, an extra or a test loads, used a little. docs/privacy.md lists what was found."""


def test_dependencies_are_silent(tmp_path: Path) -> None:
    assert_silent(watch("\n".join(DEPENDENCIES.values()), tmp_path))


LOOPBACK_PROBES = {
    "wordllama": "import wordllama",
    "langchain-core's embeddings": "from langchain_core.embeddings import DeterministicFakeEmbedding as Fake; "
    "Fake(size=4).embed_query('hello')",
    "langchain-core's chat models": "from langchain_core.language_models import FakeListChatModel as Fake; "
    "Fake(responses=['hello']).invoke('hi')",
}
"""These load urllib3, which asks the kernel once whether it may bind a socket to ::1. Nothing is sent."""


def test_dependencies_send_nothing(tmp_path: Path) -> None:
    seen = watch("\n".join(LOOPBACK_PROBES.values()), tmp_path)
    assert (seen.files, seen.writes, seen.sends) == ([], [], [])
    assert all(line.startswith("socket(AF_INET6, SOCK_STREAM") for line in seen.sockets)


@pytest.mark.parametrize(
    ("code", "field"),
    [
        ("import pathlib; pathlib.Path.home().joinpath('id').touch()", "files"),
        ("import os, pathlib; p = pathlib.Path.home() / 'id'; p.touch(); p.unlink()", "writes"),
        ("import tempfile; tempfile.TemporaryDirectory(dir='/tmp').cleanup()", "writes"),
        ("import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)", "sockets"),
        ("import socket; socket.socket(socket.AF_UNIX)", "sockets"),
        ("import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)", "sockets"),
        ("import socket\ntry: socket.getaddrinfo('eunoe.invalid', 443)\nexcept OSError: pass", "sends"),
        ("import subprocess, sys; subprocess.run([sys.executable, '-c', 'import socket; socket.socket()'])", "sockets"),
        ("import threading, socket; t = threading.Thread(target=socket.socket); t.start(); t.join()", "sockets"),
    ],
)
def test_the_watch_sees_what_is_not_silent(tmp_path: Path, code: str, field: str) -> None:
    assert getattr(watch(code, tmp_path), field)
