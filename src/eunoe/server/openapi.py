"""The OpenAPI document: what FastAPI knows of the routes, and what all of them have in common."""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import textwrap
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.json_schema import models_json_schema

from eunoe.model.atom import Atom, Item
from eunoe.model.json import json_value
from eunoe.model.message import Message
from eunoe.model.result import (
    BackupReport,
    CheckReport,
    Context,
    Entity,
    ForgetReport,
    FormReport,
    GraphReport,
    GraphSize,
    Hit,
    Hits,
    ImportReport,
    Link,
    LlmReport,
    Mention,
    ModelCall,
    Neighbourhood,
    Page,
    Reason,
    Receipt,
    Relation,
    RetentionReport,
)
from eunoe.model.scope import Scope
from eunoe.model.stream import Revision, Settings, Stream
from eunoe.server.middleware import is_public

PROBLEM: Final = "Problem"
_PROBLEMS: Final[Mapping[int, str]] = {
    400: "The request cannot be read.",
    401: "No key, or one that is not valid.",
    403: "The key lacks a right or a scope, or the request comes from elsewhere.",
    404: "There is no such thing in this scope.",
    408: "The body did not come in time.",
    409: "It changed since it was read, or another request is at it.",
    413: "The body is too long.",
    422: "A value cannot be taken as it is.",
    429: "Too many requests.",
    500: "The server failed.",
    502: "A model that was asked failed.",
    503: "Busy or stopping: try again.",
    507: "No room on the disk.",
}
COMMON_PROBLEMS: Final = (400, 401, 403, 413, 422, 429, 500, 503)


def answers(model: Any, *problems: int, status: int = 200, description: str = "Done.") -> dict[int | str, Any]:
    """The `responses` of a route: what it replies, and the problems that it may have beside the common ones."""
    told: dict[int | str, Any] = {each: problem_answer(each) for each in problems}
    return {status: {"model": model, "description": description}} | told


def problem_answer(status: int) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{PROBLEM}"}
    return {"description": _PROBLEMS[status], "content": {"application/problem+json": {"schema": schema}}}


@functools.cache
def model_of(noun: Any) -> Any:
    """The model of a dataclass or a named tuple as JSON has it: every field is there, scopes are text."""
    hints = get_type_hints(noun)
    names = [field.name for field in fields(noun)] if is_dataclass(noun) else noun._fields
    about = _field_descriptions(noun)
    shape: dict[str, Any] = {
        f"{name}_" if hasattr(BaseModel, name) else name: (
            json_type(hints[name]),
            Field(alias=name, description=about.get(name)),
        )
        for name in names
    }
    if noun is Message:
        shape["kind"] = (Literal["message"], Field())
    return create_model(noun.__name__, __doc__=inspect.cleandoc(noun.__doc__ or "").partition("\n")[0], **shape)


def json_type(hint: Any) -> Any:
    """The type that a value of another type has as JSON."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Hits:
        return HITS
    if origin is Page:
        return _page_model(*inner)
    if hint is Scope:
        return str
    if hint is Hit:
        return HIT
    if hasattr(hint, "__dataclass_fields__") or hasattr(hint, "_fields"):
        return model_of(hint)
    if origin in (Union, types.UnionType):
        return functools.reduce(operator.or_, map(json_type, inner))
    if origin in (tuple, list):  # of one type throughout
        return list[json_type(inner[0])]  # type: ignore[misc]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, json_type(inner[1])]  # type: ignore[misc]
    return hint


def _field_descriptions(noun: Any) -> dict[str, str]:
    """The text below each field of a class."""
    body = ast.parse(textwrap.dedent(inspect.getsource(noun))).body[0].body  # type: ignore[attr-defined]
    return {
        field.target.id: " ".join(about.value.value.split())
        for field, about in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(about, ast.Expr)
        and isinstance(about.value, ast.Constant)
        and isinstance(about.value.value, str)
    }


def _hit_model(noun: Any) -> Any:
    """A hit is its item, with how well it fits."""
    rank: Any = {
        "score": (float, Field(description="From 0 to 1.")),
        "reasons": (list[model_of(Reason)], Field(description="What spoke for it, the most important first.")),  # type: ignore[misc]
        "source": (list[str], Field(description="Ids of the messages it rests on: its own for a message.")),
    }
    return create_model(f"{noun.__name__}Hit", __base__=model_of(noun), **rank)


@functools.cache
def _page_model(noun: Any) -> Any:
    """A part of a longer list."""
    name = "Item" if noun == Item else noun.__name__
    end = Field(description="Pass it as `after` to read on; empty if there is no more.")
    shape: dict[str, Any] = {"items": (list[json_type(noun)], ...), "next": (str, end), "notes": (list[str], ...)}  # type: ignore[misc]
    return create_model(f"{name}Page", __doc__="A part of a longer list.", **shape)


class Problem(BaseModel):
    """What is wrong, and what to do (RFC 9457)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:eunoe:problem:not_found",
                    "title": "Not found",
                    "status": 404,
                    "code": "not_found",
                    "detail": "there is no 'b1946ac9' in user=anna",
                    "hint": "Check the id and the scope.",
                }
            ]
        }
    )

    type: str
    title: str
    status: int
    code: str = Field(description="What a program branches on.")
    detail: str = Field(description="What is wrong, in words.")
    hint: str = Field(description="What to do about it.")
    request_id: str = Field("", description="By which the server's log knows the request.")


