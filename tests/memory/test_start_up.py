"""Opening a memory loads what opening needs. The rest is loaded, once, by the verb that needs it."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

import eunoe
from eunoe.errors import InputError

THREADS = 8
OPEN_AND_LIST_MODULES = """
import sys, eunoe
with eunoe.open(":memory:", embedder="none") as memory:
    memory.remember("user=anna", "Anna likes tea.")
    print(*sys.modules)
"""


def test_opening_and_writing_loads_neither_recall_nor_forming_nor_the_network() -> None:
    output = subprocess.run([sys.executable, "-c", OPEN_AND_LIST_MODULES], capture_output=True, text=True, check=True)
    loaded = set(output.stdout.split())
    assert "eunoe.engine" in loaded
    assert loaded.isdisjoint({"asyncio", "email", "http.client", "pydantic", "ssl", "tomllib", "urllib.request"})
    assert not [name for name in loaded if name.startswith(("eunoe.form", "eunoe.index", "eunoe.recall"))]


@pytest.mark.parametrize("part", ["searcher", "contexts", "former", "background"])
def test_threads_share_one_of_each_part(part: str) -> None:
    with eunoe.open(":memory:", embedder="none") as memory, ThreadPoolExecutor(THREADS) as pool:
        start = Barrier(THREADS)

        def take(_: int) -> object:
            start.wait()
            return getattr(memory._engine, part)

        assert len(set(map(id, pool.map(take, range(THREADS))))) == 1


def test_a_memory_that_never_formed_anything_closes() -> None:
    memory = eunoe.open(":memory:", embedder="none")
    memory.close()
    assert "background" not in vars(memory._engine)


def test_an_extractor_that_is_none_is_refused_when_it_is_named() -> None:
    with pytest.raises(InputError, match="finds no names"):
        eunoe.open(":memory:", embedder="none", extractor="nonsense")
