"""Workflows as they are written, in JSON files of a folder; models they mean, what runs share, and what nodes did."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from eunoe.apps.discussion.files import FileKey, Layout
from eunoe.apps.discussion.settings import DEFAULT_SETTINGS, DiscussionSettings, UserSettings
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

    def problems(self, endpoint: str, preset: str, needs_model: bool = False) -> list[str]:
        """What is not mapped, or mapped to something that can be no model."""
        how, chosen, problems = "name it in the file of models (--models), or give", self._preset(preset), []
        if endpoint and self._spec(endpoint) is None:
            given = f"{how} --endpoint '{endpoint}=SPEC' or --model SPEC for all"
            problems.append(f"the endpoint {show(endpoint)} is not mapped to a model: {given}")
        if preset and chosen is None:
            given = f"{how} --preset '{preset}={{}}' or --model SPEC for all"
            problems.append(f"the preset {show(preset)} is not mapped: {given}")
        for spec in (self._spec(endpoint) if endpoint else "", chosen.model if chosen else ""):
            try:
                check_model_spec(spec if isinstance(spec, str) else "")
            except LlmError as error:
                problems.append(str(error))
        has_default = self.default is not None or ANY in self.endpoints or bool(chosen and chosen.model)
        if needs_model and not endpoint and not has_default:
            problems.append("there is no language model for it: it names no endpointName, and EUNOE_LLM is not set")
        return problems

    def find(self, endpoint: str = "", preset: str = "") -> Llm | None:
        """The model of an endpoint, asked as a preset says; None if no endpoint is named and there is no default."""
        for problem in self.problems(endpoint, preset):
            raise WorkflowError(problem)
        chosen = self._preset(preset) or Preset()
        spec, title = self._spec(endpoint), f"endpoint {show(endpoint)}"
        if chosen.model:
            spec, title = chosen.model, f"preset {show(preset)}"
        llm = self.default if spec is None else self._load(spec, title)
        return _PresetLlm(llm, chosen) if llm and chosen != Preset() else llm

    def _spec(self, endpoint: str) -> Any:
        return self.endpoints.get(endpoint, self.endpoints.get(ANY))

    def _preset(self, name: str) -> Preset | None:
        return self.presets.get(name, self.presets.get(ANY)) if name else None

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


_SUFFIX: Final = ".json"
_MAX_FILE_BYTES: Final = 10_000_000
"""No workflow is that long; something else was named."""
MAX_DEPTH: Final = 20
"""Workflows that call each other in a chain; more are a mistake."""


@dataclass(frozen=True, slots=True)
class Workflow:
    """Nodes that run one after the other, and variables for their prompts."""

    nodes: tuple[Mapping[str, Any], ...]
    variables: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None
    """Its file; None if it was made in Python."""

    @property
    def name(self) -> str:
        """What it is called in chains of workflows."""
        return self.path.stem if self.path else "workflow"

    @property
    def title(self) -> str:
        """How errors name it."""
        return str(self.path) if self.path else "the workflow"

    @classmethod
    def of(cls, document: Any, path: Path | None = None) -> Workflow:
        """Read what a file holds: an object with `nodes`, whose other keys are variables, or a list of nodes.

        >>> Workflow.of({"nodes": [{"type": "StaticResponse", "content": "{name}"}], "name": "Anna"}).variables
        {'name': 'Anna'}
        """
        title = str(path) if path else "the workflow"
        variables: dict[str, Any] = {}
        if isinstance(document, Mapping):
            variables = {name: value for name, value in document.items() if name != "nodes"}
            document = document.get("nodes")
        if not isinstance(document, Sequence) or isinstance(document, str):
            raise WorkflowError(f'{title} is no workflow: it must be {{"nodes": [...]}} or a list of nodes')
        if not document:
            raise WorkflowError(f"{title} has no nodes")
        for number, each in enumerate(document, 1):
            if not isinstance(each, Mapping):
                raise WorkflowError(f"{title}: node {number} must be an object, not {show(each)}")
        return cls(tuple(document), variables, path)

    @classmethod
    def load(cls, path_or_name: str | Path, folder: str | Path | None = None) -> Workflow:
        """Read a workflow from a file, or by its name in a folder."""
        path = Path(path_or_name)
        is_name = not path.is_absolute() and ".." not in path.parts
        if folder is not None and is_name and not path.is_file():
            path = find_workflow(Path(folder), str(path_or_name))
        try:
            if path.stat().st_size > _MAX_FILE_BYTES:
                raise WorkflowError(f"{path} is too long for a workflow")
            document = json.loads(path.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, RecursionError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is nested too deeply"
            reason = f"not JSON: {error}" if isinstance(error, ValueError) else reason
            raise WorkflowError(f"cannot read the workflow {path}: {reason}") from error
        return cls.of(document, path)


def find_workflow(top: Path, name: str, folder: str = "", beside: Path | None = None) -> Path:
    """The file of a workflow: in the sub-folder that is named, else beside the one that asks, else at the top. No name
    leads out of that."""
    top = top.resolve()
    own = beside.resolve().parent if beside else top
    places = [top / folder] if folder else [*([own] if own.is_relative_to(top) else []), top]
    for place in places:
        try:
            path = (place / (name.strip().removesuffix(_SUFFIX) + _SUFFIX)).resolve()
        except (OSError, ValueError, RuntimeError):
            raise WorkflowError(f"{show(name)} is no name of a workflow") from None
        if not path.is_relative_to(top):
            raise WorkflowError(f"the workflow {show(name)} lies outside of {top}")
        if path.is_file():
            return path
    raise WorkflowError(f"there is no workflow {show(name)} in {' and '.join(map(str, dict.fromkeys(places)))}")


def find_in_chain(chain: Sequence[Workflow], folder: Path | None, name: str, sub_folder: str = "") -> Workflow:
    """Read the workflow that the last one of a chain names. One that is in the chain already is an error."""
    top = folder or (chain[0].path.parent if chain[0].path else None)
    names = " -> ".join([*(each.name for each in chain), name])
    if top is None:
        raise WorkflowError(f"no folder to find the workflow {show(name)} in: {names}; name one with --workflows")
    try:
        path = find_workflow(top, name, sub_folder, chain[-1].path)
    except WorkflowError as error:
        raise WorkflowError(f"{error}: {names}") from error
    names = " -> ".join([*(each.name for each in chain), path.stem])
    if any(each.path and each.path.resolve() == path for each in chain):
        raise WorkflowError(f"the workflow {show(name)} calls itself: {names}")
    if len(chain) >= MAX_DEPTH:
        raise WorkflowError(f"more than {MAX_DEPTH} workflows call each other: {names}")
    return Workflow.load(path)


def node_ids(nodes: tuple[Mapping[str, Any], ...]) -> dict[str, int]:
    """The numbers of nodes by their ids."""
    return {each["id"]: number for number, each in enumerate(nodes, 1) if isinstance(each.get("id"), str)}


@dataclass(slots=True, kw_only=True)
class NodeTrace:
    """What one node did."""

    workflow: str
    """The names of its workflow and of those that called it: `main -> summary`."""
    number: int
    type: str
    title: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    """Its keys as they were rendered."""
    output: str = ""
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    models: list[str] = field(default_factory=list)
    """The language models that it asked."""
    notes: list[str] = field(default_factory=list)
    error: str = ""

    @classmethod
    def of(cls, chain: Sequence[Workflow], number: int) -> NodeTrace:
        """The trace of a node of the last workflow of a chain."""
        fields = chain[-1].nodes[number - 1]
        title = fields.get("title") or fields.get("agentName") or fields.get("id") or ""
        names = " -> ".join(each.name for each in chain)
        return cls(workflow=names, number=number, type=str(fields.get("type") or "no type"), title=str(title))

    @property
    def place(self) -> str:
        """The node in words, for errors and progress."""
        title = f' "{self.title}"' if self.title else ""
        return f"node {self.number}{title} ({self.type})"

    def place_in(self, chain: Sequence[Workflow]) -> str:
        """The same, with its file."""
        callers = f" (called by {' -> '.join(each.name for each in chain[:-1])})" if chain[1:] else ""
        return f"{chain[-1].title}{callers}: {self.place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Models, settings, and what workflows may touch. Folders may be given as texts."""

    models: ModelMap = field(default_factory=ModelMap)
    settings: DiscussionSettings = DEFAULT_SETTINGS
    workflows: Path | None = None
    """The folder in which names of workflows are found; None: that of the workflow which is run."""
    host_messages: bool = False
    """Whether nodes that find nothing say so in WilmerAI's own sentences."""
    update_first: bool = False
    """Whether `RecentMemory` and `FullChatSummary` make memories before they read, as in WilmerAI."""
    user_settings: UserSettings = field(default_factory=UserSettings)
    """Names the workflows that some memory nodes run."""
    files_dir: Path | None = None
    """Where creators write files of discussions; None: nowhere."""
    layout: Layout = "folders"
    """How these files are laid out."""
    key: FileKey | None = None
    """Encrypts these files."""
    now: Callable[[], datetime] = lambda: datetime.now().astimezone()
    progress: Callable[[NodeTrace], None] | None = None
    """Is told of each node when it has ended."""

    def __post_init__(self) -> None:
        for name in ("workflows", "files_dir"):
            folder = getattr(self, name)
            object.__setattr__(self, name, Path(folder) if folder is not None else None)
