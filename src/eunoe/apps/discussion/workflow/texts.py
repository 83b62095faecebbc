"""The texts of a node with placeholders filled in: `{name}`, some in brackets, or as a Jinja template.

A text is read once, from left to right: what is put in is never read again, so that braces in it do nothing. A brace
that does not stand around a name is a brace. `{{name}}` is `{name}` and no placeholder; `{{{name}}}` is one, in braces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from eunoe.apps.discussion.texts import message_text, turns
from eunoe.apps.discussion.workflow.document import node_ids
from eunoe.errors import InputError, MissingPackageError, WorkflowError
from eunoe.model.arguments import show
from eunoe.model.turn import SILENT_ROLES
from eunoe.text.sentences import token_count

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment

    from eunoe.apps.discussion.workflow.run import Run

BRACKETED: Final = ("TextChunk", "Memory_file", "Full_Memory_file", "Chat_Summary", "CHAT_SUMMARY", "LATEST_MEMORIES")
"""The names that may stand in brackets. Other words in brackets are left as they are."""
NAME: Final = re.compile(r"[^\W\d]\w*")
_BRACKETED: Final = re.compile(rf"\[(?P<bracketed>{'|'.join(BRACKETED)})\]")
_PLACEHOLDER: Final = re.compile(
    rf"(?<!\{{)\{{\{{(?P<literal>{NAME.pattern})\}}\}}|\{{(?P<name>{NAME.pattern})\}}|{_BRACKETED.pattern}"
)
_AGENT: Final = re.compile(r"agent([1-9][0-9]{0,3})(Input|Output)")
_COUNTS: Final = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10, "twenty": 20}
_DEFAULT_MESSAGES: Final = 5
_DEFAULT_TOKENS: Final = 2048
COUNT_KEYS: Final = (
    "nMessagesToIncludeInVariable",
    "estimatedTokensToIncludeInVariable",
    "minMessagesInVariable",
    "maxEstimatedTokensInVariable",
)
"""Keys of a node that say how much of the chat `..._n_messages` and the like hold."""
_MAX_TEMPLATE_CHARACTERS: Final = 4_000_000
"""A text that is longer fits into no model."""

ChatMessage = Mapping[str, Any]


def read_messages(values: Iterable[Any]) -> list[dict[str, Any]]:
    """Check messages with role and content. A text is a user's message; one alone is a chat."""
    if isinstance(values, str | Mapping):
        values = [values]
    messages = [{"role": "user", "content": value} if isinstance(value, str) else value for value in values]
    for number, message in enumerate(messages, 1):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InputError(f'message {number} must be an object with "role" and "content"')
        if not isinstance(message.get("content"), str | list | None):
            raise InputError(f"message {number}: its content must be text or a list of parts")
    return [dict(message) for message in messages]


