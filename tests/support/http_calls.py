"""One sensible call of every operation, on the memory of one person."""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from tests.verbs import EXAMPLES

from eunoe.memory.verb import VERBS, Verb

TEXT = "Anna keeps a zebra called Quagga."
"""What nobody else may ever see."""
ID = "zebra-1"


class Call(NamedTuple):
    operation: str
    method: str
    path: str
    body: Any = None
    status: int | None = 200
    """None if any will do that the document tells of."""


def calls(scope: str = "user=anna", id: str = ID, mem0_id: str = "x") -> list[Call]:
    """The order matters: what is read comes first, what is taken away last. A verb that is not named here is called as
    its example in `tests/verbs.py` says."""
    owner, one = quote(scope, safe=""), f"/v1/memories/{quote(id, safe='')}"
    messages = [{"role": "user", "content": "My sister lives in Turin."}]
    named = [
        Call("live", "GET", "/healthz"),
        Call("ready", "GET", "/readyz"),
        Call("identity", "GET", f"/v1/identity?nonce={'0' * 32}"),
        Call("status", "GET", "/v1/status"),
        Call("list", "GET", f"/v1/memories?scope={owner}&limit=10&kinds=fact&kinds=message"),
        Call("get", "GET", f"{one}?scope={owner}"),
        Call("history", "GET", f"{one}/history?scope={owner}"),
        Call("recall", "POST", "/v1/recall", {"scope": scope, "query": "zebra"}),
        Call("context", "POST", "/v1/context", {"scope": scope, "message": "What is the zebra called?"}),
        Call("look_up", "POST", "/v1/look-up", {"scope": scope, "query": ["zebra"]}),
        Call("get_many", "POST", "/v1/by-ids", {"scope": scope, "ids": [id, "nobody"]}),
        Call("by_files", "POST", "/v1/by-files", {"scope": scope, "paths": ["zoo/"]}),
        Call("admin_access_counts", "POST", "/v1/access-counts", {"scope": scope, "ids": [id]}),
        Call("scopes", "GET", "/v1/scopes?user=anna"),
        Call("streams_list", "GET", "/v1/streams?limit=1"),
        Call("streams_presets", "GET", "/v1/presets"),
        Call("summaries_revisions", "GET", f"/v1/revisions?scope={owner}"),
        Call("compare_revisions", "GET", f"/v1/revisions/compare?scope={owner}&old=1&new=2"),
        Call("corrections_list", "GET", f"/v1/corrections?scope={owner}"),
        Call("graph_neighbours", "GET", f"/v1/graph?scope={owner}"),
        Call("graph_size", "GET", f"/v1/graph/size?scope={owner}"),
        Call("recent", "GET", "/v1/recent?limit=10&user=anna"),
        Call("admin_calls", "GET", "/v1/calls"),
        Call("export", "GET", f"/v1/export?scope={owner}"),
        Call("mem0_get_all", "GET", "/compat/mem0/memories?user_id=anna"),
        Call("mem0_get", "GET", f"/compat/mem0/memories/{mem0_id}"),
        Call("mem0_history", "GET", f"/compat/mem0/memories/{mem0_id}/history"),
        Call("mem0_search", "POST", "/compat/mem0/search", {"query": "zebra", "filters": {"user_id": "anna"}}),
        Call("mem0_entities", "GET", "/compat/mem0/entities"),
        Call("retrieve_documents", "POST", "/api/projects/p1/memory/retrieve", {"queries": ["zebra"]}),
        Call("preview", "POST", "/v1/extract", {"scope": scope, "messages": "I moved to Rome."}),
        Call("admin_test_llm", "POST", "/v1/models/test", {}, 409),
        Call("observe", "POST", "/v1/messages", {"scope": scope, "messages": messages}),
        Call("remember_many", "POST", "/v1/memories", {"scope": scope, "items": ["Anna likes tea."]}),
        Call("expire", "POST", "/v1/expire", {"scope": scope, "ids": [id], "at": None}),
        Call("retract", "POST", "/v1/retract", {"scope": scope, "ids": [id]}, 422),
        Call("pin", "POST", f"{one}/pin", {"scope": scope}),
        Call("update", "PATCH", one, {"scope": scope, "label": "animals"}),
        Call("streams_unarchive", "POST", f"{one}/unarchive", {"scope": scope}, 409),
        Call("corrections_add", "POST", "/v1/corrections", {"scope": scope, "id": id, "verdict": "keep"}, 409),
        Call("corrections_remove", "POST", "/v1/corrections/nothing/remove", {"scope": scope}, 404),
        Call("review", "POST", "/v1/review", {"scope": scope, "ids": [id]}, 409),
        Call("streams_configure", "PATCH", "/v1/streams", {"scope": scope, "settings": {"keep_best": 50}}),
        Call("streams_set_preset", "PUT", "/v1/presets/team", {"like": "user", "settings": {"owner": ["team"]}}),
        Call("summaries_write", "POST", "/v1/revisions", {"scope": scope, "text": "Anna likes tea."}),
        Call("summaries_restore", "POST", "/v1/revisions/1/restore", {"scope": scope}),
        Call("summaries_consolidate", "POST", "/v1/consolidate", {"scope": scope}),
        Call("form", "POST", "/v1/form", {"scope": scope}),
        Call("flush", "POST", "/v1/flush", {"timeout": 5}),
        Call("admin_process_cold_sessions", "POST", "/v1/cold-sessions", {"idle": 0}),
        Call("graph_extract", "POST", "/v1/graph/extract", {"scope": scope, "ask": False}),
        Call("streams_apply_retention", "POST", "/v1/retention", {"scope": scope, "dry_run": True}),
        Call("streams_set_incognito", "POST", "/v1/incognito", {"scope": "session=private/user=anna"}),
        Call("admin_reindex", "POST", "/v1/reindex", {"scope": scope}),
        Call("admin_check", "POST", "/v1/check", {}),
        Call("backup", "POST", "/v1/backup", {"name": "one.db"}),
        Call("admin_reembed", "POST", "/v1/reembed", {}, 409),
        Call("import_", "POST", "/v1/import", '{"eunoe": 2}\n'),
        Call("index_documents", "POST", "/api/projects/p1/memory/index", {"docs": ["Tea is hot."]}),
        Call("delete_documents", "POST", "/api/projects/p1/memory/delete", {"docs": [TEXT]}),
        Call("mem0_add", "POST", "/compat/mem0/memories", {"messages": "I like tea.", "user_id": "anna"}),
        Call("mem0_update", "PUT", f"/compat/mem0/memories/{mem0_id}", {"text": "Anna likes tea."}),
        Call("mem0_configure", "POST", "/compat/mem0/configure", {}, 409),
        Call("mem0_delete", "DELETE", f"/compat/mem0/memories/{mem0_id}"),
        Call("forget", "POST", "/v1/forget", {"scope": scope, "ids": [id], "verify": True}),
        Call("mem0_delete_all", "DELETE", "/compat/mem0/memories?user_id=anna"),
        Call("mem0_delete_entity", "DELETE", "/compat/mem0/entities/user/anna"),
        Call("mem0_reset", "POST", "/compat/mem0/reset", {}),
    ]
    known = {call.operation for call in named}
    others = [_example_call(verb, scope) for verb in VERBS.values() if verb.route and verb.step not in known]
    return [*others, *named]


def _example_call(verb: Verb, scope: str) -> Call:
    given = {name: scope if name == "scope" else value for name, value in EXAMPLES[verb.name].items()}
    method, _, path = verb.route.partition(" ")
    for name in re.findall(r"{(\w+)}", path):
        path = path.replace(f"{{{name}}}", quote(str(given.pop(name)), safe=""))
    if method != "GET":
        return Call(verb.step, method, path, given, None)
    texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in given.items()}
    return Call(verb.step, method, f"{path}?{urlencode(texts, doseq=True)}", None, None)
