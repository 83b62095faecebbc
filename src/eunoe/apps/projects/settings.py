"""Where project memory is kept and which models it uses, from arguments and environment variables."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Final

from eunoe.embed import load_embedder
from eunoe.errors import EmbedderError, InputError, LlmError, StoreError
from eunoe.llm import load_llm
from eunoe.memory import Memory

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


OPENIE_FILES: Final = ("openie_results_ner*.json", "openie_state.json", "*/openie_state.json")
"""What its language model drew from the documents, with their words: in its folder, or in those of its models."""
CHUNK_FILES: Final = ("chunk_embeddings/vdb_chunk.parquet", "*/chunk_embeddings/vdb_chunk.parquet")
"""The documents with their vectors."""
METADATA_FILES: Final = ("chunk_metadata.json", "*/chunk_metadata.json")
_MAX_NAMED: Final = 3


def find_files(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    """The files of one HippoRAG: not those of another that has its own folder in this one."""
    others = {path.parent for path in folder.glob(f"*/{OPENIE_FILES[0]}")}
    found = (path for pattern in patterns for path in folder.glob(pattern))
    return sorted(path for path in found if others.isdisjoint(path.parents))


def is_hipporag_folder(folder: Path) -> bool:
    """Whether a folder is the save_dir of one HippoRAG."""
    return bool(find_files(folder, OPENIE_FILES) or find_files(folder, CHUNK_FILES))


def project_folders(folder: Path) -> list[Path]:
    """The folders in a folder that are the save_dir of one HippoRAG each, as hosts with several projects have them.

    None in one that is a save_dir itself: there a folder belongs to a model.
    """
    if not folder.is_dir() or is_hipporag_folder(folder):
        return []
    return [path for path in sorted(folder.iterdir()) if path.is_dir() and is_hipporag_folder(path)]


def offer_import(store: Path, memory: Memory, project: str = "") -> None:
    """Say how documents of HippoRAG beside a store come into it, as long as it holds nothing.

    Args:
        project: the one that documents go to, if only one is asked: that of the class in the place of HippoRAG's.
    """
    folder = store.parent
    if memory.scopes():
        return
    names = [path.name for path in project_folders(folder)]
    command = f"`eunoe --store {quote(str(store))} migrate hipporag {quote(str(folder))}"
    if is_hipporag_folder(folder):
        found = str(folder)
        way = f"{command} --project {project or 'NAME'}`" + (", or rag.migrate()," if project else "")
    elif names:
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        found = f"{folder} ({', '.join(names[:_MAX_NAMED])}{more})"
        way = f"rag.migrate({str(folder / names[0])!r}), and so on," if project else f"{command}`"
    else:
        return
    _log.warning("%s holds documents of HippoRAG that are not in this memory: %s brings them in", found, way)
