"""The types of the TypeScript client, from the OpenAPI document of the server; `make faces` writes them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eunoe.server.app import create_app
from eunoe.server.config import ServerConfig
from eunoe.server.services import Services

TARGET = Path(__file__).parent.parent / "clients" / "typescript" / "src" / "types.ts"
_HEAD = "// Written from the OpenAPI document of the server by `make faces`. Do not edit.\n"
_NAMES = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_PREFIX = "#/components/schemas/"


def openapi_document() -> dict[str, Any]:
    """What a server says of itself."""
    services = Services(ServerConfig(target=":memory:", embedder="none", llm="none", worker=False))
    try:
        return create_app(services).openapi()
    finally:
        asyncio.run(services.close())


def typescript_types(document: dict[str, Any]) -> str:
    """The types of everything that the paths under /v1 take and give."""
    schemas: dict[str, Any] = document["components"]["schemas"]
    paths = {path: item for path, item in document["paths"].items() if path.startswith("/v1/")}
    return _HEAD + "".join(_declaration(name, schemas[name]) for name in sorted(_reachable(paths, schemas)))


def _reachable(paths: Any, schemas: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    open_names = list(_references(paths))
    while open_names:
        name = open_names.pop()
        if name not in found:
            found.add(name)
            open_names += _references(schemas[name])
    return found


def _references(value: Any) -> Iterator[str]:
    yield from re.findall(rf'"\$ref": "{_PREFIX}(\w+)"', json.dumps(value))


def _declaration(name: str, schema: dict[str, Any]) -> str:
    about = _comment(schema.get("description", ""), "")
    if schema.get("type") != "object" or "properties" not in schema:
        return f"\n{about}export type {name} = {_type(schema)};\n"
    return f"\n{about}export interface {name} {_fields(schema, '')}\n"


def _fields(schema: dict[str, Any], indent: str) -> str:
    required = set(schema.get("required", ()))
    lines = [
        _comment(field.get("description", ""), indent + "  ")
        + f"{indent}  {_key(name)}{'' if name in required else '?'}: {_type(field, indent + '  ')};\n"
        for name, field in schema["properties"].items()
    ]
    return "{\n" + "".join(lines) + indent + "}"


def _type(schema: dict[str, Any], indent: str = "") -> str:
    return " | ".join(dict.fromkeys(_options(schema, indent)))


def _options(schema: dict[str, Any], indent: str) -> list[str]:
    """The types that a value may have."""
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return [each for option in options for each in _options(option, indent)]
    if isinstance(kinds := schema.get("type"), list):
        return [each for kind in kinds for each in _options(schema | {"type": kind}, indent)]
    if "enum" in schema:
        return [json.dumps(value) for value in schema["enum"]]
    return [_single_type(schema, indent)]


def _single_type(schema: dict[str, Any], indent: str) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(_PREFIX)
    if "const" in schema:
        return json.dumps(schema["const"])
    if schema.get("type") == "array":
        options = _type(schema.get("items", {}), indent)
        return f"Array<{options}>" if "|" in options else f"{options}[]"
    if schema.get("type") == "object":
        return _fields(schema, indent) if "properties" in schema else _record(schema, indent)
    return _NAMES.get(schema.get("type"), "unknown")


def _record(schema: dict[str, Any], indent: str) -> str:
    values = schema.get("additionalProperties", True)
    return f"Record<string, {_type(values, indent) if isinstance(values, dict) else 'unknown'}>"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else json.dumps(name)


def _comment(text: str, indent: str) -> str:
    said = " ".join(text.replace("*/", "* /").split())
    return f"{indent}/** {said} */\n" if said else ""
