"""Makes a mem0 store with mem0 itself, offline. Run in a process of its own: mem0 reads the environment on import."""

from __future__ import annotations

import json
import sys
from typing import Any
from unittest.mock import patch


class Embedder:
    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return [len(text) % 7 + 0.1, 1.0, 0.5]

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text) for text in texts]


class Llm:
    def generate_response(self, messages: Any, **_: Any) -> str:
        return json.dumps({"memory": [{"id": "0", "text": "Anna likes tea", "attributed_to": "user"}]})


def main(folder: str, history: str) -> None:
    from mem0.memory import main as mem0

    config = {
        "vector_store": {"provider": "qdrant", "config": {"path": folder, "embedding_model_dims": 3, "on_disk": True}},
        "history_db_path": history,
    }
    with (
        patch.object(mem0.EmbedderFactory, "create", lambda *_: Embedder()),
        patch.object(mem0.LlmFactory, "create", lambda *_: Llm()),
    ):
        memory = mem0.Memory.from_config(config)
        learned = memory.add("I like tea", user_id="anna", metadata={"tags": ["drink"]})["results"][0]["id"]
        said = [{"role": "user", "content": "I moved to Rome", "name": "Ann"}]
        changed = memory.add(said, user_id="anna", run_id="r1", infer=False, expiration_date="2099-01-01")["results"][
            0
        ]["id"]
        memory.update(changed, "I moved to Turin")
        gone = memory.add("The code is swordfish", user_id="ben", infer=False)["results"][0]["id"]
        memory.delete(gone)
        items = {id: memory.get(id) for id in (learned, changed)}
        print(json.dumps({"items": items, "history": memory.history(changed), "changed": changed, "gone": gone}))
        memory.close()
        memory.vector_store.client.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
