"""Models as objects of HippoRAG's own kind: an LLM with `infer`, an embedding model with `batch_encode`."""

from __future__ import annotations

from typing import Any, Final

from eunoe.embed.adapters import CheckedEmbedder
from eunoe.errors import InputError
from eunoe.llm import Prompt, Reply
from eunoe.model.validation import show

_QUERY_INSTRUCTION: Final = "Given a question, find the documents that help to answer it."


class InferLlm:
    """An LLM with `infer(messages)`, which gives the text, and perhaps what it took."""

    def __init__(self, model: Any) -> None:
        self.name = str(getattr(model, "llm_name", "") or type(model).__name__)
        self._model = model

    def ask(self, prompt: Prompt) -> Reply:
        contents = {"system": prompt.instructions, "user": prompt.text}
        given = self._model.infer([{"role": role, "content": text} for role, text in contents.items()])
        text, usage = (given, {}) if isinstance(given, str) else (given[0], given[1] or {})
        counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
        return Reply(text, *(count if isinstance(count, int) else 0 for count in counts))


def adapt_llm(model: Any) -> Any:
    """What `eunoe.open` takes as an LLM."""
    is_foreign = callable(getattr(model, "infer", None)) and not callable(getattr(model, "ask", None))
    return InferLlm(model) if is_foreign else model


def adapt_embedder(model: Any, identity: str | None) -> Any:
    """What `eunoe.open` takes as an embedder. Vectors of HippoRAG's models are told apart by `index_identity`."""
    if identity is not None and not isinstance(identity, str):
        raise InputError(f"index_identity is {show(identity)}: it must be a text")
    if not callable(getattr(model, "batch_encode", None)) or callable(getattr(model, "embed", None)):
        return model
    if not identity or not identity.strip():
        raise InputError("embedding_model needs index_identity: a name by which its vectors are known")
    return CheckedEmbedder(
        f"hipporag:{identity.strip()}",
        lambda texts: model.batch_encode(texts, norm=True),
        lambda text: model.batch_encode([text], instruction=_QUERY_INSTRUCTION, norm=True)[0],
        is_slow=True,
    )
