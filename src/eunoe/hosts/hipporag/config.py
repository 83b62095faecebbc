"""What HippoRAG's arguments and config mean here: which are used, which are refused, and which do nothing."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from difflib import get_close_matches
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
_INNER_NAMES: Final = """
num_gen_choices seed response_format max_retry_attempts llm_supports_max_completion_tokens
force_openie_from_scratch force_index_from_scratch rerank_dspy_file_path passage_node_weight save_openie
text_preprocessor_class_name preprocess_encoder_name preprocess_chunk_overlap_token_size
preprocess_chunk_max_token_size preprocess_chunk_func
information_extraction_model_name skip_graph openie_max_workers openie_ner_max_tokens openie_triple_max_tokens
embedding_batch_size embedding_return_as_normalized embedding_max_seq_len embedding_model_dtype
embedding_request_timeout
synonymy_edge_topk synonymy_edge_query_batch_size synonymy_edge_key_batch_size synonymy_edge_sim_threshold
is_directed_graph linking_top_k damping max_qa_steps dataset graph_type corpus_len
"""
_INNER: Final = frozenset(_INNER_NAMES.split())
"""The other settings of HippoRAG, which say how it works inside."""
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

    def __init__(self, **settings: Any) -> None:
        if unknown := [_describe(name) for name in sorted(settings) if not _is_known(name)]:
            raise InputError(f"HippoRAG has no setting {', '.join(unknown)}")
        super().__init__(**settings)

    def __getattr__(self, name: str) -> Any:
        try:
            return _DEFAULTS[name]
        except KeyError:
            raise AttributeError(f"BaseConfig has no setting {_describe(name)}") from None


def read_config(config: Any, arguments: Mapping[str, Any]) -> BaseConfig:
    """Join a config, which may be HippoRAG's own, and arguments, which count more. Neither is changed."""
    _check_config(config)
    given = {name: value for name, value in arguments.items() if value is not None}
    chosen = chosen_settings(config)
    _check(chosen | given)
    unused = sorted(set(chosen) - set(_DEFAULTS))
    if unused:
        _log.warning("these settings of HippoRAG do nothing here: %s", ", ".join(map(_describe, unused)))
    used = {name: value for name in _DEFAULTS if (value := getattr(config, name, None)) is not None}
    return BaseConfig(**_check_values(used | given, given))


def _check_config(config: Any) -> None:
    if isinstance(config, str | os.PathLike):
        raise InputError(f"global_config is {show(config)}, not a config object: for a folder give save_dir=")
    if isinstance(config, Mapping):
        raise InputError("global_config is a mapping, not a config object: give BaseConfig(**settings)")
    has_fields = hasattr(config, "__dict__") or is_dataclass(config)
    if config is not None and (callable(config) or not has_fields):
        raise InputError(f"global_config is {show(config)}, not a config object: give a BaseConfig")


def _check_values(settings: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Check the settings that are used; other fields of the object are not looked at."""
    checked = dict(settings)
    for name, default in _DEFAULTS.items():
        if name not in checked:
            continue
        value, shown = checked[name], _ARGUMENTS.get(name, name) if name in arguments else name
        if isinstance(default, str):
            checked[name] = check_text(os.fspath(value) if isinstance(value, os.PathLike) else value, shown)
        elif isinstance(default, int):
            checked[name] = check_count(value, shown)
        else:
            check_number(value, shown, 0.0, _MAX_TEMPERATURE)
    if checked.get("save_dir", "").isspace():
        raise InputError("save_dir is blank: name a folder")
    return checked


def chosen_settings(config: Any) -> dict[str, Any]:
    """The settings of a config that somebody chose: of a dataclass those that differ from its defaults."""
    names = [each.name for each in fields(config)] if is_dataclass(config) else getattr(config, "__dict__", {})
    settings = {name: value for name in names if (value := getattr(config, name)) is not None}
    if not is_dataclass(config):
        return settings
    defaults = {each.name: each.default for each in fields(config)}
    made = {each.name: each.default_factory() for each in fields(config) if each.default_factory is not MISSING}
    return {name: value for name, value in settings.items() if value != (defaults | made).get(name)}


def _is_known(name: str) -> bool:
    return name in _DEFAULTS or name in _INNER or name.startswith(tuple(_REFUSALS))


def _describe(name: str) -> str:
    """A name, and one of HippoRAG's that is spelled like it where it is none."""
    near = [] if _is_known(name) else get_close_matches(name, [*_DEFAULTS, *sorted(_INNER)], 1)
    return f"{name} (did you mean {near[0]}?)" if near else name


def _check(settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        advice = next((text for start, text in _REFUSALS.items() if name.startswith(start)), "")
        if advice and value not in _HARMLESS.get(name, ()):
            raise InputError(f"{name} is not supported: {advice}")
    model = str(settings.get("llm_name", ""))
    if model.startswith(_MODELS_ELSEWHERE):
        cure = "serve it behind an OpenAI-compatible address, and give that as llm_base_url with its name there"
        raise InputError(f"the model {model!r:.60} is asked in HippoRAG's own way, which is not supported: {cure}")


def project_settings(config: BaseConfig) -> ProjectSettings:
    """Where the memory is and which models it uses; what is not set comes from the environment."""
    settings = ProjectSettings.from_environment(
        save_dir=config.save_dir,
        llm_model=config.llm_name,
        llm_base_url=config.llm_base_url,
        llm_api_key=_read_key(config.llm_api_key_env, "llm_api_key_env"),
        embedding_model=str(config.embedding_model_name).removeprefix("VLLM/"),
        embedding_base_url=str(config.embedding_base_url).rstrip("/").removesuffix("/embeddings"),
        embedding_api_key=_read_key(config.embedding_api_key_env, "embedding_api_key_env"),
    )
    return replace(settings, save_dir=settings.save_dir or _DEFAULT_FOLDER)


def _read_key(variable: str, name: str) -> str:
    key = os.environ.get(variable, "").strip() if variable else ""
    if variable and not key:
        raise InputError(f"{name} names the environment variable {variable!r:.60}, which is not set")
    return key
