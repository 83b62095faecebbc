"""The verbs over HTTP: a route for each, the model of what it takes, and the shape of what it answers.

All of it follows from how the verb is declared. Written by hand are only those that a request does in another way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from inspect import Parameter, Signature
from pathlib import Path
from string import Formatter
from types import NoneType
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field, ValidationError, ValidatorFunctionWrapHandler, WithJsonSchema, WrapValidator
from pydantic import create_model as make_model
from pydantic_core import PydanticCustomError
from starlette.responses import Response

from eunoe.errors import EmbedderError, InputError, LlmError
from eunoe.memory.verb import VERBS, Argument, ArgumentKind, Verb
from eunoe.model.arguments import RecipeName, show, utc_now
from eunoe.model.json import hits_value
from eunoe.model.result import BackupReport, Hits
from eunoe.recall.recipes import MAX_BUDGET_MS
from eunoe.recall.request import find_recipe
from eunoe.server.access import Caller
from eunoe.server.openapi import answers, json_type, model_of
from eunoe.server.problems import NoEmbedderError, NoLlmError
from eunoe.server.requests import (
    Body,
    CallerParam,
    Fields,
    IdParam,
    MessageField,
    ModelField,
    OnceParam,
    ScopeField,
    ScopesField,
    ScopeText,
    ServicesParam,
    TimeField,
    json_router,
    reply,
)

_FLUSH_SECONDS: Final = 30.0
_BACKUP_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_PROBLEMS: Final = (404, 409, 502, 507)
"""That any verb may have beside the common ones."""
_MILLISECONDS: Final = "`thorough`, as far as it gets in so many milliseconds of reading."


def _check_recipe(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    """Speak of names and of milliseconds: of a union Pydantic names the first part alone."""
    try:
        return check(value)
    except ValidationError:
        try:
            find_recipe(value)
        except InputError as error:
            raise PydanticCustomError("recipe", "{reason}", {"reason": str(error)}) from None
        raise


RecipeField = Annotated[
    RecipeName | Annotated[int, Field(strict=True, ge=1, le=MAX_BUDGET_MS, description=_MILLISECONDS)],
    WrapValidator(_check_recipe),
]
_TYPES: Final[dict[ArgumentKind, Any]] = {
    "scope": ScopeField,
    "scopes": ScopesField,
    "time": TimeField,
    "text": str,
    "texts": str | list[str],
    "flag": bool,
    "count": int,
    "number": float,
    "messages": MessageField | list[MessageField],
    "mapping": dict[str, Any],
    "recipe": RecipeField,
    "vector": list[float],
    "vectors": list[float] | list[list[float]],
    "other": ModelField,  # the one verb that takes a model by any name
}
"""What a body has for arguments of each kind. A verb checks them, as it does for every caller."""
_QUERY_TYPES: Final[dict[ArgumentKind, Any]] = {"scope": ScopeText, "time": str, "texts": list[str], "mapping": str}
"""Where a query has something else: texts alone."""
_EXAMPLES: Final[dict[str, Any]] = {
    "ids": ["b1946ac9"],
    "id": "b1946ac9",
    "items": ["Anna is allergic to peanuts."],
    "messages": [{"role": "user", "content": "My dog is called Bruno."}],
    "query": "What is the name of the dog?",
    "text": "Anna lives in Rome.",
    "message": "What shall I cook tonight?",
    "paths": ["src/app.py", "docs/"],
    "where": {"team": "red"},
    "within": "agent=cook/*",
    "model": "static",
    "settings": {"consolidation_trigger": 8},
}
"""By the names of arguments."""

router = APIRouter()


def body_of(verb: Verb) -> type[Body]:
    """The model of what a request for a verb has in its body."""
    fields = {each.name: _field(each, _body_type(each)) for each in _arguments(verb)}
    if verb.settings:
        fields["settings"] = (dict[str, Any], Field({}, examples=[_EXAMPLES["settings"]]))
    return make_model(f"{_title(verb)}Body", __base__=(Body,), **fields | _page_fields(verb))


def _query_of(verb: Verb) -> Any:
    """The model of its query. Keys of any name may stand there too, where it takes such."""
    fields = {each.name: _field(each, _QUERY_TYPES.get(each.kind) or _plain_type(each)) for each in _arguments(verb)}
    base = _Keys if verb.keywords else Fields
    return Annotated[make_model(f"{_title(verb)}Query", __base__=base, **fields | _page_fields(verb)), Query()]


class _Keys(Fields):
    """Keys that scopes are to have, such as `?user=anna`, beside the fields that are named."""

    model_config = {"extra": "allow"}


def _arguments(verb: Verb) -> list[Argument]:
    """What stands neither in the path nor, as a lease, in another process."""
    return [each for each in verb.arguments.values() if each.name not in _path_names(verb) and each.kind != "lease"]


def _field(argument: Argument, type: Any) -> Any:
    example = _EXAMPLES.get(argument.name)
    if type is str and not isinstance(example, str | None):
        example = json.dumps(example)
    about: dict[str, Any] = {"description": argument.help or None, "examples": None if example is None else [example]}
    if argument.is_required:
        return (type | None if argument.may_be_none else type), Field(**about)
    if argument.may_be_none:
        return type | None, Field(argument.default, **about)
    if argument.default is None:  # a field that an update leaves as it is
        return type, Field(default_factory=NoneType, **about)
    return type, Field(list(argument.default) if isinstance(argument.default, tuple) else argument.default, **about)


def _body_type(argument: Argument) -> Any:
    if argument.kind == "items":
        return list[ItemField]
    if argument.kind == "choices":
        return _choice(argument) | list[_choice(argument)]  # type: ignore[misc]
    return _plain_type(argument)


def _plain_type(argument: Argument) -> Any:
    if argument.kind in ("choice", "choices"):
        return _choice(argument) if argument.kind == "choice" else list[_choice(argument)]  # type: ignore[misc]
    return _TYPES[argument.kind]


def _choice(argument: Argument) -> Any:
    return Literal[argument.choices]


def _page_fields(verb: Verb) -> dict[str, Any]:
    if not verb.paged:
        return {}
    after = Field("", description="The `next` of the page before.")
    return {"limit": (int | None, Field(None, ge=1, description="At most so many.")), "after": (str, after)}


def _item_schema() -> dict[str, Any]:
    """What `remember` takes, as one item of many."""
    verb, batch = VERBS["remember"], VERBS["remember_many"].arguments
    fields = {name: _field(each, _body_type(each)) for name, each in verb.arguments.items() if name not in batch}
    return make_model("NewMemory", __base__=(Body,), **fields).model_json_schema()


ItemField = Annotated[
    str | dict[str, Any],
    WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, _item_schema()]}),
]
"""A text, or an object of what is known of a memory. The memory checks it; here it is only described."""


class Done(BaseModel):
    """It is done; there is nothing to tell."""

    done: bool


def _answer_model(verb: Verb) -> Any:
    if verb.returns is NoneType:
        return Done
    if not verb.answer:
        return json_type(verb.returns)
    more: dict[str, Any] = {"next": (str, Field(description="Pass it as `after`; empty if there is no more."))}
    shape: dict[str, Any] = {verb.answer: (json_type(verb.returns), ...)}
    return make_model(f"{_title(verb)}Reply", __doc__=verb.summary, **shape | (more if verb.paged else {}))


def _add_route(verb: Verb) -> None:
    method, _, path = verb.route.partition(" ")

    async def answer(caller: Caller, once: Any = None, given: Fields | None = None, **named: Any) -> Response:
        wanted, page = _read(verb, given)

        async def work() -> Any:
            return _answer(verb, await _call(caller, verb, named | wanted), page)

        return await once(work) if once else reply(await work())

    annotations: dict[str, Any] = {name: _path_type(verb, name) for name in _path_names(verb)}
    if method == "GET":
        annotations["given"] = _query_of(verb)
    elif _arguments(verb):
        annotations["given"] = body_of(verb)
    annotations |= {"caller": CallerParam} | ({"once": OnceParam} if verb.keyed else {})
    parameters = [Parameter(name, Parameter.KEYWORD_ONLY, annotation=each) for name, each in annotations.items()]
    answer.__name__ = verb.step
    answer.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    _ROUTERS.setdefault(verb.group, json_router(verb.group or "memory")).add_api_route(
        path.removeprefix("/v1"),
        answer,
        methods=[method],
        summary=verb.summary.rstrip("."),
        description=verb.about or verb.summary,
        responses=answers(_answer_model(verb), *_PROBLEMS),
    )


def _read(verb: Verb, given: Fields | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments that a request has, as the verb takes them, and what it says of a page."""
    wanted = given.given() if given else {}
    page: dict[str, Any] = {name: wanted.pop(name) for name in ("limit", "after") if verb.paged and name in wanted}
    for name, value in wanted.items():
        if name in verb.arguments and verb.arguments[name].kind == "mapping" and isinstance(value, str):
            wanted[name] = _read_mapping(name, value)
    settings = wanted.pop("settings", {}) if verb.settings else {}
    if doubled := settings.keys() & verb.arguments.keys():
        raise InputError(f"{', '.join(doubled)} is not a setting: it stands beside `settings`")
    return wanted | settings, page