HIT: Any = _hit_model(Atom) | _hit_model(Message)


HITS: Any = create_model(
    "Hits",
    __doc__="What was found, best first, and hints such as a near scope that holds something.",
    hits=(list[HIT], ...),
    notes=(list[str], ...),
)


_TIME: Final = datetime(2026, 5, 7, 18, 30, tzinfo=UTC)
_ANNA: Final = Scope(user="anna")
_ATOM: Final = "b1946ac92492d234"
_MESSAGE: Final = "591785b794601e21"
_TEXT: Final = "Anna is allergic to peanuts."
_SETTINGS: Final = Settings(owner=("user",))
_SUMMARY: Final = "Anna lives in Rome with her dog Bruno."

_NOUNS: Final = (
    Atom(text=_TEXT, id=_ATOM, source=(_MESSAGE,), scope=_ANNA, recorded=_TIME),
    Message(text="I am allergic to peanuts.", role="user", id=_MESSAGE, scope=_ANNA, position=0, recorded=_TIME),
    Receipt("stored", _ATOM),
    Reason("lexical", 0.6, "peanuts"),
    Context(f"<MemoryContext>\n- {_TEXT}\n</MemoryContext>", 14, query="peanuts"),
    ForgetReport(atoms=(_ATOM,), vectors=1, removed={_ANNA: (_ATOM,)}, verified=True),
    FormReport(messages=2, stored=(_ATOM,)),
    GraphReport(passages=3, entities=5, triples=2),
    ImportReport(stored=120, duplicates=3),
    RetentionReport(archived=((_ATOM, "older than 90 days"),), kept=41),
    BackupReport("/var/lib/eunoe/backups/weekly.db", 1_048_576, 3, 240, 80, 12),
    CheckReport(1234),
    ModelCall("extract", "openai:gpt-5-mini", _TIME, _ANNA, 1.2, 840, 96, 0.0004),
    LlmReport("openai:gpt-5-mini", seconds=0.4, input_tokens=12, output_tokens=1),
    Entity("anna", "Anna", 3, 2.5),
    Link("anna", "bruno", 2.0),
    Relation("anna", "feeds", "bruno", 1),
    GraphSize(passages=12, entities=9, mentions=30, triples=4),
    Mention(_ATOM, "fact", _TEXT, True, ("anna",)),
    Neighbourhood("anna", (Entity("anna", "Anna", 3, 2.5),), (), (Mention(_ATOM, "fact", _TEXT, True, ("anna",)),)),
    _SETTINGS,
    Stream(_ANNA, "user", _SETTINGS, version=7, revision=1, summary=_SUMMARY, facts=12, updated=_TIME),
    Revision(1, _SUMMARY, absorbed=(_ATOM,), author="hand", recorded=_TIME, current=True),
)

