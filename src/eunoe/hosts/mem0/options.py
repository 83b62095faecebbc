"""The options that mem0 has for the parts of a configuration. One that it does not have is a slip, and is refused."""

from collections.abc import Mapping
from typing import Any, Final

from eunoe.errors import InputError
from eunoe.model.arguments import show

_STORE: Final = """
path collection_name embedding_model_dims on_disk https distance_strategy normalize_L2 client host port url api_key
tenant
"""
_MODEL: Final = """
model api_key http_client_proxies base_url openai_base_url ollama_base_url lmstudio_base_url vllm_base_url
"""
_EMBEDDER: Final = """
embedding_dims model_kwargs memory_add_embedding_type memory_update_embedding_type memory_search_embedding_type
"""
_LLM: Final = """
temperature max_tokens top_p top_k enable_vision vision_details reasoning_effort is_reasoning_model
enable_sampling_parameters anthropic_base_url openrouter_base_url lmstudio_response_format models route site_url
app_name store response_callback
"""
OPTIONS: Final[Mapping[str, frozenset[str]]] = {
    "vector_store": frozenset(_STORE.split()),
    "embedder": frozenset((_MODEL + _EMBEDDER).split()),
    "llm": frozenset((_MODEL + _LLM).split()),
}
"""By part. Some have no meaning here, such as how a model samples."""


def check_options(part: str, options: Mapping[str, Any]) -> None:
    if unknown := sorted(map(str, options.keys() - OPTIONS[part])):
        raise InputError(
            f"config: {part} has no option {show(unknown[0])}; it takes {', '.join(sorted(OPTIONS[part]))}"
        )
