"""Which language models the endpoints and presets of workflows mean."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from eunoe.errors import InputError, LlmError, WorkflowError
from eunoe.llm import check_model_spec, load_llm
from eunoe.llm.contract import Llm, Prompt, Reply
from eunoe.model.arguments import show

ANY: Final = "*"
"""Stands for every name that the map does not have."""
_SECTIONS: Final = ("endpoints", "presets")
_PRESET_KEYS: Final = ("model", "temperature", "max_tokens", "timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """How an endpoint is asked."""

    model: str = ""
    """Another model than that of the endpoint."""
    temperature: float | None = None
    max_tokens: int | None = None
    """How long an answer may be, where the node does not say it."""
    timeout: float | None = None
    """How many seconds an answer may take."""

    @classmethod
    def of(cls, fields: Any, title: str) -> Preset:
        """Check a preset as a file has it."""
        if not isinstance(fields, Mapping):
            raise InputError(f'{title} must be an object such as {{}} or {{"temperature": 0.7}}, not {show(fields)}')
        if unknown := [key for key in fields if key not in _PRESET_KEYS]:
            raise InputError(f"{title} has {show(unknown[0])}; a preset may have {', '.join(_PRESET_KEYS)}")
        if not isinstance(fields.get("model", ""), str):
            raise InputError(f"{title}: model must be a text such as openai:MODEL")
        for key in _PRESET_KEYS[1:]:
            value = fields.get(key, 1)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
                raise InputError(f"{title}: {key} must be a number, not {show(value)}")
        return cls(**{**fields, **({"max_tokens": int(fields["max_tokens"])} if "max_tokens" in fields else {})})


@dataclass(slots=True, kw_only=True)
class ModelMap:
    """Endpoints and presets by name, and what they mean here.

    >>> models = ModelMap(endpoints={"*": lambda text: "Hello."})
    >>> models.find("Thinker").ask(Prompt("", "Hi")).text
    'Hello.'
    """

    endpoints: Mapping[str, Any] = field(default_factory=dict)
    """Each a model as `eunoe.open(llm=...)` takes it."""
    presets: Mapping[str, Preset] = field(default_factory=dict)
    default: Llm | None = None
    """For nodes that name no endpoint."""
    _loaded: dict[str, Llm] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, path: str | Path) -> ModelMap:
        """Read a map from a JSON file: `{"endpoints": {"NAME": "openai:MODEL"}, "presets": {"NAME": {}}}`."""
        try:
            fields = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"cannot read the map of models {path}: {error}") from error
        return cls.of(fields, str(path))

    @classmethod
    def of(cls, fields: Any, title: str = "the map of models") -> ModelMap:
        """Check a map as a file has it."""
        sections: list[Any] = [fields.get(name, {}) if isinstance(fields, Mapping) else None for name in _SECTIONS]
        if not all(isinstance(section, Mapping) for section in sections) or set(fields) - set(_SECTIONS):
            raise InputError(f'{title} must be {{"endpoints": {{...}}, "presets": {{...}}}} and nothing else')
        endpoints, presets = sections
        named = {name: _spec(spec, f"{title}: endpoint {show(name)}") for name, spec in endpoints.items()}
        return cls(
            endpoints=named,
            presets={name: Preset.of(each, f"{title}: preset {show(name)}") for name, each in presets.items()},
        )

    def problems(self, endpoint: str, preset: str) -> list[str]:
        """What is not mapped."""
        problems = []
        if endpoint and self._spec(endpoint) is None:
            problems.append(f"the endpoint {show(endpoint)} is not mapped to a model: {_how(endpoint, 'endpoint')}")
        if preset and self._preset(preset) is None:
            problems.append(f"the preset {show(preset)} is not mapped: {_how(preset, 'preset')}")
        return problems

    def spec_problems(self, endpoint: str, preset: str) -> Iterator[str]:
        """What is mapped to something that can be no model."""
        chosen = self._preset(preset)
        for spec in (self._spec(endpoint) if endpoint else "", chosen.model if chosen else ""):
            try:
                check_model_spec(spec if isinstance(spec, str) else "")
            except LlmError as error:
                yield str(error)

    def has_default(self, preset: str = "") -> bool:
        """Whether a node that names no endpoint has a model."""
        chosen = self._preset(preset)
        return self.default is not None or ANY in self.endpoints or bool(chosen and chosen.model)

    def find(self, endpoint: str = "", preset: str = "") -> Llm | None:
        """The model of an endpoint, asked as a preset says; None if no endpoint is named and there is no default."""
        for problem in self.problems(endpoint, preset):
            raise WorkflowError(problem)
        chosen = self._preset(preset) or Preset()
        llm = self._load(chosen.model, f"preset {show(preset)}") if chosen.model else self._endpoint(endpoint)
        return _PresetLlm(llm, chosen) if llm and chosen != Preset() else llm

    def _spec(self, endpoint: str) -> Any:
        return self.endpoints.get(endpoint, self.endpoints.get(ANY))

    def _preset(self, name: str) -> Preset | None:
        return self.presets.get(name, self.presets.get(ANY)) if name else None

    def _endpoint(self, name: str) -> Llm | None:
        spec = self._spec(name)
        if spec is None:
            return self.default
        return self._load(spec, f"endpoint {show(name)}")

    def _load(self, spec: Any, title: str) -> Llm:
        key = spec if isinstance(spec, str) else str(id(spec))
        if key not in self._loaded:
            llm = load_llm(spec)
            if llm is None:
                raise LlmError(f"the {title} is mapped to no model: {show(spec)}")
            self._loaded[key] = llm
        return self._loaded[key]


class _PresetLlm:
    """A model that is asked as a preset says."""

    def __init__(self, llm: Llm, preset: Preset) -> None:
        self.name = llm.name
        self._llm = llm
        changes = {"temperature": preset.temperature, "timeout": preset.timeout}
        self._changes: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
        self.max_tokens = preset.max_tokens

    def ask(self, prompt: Prompt) -> Reply:
        return self._llm.ask(replace(prompt, **self._changes))


def _spec(value: Any, title: str) -> Any:
    if isinstance(value, Mapping):
        if set(value) - {"model", "url"} or not isinstance(value.get("model"), str):
            raise InputError(f'{title} must be a text such as "openai:MODEL", or {{"model": ..., "url": ...}}')
        return f"openai:{value['model']}@{value['url']}" if value.get("url") else value["model"]
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{title} must be a text such as openai:MODEL@http://host:port/v1, not {show(value)}")
    return value


def _how(name: str, section: str) -> str:
    example = "SPEC" if section == "endpoint" else "{}"
    return f"name it in the file of models (--models), or give --{section} '{name}={example}' or --model SPEC for all"