def conversation(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """The messages with words, without those of the system."""
    return [each for each in messages if each["role"].lower() not in SILENT_ROLES and message_text(each)]


def system_text(messages: Iterable[ChatMessage]) -> str:
    """What the messages of the system say."""
    return "\n".join(message_text(each) for each in messages if each["role"].lower() in SILENT_ROLES)


def plain_text(messages: Iterable[ChatMessage]) -> str:
    """The words alone."""
    return "\n".join(map(message_text, messages))


def transcript(messages: Iterable[ChatMessage]) -> str:
    """The words, and who said them.

    >>> transcript([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}])
    'user: Hi\\nassistant: Hello'
    """
    return "\n".join(turns(messages))


def parse_agent_name(name: str) -> tuple[int, bool] | None:
    """The number in `agentNInput` or `agentNOutput`, and whether it is an output; None for another name.

    >>> parse_agent_name("agent2Output")
    (2, True)
    """
    match = _AGENT.fullmatch(name)
    return (int(match[1]), match[2] == "Output") if match else None


def output_number(name: str, nodes: tuple[Mapping[str, Any], ...]) -> int | None:
    """The number of the node whose output a name means: that with the id before `Output`, else the Nth."""
    agent = parse_agent_name(name)
    if not name.endswith("Output"):
        return None
    by_place = agent[0] if agent and agent[0] <= len(nodes) else None
    return node_ids(nodes).get(name.removesuffix("Output"), by_place)


def substitute(text: str, value_of: Callable[[str], str], bracket_value_of: Callable[[str], str]) -> str:
    """Put values in place of placeholders.

    >>> substitute('{"a": {b}, "c": {{d}}}', lambda name: f"<{name} {{x}}>", str.upper)
    '{"a": <b {x}>, "c": {d}}'
    """

    def put(match: re.Match[str]) -> str:
        if match["literal"]:
            return f"{{{match['literal']}}}"
        return value_of(match["name"]) if match["name"] else bracket_value_of(match["bracketed"])

    return _PLACEHOLDER.sub(put, text)


def placeholder_names(text: str) -> Iterator[str]:
    """The names in braces, in their order, without those in double braces."""
    return (match["name"] for match in _PLACEHOLDER.finditer(text) if match["name"])


def variable_text(value: Any) -> str:
    """A variable of a workflow as prompts show it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def unknown_placeholder(name: str, is_template: bool = False) -> str:
    """What is said of a placeholder that nothing is known of."""
    if is_template:
        return f"{{{{ {name} }}}} has no value; put {{% raw %}} and {{% endraw %}} around braces meant as they are"
    return f"{{{name}}} is no placeholder; write {{{{{name}}}}} if the braces are meant as they are"


def count_problem(key: str, value: Any, least: int = 0) -> str:
    """What is wrong with a whole number, which may be written as text; empty if nothing is."""
    try:
        number = None if isinstance(value, bool | float) else int(value)
    except (TypeError, ValueError):
        number = None
    if number is None:
        return f"{key} must be a whole number, not {show(value)}"
    return "" if number >= least else f"{key} must be {least} or more, not {number}"


class Values:
    """What placeholders stand for in one node of a run."""

    def __init__(self, run: Run, node: Mapping[str, Any], extra: Mapping[str, str]) -> None:
        self.run = run
        self.now: datetime = run.environment.now()
        self._node = node
        self._extra = extra

    def __getitem__(self, name: str) -> str:
        """The value of a name in braces. Raise WorkflowError if there is none."""
        if name in self._extra:
            return self._extra[name]
        if (value := self._of_workflow(name)) is not None:
            return value
        if name in VALUES:
            return VALUES[name](self)
        raise WorkflowError(unknown_placeholder(name))

    def bracketed(self, name: str) -> str:
        """The value of a name in brackets. Raise WorkflowError if there is none."""
        for values in (self._extra, self.run.bracketed):
            if name in values:
                return values[name]
        raise WorkflowError(f"[{name}] has no value here: only prompts that make memories can use it")

    def as_mapping(self) -> dict[str, Any]:
        """All that have a value now, for templates: variables with their types, and the messages of the chat."""
        run = self.run
        outputs = [f"agent{number}Output" for number in run.outputs]
        outputs += [f"{id}Output" for id, number in node_ids(run.workflow.nodes).items() if number in run.outputs]
        inputs = [f"agent{number}Input" for number in range(1, len(run.inputs) + 1)]
        return {
            "messages": [dict(each) for each in run.messages],
            **{name: value(self) for name, value in VALUES.items()},
            **run.workflow.variables,
            **{name: self[name] for name in (*inputs, *outputs)},
            **self._extra,
        }

    def count(self, key: str, default: int) -> int:
        """A number of the node. It may be a text with variables, inputs and outputs, but none of the chat's values."""
        value = self._node.get(key)
        if isinstance(value, str):
            known = {name: self._of_workflow(name) for name in placeholder_names(value)}
            value = substitute(
                value, lambda name: f"{{{name}}}" if (each := known[name]) is None else each, self.bracketed
            )
        if value is None:
            return default
        if problem := count_problem(key, value):
            raise WorkflowError(problem)
        return int(value)

    def last_within(self, tokens: int, least: int) -> Sequence[ChatMessage]:
        """The last messages that fit into so many estimated tokens, and at least so many messages."""
        messages, count, width = conversation(self.run.messages), 0, 0
        for message in reversed(messages):
            width += token_count(message_text(message))
            if width > tokens and count >= least:
                break
            count += 1
        return messages[len(messages) - count :]

    def _of_workflow(self, name: str) -> str | None:
        """A name of what nodes gave and got, or of a variable."""
        run = self.run
        number = output_number(name, run.workflow.nodes)
        if number is not None:
            if number not in run.outputs:
                raise WorkflowError(f"{{{name}}} has no value yet: node {number} has not run before this one")
            return run.outputs[number]
        if agent := parse_agent_name(name):
            number, is_output = agent
            if is_output or number > len(run.inputs):
                count = f"has {len(run.workflow.nodes)} nodes" if is_output else f"got {len(run.inputs)} inputs"
                raise WorkflowError(f"{{{name}}} has no value: the workflow {count}")
            return run.inputs[number - 1]
        return variable_text(run.workflow.variables[name]) if name in run.workflow.variables else None


Value = Callable[[Values], str]


def _last(values: Values, count: int) -> Sequence[ChatMessage]:
    messages = conversation(values.run.messages)
    return messages[max(len(messages) - count, 0) :]


_CHOICES: Final[Mapping[str, Callable[[Values], Sequence[ChatMessage]]]] = {
    **{f"last_{word}": partial(_last, count=count) for word, count in _COUNTS.items()},
    "n_messages": lambda values: _last(values, values.count(COUNT_KEYS[0], _DEFAULT_MESSAGES)),
    "estimated_token_limit": lambda values: values.last_within(values.count(COUNT_KEYS[1], _DEFAULT_TOKENS), 1),
    "min_n_max_tokens": lambda values: values.last_within(
        values.count(COUNT_KEYS[3], _DEFAULT_TOKENS), values.count(COUNT_KEYS[2], _DEFAULT_MESSAGES)
    ),
}


def _of_chat(values: Values, shown: Callable[[Sequence[ChatMessage]], str], name: str) -> str:
    return shown(_CHOICES[name](values))


def _of_date(values: Values, format: str) -> str:
    return values.now.strftime(format)


VALUES: Final[Mapping[str, Value]] = {
    **{f"chat_user_prompt_{name}": partial(_of_chat, shown=plain_text, name=name) for name in _CHOICES},
    **{f"templated_user_prompt_{name}": partial(_of_chat, shown=transcript, name=name) for name in _CHOICES},
    "chat_system_prompt": lambda values: system_text(values.run.messages),
    "Discussion_Id": lambda values: values.run.discussion_id,
    "YYYY_MM_DD": partial(_of_date, format="%Y_%m_%d"),
    "todays_date_pretty": lambda values: f"{values.now:%B} {values.now.day}, {values.now.year}",
    "todays_date_iso": partial(_of_date, format="%Y-%m-%d"),
    "current_time_12h": partial(_of_date, format="%I:%M %p"),
    "current_time_24h": partial(_of_date, format="%H:%M"),
    "current_day_of_week": partial(_of_date, format="%A"),
    "current_day_of_month": lambda values: str(values.now.day),
    "current_month_full": partial(_of_date, format="%B"),
    "time_context_summary": lambda values: values.run.time_context(),
}
"""All of them by name. Besides, there are the variables of the workflow, and what nodes gave and got."""


def render(text: str, values: Values, is_template: bool) -> str:
    """Fill in placeholders."""
    if not is_template:
        return substitute(text, values.__getitem__, values.bracketed)
    # Names in brackets are filled in last, at marks that nobody can guess: what is put in is never read again.
    mark = token_hex(8)
    source = _BRACKETED.sub(lambda match: f"{mark}{match['bracketed']}.", text)
    result = render_template(source, values.as_mapping()) if "{" in source else source
    return re.sub(rf"{mark}(\w+)\.", lambda match: values.bracketed(match[1]), result)


def template_names(source: str) -> set[str]:
    """The names that a template takes from outside. Raise WorkflowError if it is no template."""
    environment = _jinja()
    from jinja2 import TemplateError, meta

    try:
        return meta.find_undeclared_variables(environment.parse(source)) - environment.globals.keys()
    except (TemplateError, RecursionError) as error:
        raise WorkflowError(f"its template failed: {type(error).__name__}: {error}") from error


def render_template(source: str, values: Mapping[str, Any]) -> str:
    """Render a template. Raise WorkflowError if it fails, gets too long, or names something unknown."""
    environment, parts, length = _jinja(), list[str](), 0
    try:
        for part in environment.from_string(source).generate(values):
            length += len(part)
            if length > _MAX_TEMPLATE_CHARACTERS:
                raise WorkflowError(f"its template gives more than {_MAX_TEMPLATE_CHARACTERS:,} characters")
            parts.append(part)
    except WorkflowError:
        raise
    except Exception as error:  # a template may do anything that an expression can
        raise WorkflowError(f"its template failed: {type(error).__name__}: {error}") from error
    return "".join(parts)


@cache
def _jinja() -> SandboxedEnvironment:
    """Templates can use the values they are given and nothing of Python, and can include no files."""
    try:
        from jinja2 import StrictUndefined
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise MissingPackageError("a node with \"jinja2\": true needs Jinja: pip install 'eunoe[discussion]'") from None
    return ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
