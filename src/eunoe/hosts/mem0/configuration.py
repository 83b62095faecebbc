"""mem0's configuration: what of it there is here, and what to use in place of the rest."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import eunoe
from eunoe.embed.adapters import OpenAIEmbedder
from eunoe.errors import InputError
from eunoe.hosts.common import default_memory
from eunoe.llm.remote import AnthropicLlm, OpenAILlm
from eunoe.memory import IN_MEMORY, Memory, default_path
from eunoe.model.arguments import show

_OWN: Final = "eunoe"
"""The provider that takes what `eunoe.open` takes."""
_COLLECTION: Final = "mem0"
_SUFFIX: Final = ".eunoe.db"
"""Of the file that a collection is kept in."""
_FOLDERS: Final = ("qdrant", "chroma", "faiss")
"""Vector stores that mem0 keeps in a local folder; the memory is kept in a file there."""
_REMOTE: Final = ("host", "port", "url", "client", "api_key", "tenant")
_LOCAL_SERVERS: Final = {
    "ollama": "http://localhost:11434/v1",
    "lmstudio": "http://localhost:1234/v1",
    "vllm": "http://localhost:8000/v1",
}
"""Providers that answer as OpenAI does, and where they listen."""
_STORE_OPTIONS: Final = frozenset(
    {"path", "collection_name", "embedding_model_dims", "on_disk", "https", "distance_strategy", "normalize_L2"}
).union(_REMOTE)
"""Those that mem0 has. Another one is a slip: what was to be kept in a place of its own must not get elsewhere."""
_MODEL_OPTIONS: Final = frozenset({"model", "api_key", "base_url", "openai_base_url", "enable_vision"})
_PROMPTS: Final = ("custom_instructions", "custom_fact_extraction_prompt", "custom_prompt")
_WITHOUT_MEANING: Final = ("version", "history_db_path", "custom_update_memory_prompt")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Configuration:
    """Which store a memory is kept in, and which models it uses."""

    target: str | None = None
    embedder: Any = "auto"
    llm: Any = "auto"
    instructions: str = ""
    """What a language model is to look for."""

    @property
    def names_store(self) -> bool:
        """Whether the memory has a store of its own, or models of its own."""
        return self != Configuration(instructions=self.instructions)

    @classmethod
    def parse(cls, config: Any) -> Configuration:
        """Read a dict in mem0's form, or its `MemoryConfig`, of which only what was set counts."""
        if isinstance(config, Configuration):
            return config
        fields = _fields(config)
        known = {"vector_store", "embedder", "llm", *_PROMPTS, *_WITHOUT_MEANING, "reranker", "graph_store"}
        if unknown := sorted(map(str, fields.keys() - known)):
            raise InputError(f"config: unknown key {show(unknown[0])}; known are {', '.join(sorted(known))}")
        for name in sorted(fields.keys() & set(_WITHOUT_MEANING)):
            if name != "version":
                _log.warning("config: %s is not used; the history is kept in the store, with the memories", name)
        if (reranker := _provider(fields, "reranker")[0]) not in ("", _OWN):
            raise _unsupported("reranker", reranker, "leave it out: `rerank=True` uses the recipe 'thorough'")
        if graph := _provider(fields, "graph_store")[0]:
            raise _unsupported("graph store", graph, "leave it out: the entity graph is part of every store")
        return cls(
            target=_read_target(*_provider(fields, "vector_store")),
            embedder=_read_model("embedder", *_provider(fields, "embedder")),
            llm=_read_model("llm", *_provider(fields, "llm")),
            instructions=next((fields[name] for name in _PROMPTS if fields.get(name)), ""),
        )

    def open(self) -> Memory:
        """Open the store, or return the one that is shared by all who name none."""
        if not self.names_store:
            return default_memory()
        if self.target and self.target.endswith(_SUFFIX):
            Path(self.target).parent.mkdir(parents=True, exist_ok=True)
        return eunoe.open(self.target, embedder=self.embedder, llm=self.llm)