def _read_mapping(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise InputError(f"{name} is {show(text)}: it must be a JSON object") from None


async def _call(caller: Caller, verb: Verb, arguments: Mapping[str, Any]) -> Any:
    face: Any = caller.async_memory
    group = getattr(face, verb.group) if verb.group else face
    try:
        return await getattr(group, verb.function.__name__)(**arguments)
    except LlmError as error:
        if caller.memory.llm is None:
            raise NoLlmError(str(error)) from None
        raise
    except EmbedderError as error:
        if caller.memory.embedder is None and not arguments.get("model"):
            raise NoEmbedderError(str(error)) from None
        raise


def _answer(verb: Verb, result: Any, page: Mapping[str, Any]) -> Any:
    if verb.paged:
        return _page_of(verb.answer, result, **page)
    if isinstance(result, Hits):
        return hits_value(result)
    return {verb.answer: result} if verb.answer else {"done": True} if result is None else result


def _page_of(name: str, items: Sequence[Any], limit: int | None = None, after: str = "") -> dict[str, Any]:
    """A part of a list that is at hand as a whole. The cursor is what tells an item apart from the others."""
    start = 0
    if after and not (start := next((place for place, item in enumerate(items, 1) if _mark(item) == after), 0)):
        raise InputError(f"cannot read on after {show(after)}: it is not there any more, start anew")
    end = len(items) if limit is None else start + limit
    shown = items[start:end]
    return {name: shown, "next": _mark(shown[-1]) if shown and end < len(items) else ""}


def _mark(item: Any) -> str:
    """The id of an atom, the number of a revision, the scope of a stream; a scope itself."""
    return str(next((getattr(item, name) for name in ("id", "number", "scope") if hasattr(item, name)), item))


def _path_names(verb: Verb) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(verb.route) if name]