EXAMPLES: Final[dict[str, Any]] = {type(noun).__name__: json_value(noun) for noun in _NOUNS}
"""By the name of the schema."""
_RANK: Final = {"score": 0.82, "reasons": [EXAMPLES["Reason"]], "source": [_MESSAGE]}
EXAMPLES.update({f"{noun}Hit": EXAMPLES[noun] | _RANK for noun in ("Atom", "Message")})


def example_of(schema: dict[str, Any], schemas: dict[str, Any]) -> Any:
    """An example of a schema, put together out of those of its parts."""
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    for name in ("examples", "enum", "oneOf", "anyOf", "allOf"):
        if schema.get(name):
            first = schema[name][0]
            return first if name in ("examples", "enum") else example_of(first, schemas)
    for name in ("example", "const", "default"):
        if name in schema:
            return schema[name]
    return _plain_example(schema, schemas)


def _plain_example(schema: dict[str, Any], schemas: dict[str, Any]) -> Any:
    kind = schema.get("type")
    if kind == "object":
        properties, required = schema.get("properties", {}), schema.get("required", ())
        return {
            name: example_of(each, schemas)
            for name, each in properties.items()
            if name in required or {"example", "examples"} & each.keys()
        }
    if kind == "array":
        return [example_of(schema["items"], schemas)] if schema.get("items") else []
    return {"string": "", "integer": schema.get("minimum", 0), "number": 0.5, "boolean": True}.get(str(kind))


_SECURITY: Final = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key, or the owner's token."},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same."},
}
_TAGS: Final = {
    "memory": "The everyday verbs: what is kept, recalled, corrected and forgotten.",
    "streams": "Streams and their settings, clean-up, incognito sessions.",
    "summaries": "Summaries and their revisions.",
    "corrections": "What people say of what was learned, and what counts from then on.",
    "graph": "Entities and how they are tied.",
    "admin": "The store as a whole, and the language model.",
    "upkeep": "Waiting for the background, and backups.",
    "transfer": "Export and import.",
    "keys": "Who may call, and what they may do.",
    "audit": "Who changed what.",
    "session": "The login of the inspector.",
    "jobs": "What runs behind the replies.",
    "events": "What is learned, as it is learned.",
    "webhooks": "The same, sent to an address of yours.",
    "health": "Whether it is alive, ready, and how it stands.",
    "projects": "Documents of projects.",
    "mem0": "The paths of mem0.",
    "chat": "A model that remembers, as OpenAI's clients call it.",
}


def operation_id(route: APIRoute) -> str:
    """The name of the route's function: a good name for a method of a client."""
    return route.name


def describe(app: FastAPI) -> None:
    """Complete the document that the application gives of itself."""
    build = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(build())
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    _, problem = models_json_schema([(Problem, "serialization")], ref_template="#/components/schemas/{model}")
    schemas[PROBLEM] = problem["$defs"][PROBLEM]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for name in EXAMPLES.keys() & schemas.keys():  # FastAPI would drop what is null in them
        schemas[name]["examples"] = [EXAMPLES[name]]
    document["components"]["securitySchemes"] = _SECURITY
    document["tags"] = [{"name": name, "description": about} for name, about in _TAGS.items()]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            _complete_operation(path, method.upper(), operation)
            _add_examples(operation, schemas)
    return document


def _add_examples(operation: dict[str, Any], schemas: dict[str, Any]) -> None:
    answers = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
    for place in (operation.get("requestBody", {}), *answers):
        content = place.get("content", {}).get("application/json")
        if content and "example" not in content:
            content["example"] = example_of(content["schema"], schemas)


def _complete_operation(path: str, method: str, operation: dict[str, Any]) -> None:
    responses: dict[str, Any] = operation["responses"]
    statuses = [status for status in COMMON_PROBLEMS if status != 401 or not is_public(path, method)]
    if "ref" in str(responses.get("422", "")) and "problem" not in str(responses["422"]):
        del responses["422"]  # FastAPI's own shape, which no reply has
    statuses += [404] * ("{" in path) + [409] * (method != "GET")
    for status in statuses:
        responses.setdefault(str(status), problem_answer(status))
    operation["responses"] = dict(sorted(responses.items()))
    if not is_public(path, method):
        operation["security"] = [{name: []} for name in _SECURITY]
