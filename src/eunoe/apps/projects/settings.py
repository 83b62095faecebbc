"""Where project memory is kept and which models it uses, from arguments and environment variables."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from eunoe.embed import load_embedder
from eunoe.errors import EmbedderError, InputError, LlmError, StoreError
from eunoe.llm import load_llm

STORE_FILE_NAME: Final = "eunoe.db"
SAVE_DIR_VARIABLE: Final = "MEMORY_SAVE_DIR"
_EMBEDDER_NAMES: Final = ("none", "eunoe", "static", "wordllama", "minilm", "auto")
_log = logging.getLogger(__name__)


def is_server(target: object) -> bool:
    """Whether a memory is named by the address of a server."""
    return isinstance(target, str) and target.startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The save folder and the models. What is empty is not set."""

    save_dir: str = ""
    llm_model: str = ""
    llm_base_url: str = ""
    llm_api_key: str = ""
    embedding_model: str = ""
    embedding_base_url: str = ""
    embedding_api_key: str = ""

    @classmethod
    def from_environment(cls, **given: str | None) -> ProjectSettings:
        """Take what is given, else what MEMORY_SAVE_DIR, MEMORY_LLM_MODEL, MEMORY_EMBEDDING_MODEL and the like say.

        >>> ProjectSettings.from_environment(save_dir="memory", llm_model="none").save_dir
        'memory'
        """
        variables = {name: os.environ.get(f"MEMORY_{name.upper()}", "").strip() for name in cls.__slots__}
        return cls(**variables | {name: str(value) for name, value in given.items() if value})

    def target(self, *, create: bool = False) -> str | Path:
        """Return the store: a file in the save folder, or what names a store or a server itself.

        With `create` the folder is made.
        """
        if not self.save_dir:
            raise InputError(f"there is no place for the memory: give save_dir or set {SAVE_DIR_VARIABLE} to a folder")
        if self.save_dir == ":memory:" or "://" in self.save_dir:
            return self.save_dir
        path = Path(self.save_dir).expanduser()
        path = path if path.suffix == ".db" or path.is_file() else path / STORE_FILE_NAME
        if create:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except (OSError, ValueError) as error:
                raise StoreError(f"the folder {str(path.parent)!r} cannot be made: {error}") from error
        return path

    def embedder(self) -> Any:
        """Return what `eunoe.open` takes. A model that cannot be loaded is done without, with a warning."""
        try:
            return self._embedder(self.embedding_model, self.embedding_base_url) if self.embedding_model else "auto"
        except EmbedderError as error:
            _log.warning("%s: documents are embedded by the store's own model instead", error)
            return "auto"

    def _embedder(self, model: str, base_url: str) -> Any:
        if model in _EMBEDDER_NAMES or model.startswith(("openai:", "folder:")):
            spec = model
        elif not base_url and not model.startswith("text-embedding-"):
            raise EmbedderError(f"{model} needs a server, which MEMORY_EMBEDDING_BASE_URL names")
        elif self.embedding_api_key:
            from eunoe.embed.adapters import OpenAIEmbedder  # here, since what speaks HTTP takes long to import

            return OpenAIEmbedder(model, base_url=base_url or None, api_key=self.embedding_api_key)
        else:
            spec = f"openai:{model}@{base_url}" if base_url else f"openai:{model}"
        if spec != "auto":
            load_embedder(spec)
        return spec  # not the loaded object: the store writes the spec down, so that others can open it too

    def llm(self) -> Any:
        """Return what `eunoe.open` takes. A model that cannot be loaded is done without, with a warning."""
        try:
            return self._llm(self.llm_model or "auto", self.llm_base_url)
        except LlmError as error:
            _log.warning("%s: the memory works without a language model", error)
            return "none"

    def missing_llm(self) -> str:
        """Why a model that is named cannot be loaded; empty if none is named, or if it can."""
        try:
            self._llm(self.llm_model or "auto", self.llm_base_url)
        except LlmError as error:
            return str(error)
        return ""

    def _llm(self, model: str, base_url: str) -> Any:
        if model not in ("none", "auto") and (base_url or ":" not in model):
            from eunoe.llm.remote import OpenAILlm  # here, since what speaks HTTP takes long to import

            return OpenAILlm(model, base_url=base_url or None, api_key=self.llm_api_key or None)
        if model != "auto":
            load_llm(model)
        return model
