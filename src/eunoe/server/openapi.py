"""The OpenAPI document: what FastAPI knows of the routes, and what all of them have in common."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema

from eunoe.server.middleware import is_public
from eunoe.server.schemas import COMMON_PROBLEMS, EXAMPLES, PROBLEM, Problem, example_of, problem_answer

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
