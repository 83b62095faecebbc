"""What a model's folder says of its use: pooling, longest input, prompts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from eunoe.embed.folder.files import read_object
from eunoe.embed.folder.layers import Step, read_steps
from eunoe.embed.folder.pooling import POOLINGS
from eunoe.errors import EmbedderError
from eunoe.model.arguments import show

_DEFAULT_MAX_TOKENS: Final = 512
_HUGE_TOKENS: Final = 1_000_000
"""Tokenizers say 10^30 where they mean that there is no limit."""
_OFFSET_FAMILIES: Final = frozenset(
    {"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "longformer", "data2vec-text", "xmod"}
)
"""Architectures whose positions begin after the number of the padding token."""
_MODES: Final = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_QUESTION_PROMPTS: Final = ("query", "retrieval.query", "web_search_query", "s2p_query", "search_query")
_TEXT_PROMPTS: Final = ("document", "passage", "corpus", "retrieval.passage", "search_document")
_E5: Final = re.compile(r"(?:^|[^a-z0-9])e5(?:[^a-z0-9]|$)", re.IGNORECASE)
_E5_PROMPTS: Final = ("query: ", "passage: ")
_E5_INSTRUCT_PROMPTS: Final = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: ",
    "",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """How a text becomes a vector, beside the graph and the tokenizer."""

    label: str
    """What the model is called in its own files."""
    max_tokens: int
    question_prompt: str
    text_prompt: str
    is_lower_case: bool
    """Whether texts are put into lower case first."""
    first_position: int
    modes: tuple[str, ...]
    skips_prompt: bool
    """Whether the prompt's tokens are left out when the states are pooled."""
    steps: tuple[Step, ...]

    @property
    def text(self) -> str:
        """All that the vectors depend on, beside files."""
        kinds = tuple(step.kind for step in self.steps)
        prompts = (self.question_prompt, self.text_prompt, self.skips_prompt)
        return repr((prompts, self.max_tokens, self.is_lower_case, self.first_position, self.modes, kinds))


def read_config(folder: Path) -> ModelConfig:
    """Read the config files of a folder; what none of them says is as sentence-transformers has it."""
    model = read_object(folder / "config.json")
    steps = read_steps(folder)
    pooling = next((step.folder for step in steps if step.kind == "Pooling"), folder / "1_Pooling") / "config.json"
    first_position = _first_position(folder, model)
    question_prompt, text_prompt = _read_prompts(folder, model)
    return ModelConfig(
        label=_label(model),
        max_tokens=_read_max_tokens(folder, model, first_position),
        question_prompt=question_prompt,
        text_prompt=text_prompt,
        is_lower_case=read_object(_lengths_file(folder)).get("do_lower_case") is True,
        first_position=first_position,
        modes=_read_modes(pooling),
        skips_prompt=read_object(pooling).get("include_prompt") is False,
        steps=steps,
    )


def _read_modes(path: Path) -> tuple[str, ...]:
    stated = read_object(path)
    named = stated.get("pooling_mode")
    modes = [mode for key, mode in _MODES.items() if stated.get(key) is True]
    if named is not None:
        modes = named if isinstance(named, list) else [named]
    for mode in modes:
        if not isinstance(mode, str) or mode not in POOLINGS:
            raise EmbedderError(f"{path}: the pooling {show(mode)} is unknown; known: {', '.join(POOLINGS)}")
    return tuple(modes) or ("mean",)


def _read_max_tokens(folder: Path, model: Mapping[str, Any], first_position: int) -> int:
    lengths, tokenizer = _lengths_file(folder), folder / "tokenizer_config.json"
    positions = _number(folder / "config.json", model, "max_position_embeddings")
    limits = (
        _number(lengths, read_object(lengths), "max_seq_length"),
        _number(tokenizer, read_object(tokenizer), "model_max_length"),
        positions,
        _DEFAULT_MAX_TOKENS,
    )
    limit = next(filter(None, limits))
    return min(limit, max(1, positions - first_position)) if positions else limit


def _lengths_file(folder: Path) -> Path:
    """`sentence_bert_config.json`; in older models its name has that of their architecture."""
    return next(iter(sorted(folder.glob("sentence_*_config.json"))), folder / "sentence_bert_config.json")


def _number(path: Path, stated: Mapping[str, Any], key: str) -> int:
    """A number of tokens; 0 if none is stated, or none that limits anything."""
    value = stated.get(key)
    if value is None or (isinstance(value, (int, float)) and value > _HUGE_TOKENS):
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 1:
        raise EmbedderError(f"{path}: {key} must be a number of tokens, not {show(value)}")
    return int(value)


def _first_position(folder: Path, model: Mapping[str, Any]) -> int:
    if str(model.get("model_type")) not in _OFFSET_FAMILIES:
        return 0
    padding = model.get("pad_token_id", 1)
    if not isinstance(padding, int):
        raise EmbedderError(f"{folder / 'config.json'}: pad_token_id must be a number, not {show(padding)}")
    return padding + 1


def _read_prompts(folder: Path, model: Mapping[str, Any]) -> tuple[str, str]:
    """What is put before questions and before texts."""
    path = folder / "config_sentence_transformers.json"
    stated = read_object(path)
    prompts = stated.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(prompt, str) for prompt in prompts.values()):
        raise EmbedderError(f"{path}: prompts must be an object of texts")
    default = prompts.get(str(stated.get("default_prompt_name")), "")
    question, text = (_first_of(prompts, names, default) for names in (_QUESTION_PROMPTS, _TEXT_PROMPTS))
    if question or text:
        return question, text
    return _family_prompts([str(model.get("_name_or_path") or ""), *_folder_names(folder)])


def _first_of(prompts: Mapping[str, str], names: Sequence[str], default: str) -> str:
    return next((prompts[name] for name in names if name in prompts), default)


def _family_prompts(names: Sequence[str]) -> tuple[str, str]:
    """The prompts that a family of models was trained with, though its files do not say so.

    >>> _family_prompts(["intfloat/multilingual-e5-small"]), _family_prompts(["e5b2-7de5f"])
    (('query: ', 'passage: '), ('', ''))
    """
    name = next(filter(_E5.search, names), "")
    if not name:
        return "", ""
    return _E5_INSTRUCT_PROMPTS if "instruct" in name.lower() else _E5_PROMPTS


def _folder_names(folder: Path) -> list[str]:
    """The folder's name; in the cache of huggingface_hub the model's name stands two levels up."""
    real = folder.resolve()
    repository = [real.parent.parent.name] if real.parent.name == "snapshots" else []
    return [folder.name, real.name, *repository]


def _label(model: Mapping[str, Any]) -> str:
    """Not the folder's name: a model stays the same when its folder is renamed."""
    name = str(model.get("_name_or_path") or "").replace("\\", "/").rstrip("/").rpartition("/")[2]
    name = name or str(model.get("model_type") or "")
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII).strip("-.")[:60] or "encoder"