def _path_type(verb: Verb, name: str) -> Any:
    return int if verb.arguments[name].kind == "count" else IdParam


def _title(verb: Verb) -> str:
    return verb.step.title().replace("_", "")


_ROUTERS: dict[str, APIRouter] = {}
for _verb in VERBS.values():
    if _verb.route:
        _add_route(_verb)

_by_hand = json_router("upkeep")


class FlushBody(Body):
    timeout: float | None = Field(None, ge=0, le=300, description="Seconds; 30 if none are given.")


class Flushed(BaseModel):
    """Whether the background has nothing left to do."""

    flushed: bool


class BackupBody(Body):
    name: str = Field("", description="A file name; made from the time if none is given.", examples=["weekly.db"])


@_by_hand.post("/flush", summary="Wait for the background", responses=answers(Flushed))
async def flush(body: FlushBody, caller: CallerParam) -> Response:
    """Until it has nothing left to do, or the time is over."""
    seconds = _FLUSH_SECONDS if body.timeout is None else body.timeout
    return reply({"flushed": await caller.async_memory.flush(seconds)})


@_by_hand.post("/backup", summary="Copy the whole store", responses=answers(model_of(BackupReport), 507))
async def backup(body: BackupBody, caller: CallerParam, services: ServicesParam) -> Response:
    """Into the folder `backups` beside the store, while it is in use; then the copy is read. `eunoe restore` brings it
    back."""
    name = body.name or f"memory-{utc_now():%Y%m%d-%H%M%S-%f}.db"
    if not _BACKUP_NAME.fullmatch(name):
        raise InputError("name must be a file name of letters, digits and . _ - only, without a folder")
    caller.memory.guard.allow_store("admin")
    folder = Path(services.files.state).parent / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    return reply(await caller.async_memory.admin.backup(folder / name))


ROUTERS: Final = (*_ROUTERS.values(), _by_hand)
"""Below `/v1`."""
