"""Models as objects of HippoRAG's own kind: an LLM with `infer`, an embedding model with `batch_encode`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from inspect import signature
from numbers import Integral
from typing import Any, Final

from eunoe.embed.adapters import CheckedEmbedder
from eunoe.errors import InputError, LlmError
from eunoe.hosts.hipporag.answers import OPERATION
from eunoe.llm import Prompt, Reply
from eunoe.llm.contract import AnswerError, refusal_error
from eunoe.model.arguments import show

_COUNTS: Final = ("prompt_tokens", "completion_tokens")
_KEYWORDS: Final = {
    "max_new_tokens": ("max_completion_tokens", "max_tokens", "max_new_tokens"),
    "temperature": ("temperature",),
}
"""What the models of HippoRAG call a setting; the first is what those that take any keyword know."""
_MAX_TOKENS: Final = 1 << 40
"""More than any model reads or writes at once."""
_QUERY_INSTRUCTION: Final = "Given a question, find the documents that help to answer it."
_log = logging.getLogger(__name__)


class InferLlm:
    """An LLM with `infer(messages)`, which gives the text, and perhaps what it took.

    Questions are asked with those of `settings` for which `infer` has a keyword; a warning names the others.
    """

    def __init__(self, model: Any, settings: Mapping[str, Any]) -> None:
        self.name = str(getattr(model, "llm_name", "") or type(model).__name__)
        self._infer = model.infer
        self._keywords = self._find_keywords(settings)

    def ask(self, prompt: Prompt) -> Reply:
        contents = {"system": prompt.instructions, "user": prompt.text}
        messages = [{"role": role, "content": text} for role, text in contents.items()]
        try:
            given = self._infer(messages, **(self._keywords if prompt.operation == OPERATION else {}))
        except LlmError:
            raise
        except Exception as error:  # its text may hold a key, or what was asked
            message = f"{self.name} failed: {type(error).__name__}"
            raise refusal_error(message, *_describe(error)) from error
        return self._read(given)

    def _read(self, given: Any) -> Reply:
        parts = list(given) if isinstance(given, tuple | list) else [given]
        text, usage = (*parts, None, None)[:2]
        usage = usage if isinstance(usage, Mapping) else {}
        read, written = (_token_count(usage.get(name)) for name in _COUNTS)
        if not isinstance(text, str):
            message = f"{self.name} gave {type(text).__name__} as its text; due from infer: text, or (text, metadata)"
            raise AnswerError(message, Reply("", read, written))
        reason = usage.get("finish_reason")
        return Reply(text, read, written, finish_reason=reason if isinstance(reason, str) else "stop")

    def _find_keywords(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        try:
            parameters = list(signature(self._infer).parameters.values())
        except (TypeError, ValueError):  # a function that does not say what it takes
            parameters = []
        takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters)
        names = {each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
        keywords = {}
        for setting, choices in _KEYWORDS.items():
            keyword = next((choice for choice in choices if choice in names), choices[0] if takes_all else None)
            if setting in settings and keyword:
                keywords[keyword] = settings[setting]
            elif setting in settings:
                _log.warning("%s is not used: the infer of %s takes no %s", setting, self.name, choices[0])
        return keywords


def _token_count(value: Any) -> int:
    """A count of tokens, NumPy's too; 0, which is estimated, for what can be none."""
    count = int(value) if isinstance(value, Integral) else 0
    return count if 0 <= count <= _MAX_TOKENS else 0


def _describe(error: Exception) -> tuple[str, int]:
    """What an error says, and its HTTP status; neither of one that fails at saying it."""
    try:
        return str(error), getattr(error, "status_code", 0)
    except Exception:
        return "", 0


def adapt_llm(model: Any, settings: Mapping[str, Any]) -> Any:
    """What `eunoe.open` takes as an LLM. One with `infer` is told the settings."""
    is_foreign = callable(getattr(model, "infer", None)) and not callable(getattr(model, "ask", None))
    return InferLlm(model, settings) if is_foreign else model


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