def _fields(config: Any) -> Mapping[str, Any]:
    if config is None:
        return {}
    dump: Callable[..., Any] | None = getattr(config, "model_dump", None)
    fields = dump(exclude_unset=True) if callable(dump) else config
    if not isinstance(fields, Mapping):
        raise InputError(f"config must be a dict in mem0's form, not {type(config).__name__}")
    return fields


def _provider(fields: Mapping[str, Any], part: str) -> tuple[str, Mapping[str, Any]]:
    value = fields.get(part) or {}
    if not isinstance(value, Mapping):
        raise InputError(f"config: {part} must be a dict with 'provider' and 'config'")
    if strange := sorted(map(str, value.keys() - {"provider", "config"})):
        raise InputError(f"config: {part} takes 'provider' and 'config', not {show(strange[0])}")
    options = value.get("config") or {}
    if not isinstance(options, Mapping):
        options = _fields(options)
    provider = str(value.get("provider") or "")
    if part == "vector_store" and provider in ("", _OWN, *_FOLDERS) and (unknown := options.keys() - _STORE_OPTIONS):
        known = ", ".join(sorted(_STORE_OPTIONS))
        raise InputError(f"config: {part} has no option {show(min(map(str, unknown)))}; it takes {known}")
    if part in ("llm", "embedder"):
        unused = sorted(str(name) for name in options.keys() - _MODEL_OPTIONS - {f"{provider}_base_url"})
        if unused:
            _log.warning("config: these options of the %s do nothing here: %s", part, ", ".join(unused))
    return provider, options


def _read_target(provider: str, options: Mapping[str, Any]) -> str | None:
    path, collection = options.get("path"), str(options.get("collection_name") or "")
    if provider in ("", _OWN):
        return None if path is None else str(path)
    if provider not in _FOLDERS:
        raise _unsupported("vector store", provider, "use 'eunoe' with the path of a file, or none for the default one")
    if remote := [name for name in _REMOTE if options.get(name)]:
        raise _unsupported("vector store", f"{provider} with {remote[0]}", "give the path of a local folder")
    if Path(collection).name != collection:
        raise InputError(f"config: the collection name {show(collection)} cannot be that of a file")
    if path == IN_MEMORY:
        return IN_MEMORY
    if path:
        return str(Path(path) / f"{collection or _COLLECTION}{_SUFFIX}")
    return str(default_path().with_name(f"{collection}{_SUFFIX}")) if collection else None


def _read_model(part: str, provider: str, options: Mapping[str, Any]) -> Any:
    """The language model or the embedder, where it is asked, and with which key."""
    model = options.get("model")
    if options.get("enable_vision"):
        raise _unsupported("option", "enable_vision", "describe pictures in words before you add them")
    if provider in ("", _OWN):
        return model or "auto"
    if provider in ("langchain", "anthropic") and not model:
        raise InputError(f"config: the {part} {provider!r} needs a model")
    if provider == "langchain":
        return model
    if provider == "anthropic" and part == "llm":
        return AnthropicLlm(str(model), api_key=options.get("api_key"))
    if provider not in ("openai", "openai_structured", *_LOCAL_SERVERS):
        others = ", 'openai' (with openai_base_url for others), 'ollama', 'lmstudio' or 'langchain'"
        raise _unsupported(part, provider, f"use 'eunoe'{others}")
    names = (f"{provider}_base_url", "openai_base_url", "base_url")
    base = next((str(options[name]) for name in names if options.get(name)), _LOCAL_SERVERS.get(provider))
    if base and provider == "ollama" and not base.rstrip("/").endswith("/v1"):
        base = f"{base.rstrip('/')}/v1"
    if part == "embedder":
        return OpenAIEmbedder(model or "text-embedding-3-small", base_url=base, api_key=options.get("api_key"))
    return OpenAILlm(model or "gpt-5-mini", base_url=base, api_key=options.get("api_key"))


def _unsupported(part: str, provider: str, instead: str) -> InputError:
    return InputError(f"config: the {part} {show(provider)} is not supported; {instead}")
