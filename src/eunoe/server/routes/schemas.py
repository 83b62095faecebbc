"""The shapes of replies for the OpenAPI document, taken from the nouns themselves. Nothing is checked against them at
run time: a reply is ready-made JSON."""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import textwrap
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from eunoe.model.atom import Atom
from eunoe.model.message import Message
from eunoe.model.result import Hit, Reason, Receipt
from eunoe.model.scope import Scope

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
            _json_type(hints[name]),
            Field(alias=name, description=about.get(name)),
        )
        for name in names
    }
    if noun is Message:
        shape["kind"] = (Literal["message"], Field())
    return create_model(noun.__name__, __doc__=inspect.cleandoc(noun.__doc__ or "").partition("\n")[0], **shape)


def _json_type(hint: Any) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Scope:
        return str
    if hint is Hit:
        return HIT
    if hasattr(hint, "__dataclass_fields__") or hasattr(hint, "_fields"):
        return model_of(hint)
    if origin in (Union, types.UnionType):
        return functools.reduce(operator.or_, map(_json_type, inner))
    if origin is tuple:  # of one type throughout
        return list[_json_type(inner[0])]  # type: ignore[misc]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, _json_type(inner[1])]  # type: ignore[misc]
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


ATOM: Any = model_of(Atom)
MESSAGE: Any = model_of(Message)
ITEM: Any = ATOM | MESSAGE
HIT: Any = _hit_model(Atom) | _hit_model(Message)


RECEIPT: Any = model_of(Receipt)


class Receipts(BaseModel):
    """What a write did, item by item."""

    receipts: list[RECEIPT]


class Items(BaseModel):
    """Memories, a page of them."""

    items: list[ATOM]
    next: str


class AnyItems(BaseModel):
    """Messages and memories."""

    items: list[ITEM]


class ItemPage(BaseModel):
    """A part of a longer list; pass `next` as `after` to read on. Empty `next` means there is no more."""

    items: list[ITEM]
    next: str
    notes: list[str]


class Versions(BaseModel):
    """All versions of a memory, oldest first."""

    versions: list[ATOM]


class Hits(BaseModel):
    """What was found, best first, and hints such as a near scope that holds something."""

    hits: list[HIT]
    notes: list[str]
