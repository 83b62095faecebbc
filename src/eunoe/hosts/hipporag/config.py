"""What HippoRAG's arguments and config mean here: which are used, which are refused, which do nothing."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from types import SimpleNamespace
from typing import Any, Final

from eunoe.apps.projects import ProjectSettings
from eunoe.errors import InputError
from eunoe.model.arguments import check_count, check_number, check_text, show

_DEFAULT_FOLDER: Final = "outputs"
_DEFAULTS: Final[Mapping[str, Any]] = {
    "save_dir": "",
    "llm_name": "",
    "llm_base_url": "",
    "llm_api_key_env": "",
    "embedding_model_name": "",
    "embedding_base_url": "",
    "embedding_api_key_env": "",
    "retrieval_top_k": 200,
    "qa_top_k": 5,
    "max_new_tokens": 2048,
    "temperature": 0.0,
}
"""The settings that are used. The numbers are HippoRAG's own."""
_ARGUMENTS: Final = {"llm_name": "llm_model_name"}
"""Settings that have another name as an argument."""
_MAX_TEMPERATURE: Final = 2.0
_OTHER_STORE: Final = "vectors are kept in the store itself"
_REFUSALS: Final = {
    "azure_": "give the OpenAI-compatible address of your resource, https://NAME.openai.azure.com/openai/v1, as "
    "llm_base_url or embedding_base_url",
    "bedrock_": 'give llm_model_name="bedrock:MODEL" (pip install eunoe[llm])',
    "vector_store_type": _OTHER_STORE,
    "vector_store_namespace": _OTHER_STORE,
    "qdrant_": _OTHER_STORE,
    "chroma_": _OTHER_STORE,
    "milvus_": _OTHER_STORE,
    "openie_mode": "documents are indexed without a language model; extraction_llm= has one read them",
    "embedding_provider": "say it with embedding_model_name and embedding_base_url",
}
"""By how the name of a setting begins: what to do instead."""
_HARMLESS: Final = {
    "vector_store_type": ("parquet",),
    "openie_mode": ("online",),
    "embedding_provider": ("openai", "vllm"),
}
_MODELS_ELSEWHERE: Final = ("Transformers/", "bedrock/", "bedrock-mantle/", "orcarouter/", "atlascloud/")
"""How names of models begin that HippoRAG does not ask at the address of OpenAI: what they were to read must not go
there either."""
_log = logging.getLogger(__name__)


class BaseConfig(SimpleNamespace):
    """Settings by the names that HippoRAG gives them. It holds those that are given; the others have their defaults.

    >>> config = BaseConfig(save_dir="outputs", qa_top_k=3)
    >>> config.qa_top_k, config.retrieval_top_k
    (3, 200)
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return _DEFAULTS[name]
        except KeyError:
            raise AttributeError(f"BaseConfig has no setting {name}") from None


def read_config(config: Any, arguments: Mapping[str, Any]) -> BaseConfig:
    """Join a config, which may be HippoRAG's own, and arguments, which count more. Neither is changed."""
    is_object = hasattr(config, "__dict__") or is_dataclass(config)
    if config is not None and (callable(config) or not is_object or isinstance(config, Mapping | os.PathLike)):
        advice = "for a folder give save_dir=, for a mapping BaseConfig(**settings)"
        raise InputError(f"global_config is {show(config)}, not a config object: {advice}")
    given = {name: value for name, value in arguments.items() if value is not None}
    chosen = chosen_settings(config)
    for name, value in (chosen | given).items():
        advice = next((text for start, text in _REFUSALS.items() if name.startswith(start)), "")
        if advice and value not in _HARMLESS.get(name, ()):
            raise InputError(f"{name} is not supported: {advice}")
    if unused := sorted(chosen.keys() - _DEFAULTS.keys() - _HARMLESS.keys()):
        _log.warning("these settings do nothing here: %s", ", ".join(unused))
    settings = {name: value for name in _DEFAULTS if (value := getattr(config, name, None)) is not None} | given
    for name, default in _DEFAULTS.items():
        if name not in settings:
            continue
        value, shown = settings[name], _ARGUMENTS.get(name, name) if name in given else name
        if isinstance(default, str):
            settings[name] = check_text(os.fspath(value) if isinstance(value, os.PathLike) else value, shown)
        elif isinstance(default, int):
            settings[name] = check_count(value, shown)
        else:
            check_number(value, shown, 0.0, _MAX_TEMPERATURE)
    if settings.get("save_dir", "").isspace():
        raise InputError("save_dir must be the name of a folder: it is blank")
    if (model := settings.get("llm_name", "")).startswith(_MODELS_ELSEWHERE):
        cure = "serve it behind an OpenAI-compatible address, and give that as llm_base_url with its name there"
        raise InputError(f"the model {model!r:.60} is asked in HippoRAG's own way, which is not supported: {cure}")
    return BaseConfig(**settings)


def chosen_settings(config: Any) -> dict[str, Any]:
    """The settings of a config that somebody chose: of a dataclass those that differ from its defaults."""
    if not is_dataclass(config):
        return {name: value for name, value in getattr(config, "__dict__", {}).items() if value is not None}
    defaults = {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(config)
    }
    settings = {name: getattr(config, name) for name in defaults}
    return {name: value for name, value in settings.items() if value is not None and value != defaults[name]}


def project_settings(config: BaseConfig) -> ProjectSettings:
    """Where the memory is and which models it uses; what is not set comes from the environment."""
    keys = {}
    for name in ("llm_api_key_env", "embedding_api_key_env"):
        variable = getattr(config, name)
        keys[name] = os.environ.get(variable, "").strip() if variable else ""
        if variable and not keys[name]:
            raise InputError(f"{name} names the environment variable {variable!r:.60}, which is not set")
    settings = ProjectSettings.from_environment(
        save_dir=config.save_dir,
        llm_model=config.llm_name,
        llm_base_url=config.llm_base_url,
        llm_api_key=keys["llm_api_key_env"],
        embedding_model=str(config.embedding_model_name).removeprefix("VLLM/"),
        embedding_base_url=str(config.embedding_base_url).rstrip("/").removesuffix("/embeddings"),
        embedding_api_key=keys["embedding_api_key_env"],
    )
    return replace(settings, save_dir=settings.save_dir or _DEFAULT_FOLDER)
