"""One example of each noun, for the OpenAPI document."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from eunoe.model.atom import Atom
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
    ImportReport,
    Link,
    LlmReport,
    Mention,
    ModelCall,
    Neighbourhood,
    Reason,
    Receipt,
    Relation,
    RetentionReport,
)
from eunoe.model.scope import Scope
from eunoe.model.stream import Revision, Settings, Stream

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
