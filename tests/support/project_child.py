"""Processes that share a folder of projects. Each speaks JSON, line by line."""

from __future__ import annotations

import sys
from itertools import count

from children import say, wait

from eunoe.apps.projects import ProjectMemory
from eunoe.apps.projects.documents import MAX_UNSPLIT_CHARACTERS
from eunoe.hosts.hipporag import HippoRAG


def write(folder: str, name: str, rounds: str) -> None:
    """Indexes beside others and finds each document at once; every third one is deleted again."""
    say(ready=True)
    wait()
    kept: list[str] = []
    with ProjectMemory.open(folder, embedder="none") as memory:
        for number in range(int(rounds)):
            text = f"{name} repaired the zq{name}{number} pump."
            (id,) = memory.index("shared", [text])
            assert memory.retrieve("shared", [f"zq{name}{number} pump"], 1)[0]["docs"] == [text]
            if number % 3 == 0:
                assert memory.delete("shared", [text]) == [id]
            else:
                kept.append(id)
    say(kept=kept)


def long_ones(folder: str) -> None:
    """Indexes and deletes long documents without end."""
    with ProjectMemory.open(folder, embedder="none") as memory:
        for number in count():
            text = f"Report {number}.\n\n" + f"Line of report {number}.\n" * (MAX_UNSPLIT_CHARACTERS // 10)
            (id,) = memory.index("shared", [text])
            say(done=id, size=len(text))
            if number % 2:
                memory.delete("shared", [id])


def hippo(folder: str) -> None:
    """Answers every line with what a HippoRAG finds under the words on it, or indexes what stands after a `+`."""
    rag = HippoRAG(save_dir=folder, embedding_model_name="none")
    say(ready=True)
    for line in sys.stdin:
        if line.startswith("+"):
            rag.index([line[1:].strip()])
            say(indexed=True)
        else:
            say(docs=rag.retrieve([line.strip()])[0].docs)
    rag.close()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
