"""mem0's verbs: what they take, what they give, and what they refuse."""

from __future__ import annotations

import hashlib
import json
import logging
import sys
import types
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import eunoe
from eunoe.errors import EunoeError, NotFoundError
from eunoe.hosts.mem0 import Memory, ValidationError
from eunoe.llm import Prompt
from eunoe.llm.contract import ScriptedLlm

ANNA = {"user_id": "anna"}


def keep(memory: Memory, text: str, **more: Any) -> str:
    """Adds a text word for word; returns its id."""
    (added,) = memory.add(text, **{**({} if {"agent_id", "run_id"} & more.keys() else ANNA), **more}, infer=False)[
        "results"
    ]
    return str(added["id"])


def texts(results: dict[str, Any]) -> list[str]:
    return [each["memory"] for each in results["results"]]


def test_a_memory_is_given_back_in_the_shape_that_programs_read(memory: Memory) -> None:
    id = keep(
        memory,
        "I moved to Rome.",
        run_id="r1",
        user_id="anna",
        metadata={"topic": "home"},
        expiration_date="2099-01-01",
    )
    item = memory.get(id)
    assert item is not None
    assert item.pop("created_at") == item.pop("updated_at")
    assert item == {
        "id": id,
        "memory": "I moved to Rome.",
        "hash": hashlib.md5(b"I moved to Rome.").hexdigest(),
        "metadata": {"topic": "home"},
        "score": None,
        "user_id": "anna",
        "run_id": "r1",
        "role": "user",
        "expiration_date": "2099-01-01",
    }
    (listed,) = memory.get_all(filters=ANNA)["results"]
    assert listed.keys() == {*item, "created_at", "updated_at"} - {"score"}
    (hit,) = memory.search("Rome", filters=ANNA, explain=True)["results"]
    assert hit["score_details"]["final_score"] == hit["score"] > 0.1
    assert {"semantic_score", "bm25_score", "entity_boost", "threshold"} <= hit["score_details"].keys()


def test_messages_are_kept_word_for_word_one_memory_each(memory: Memory) -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "I like tea.", "name": "Ann"},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "assistant", "content": [{"type": "text", "text": "Noted:"}, {"type": "text", "text": "tea."}]},
        {"role": "user", "content": {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}},
        {"role": "user", "content": "I like tea."},
    ]
    results = memory.add(messages, **ANNA, infer=False)["results"]
    assert [(each["memory"], each["event"], each["actor_id"], each["role"]) for each in results] == [
        ("I like tea.", "ADD", "Ann", "user"),
        ("Noted: tea.", "ADD", None, "assistant"),
        ("I like tea.", "ADD", None, "user"),
    ]
    assert len({each["id"] for each in results}) == 3
    assert len(memory.get_all(filters={**ANNA, "actor_id": "Ann"})["results"]) == 1


def test_what_is_said_is_learned_by_rules_once(dense_memory: Memory) -> None:
    memory = dense_memory
    said = [
        {"role": "user", "content": "Hi, I'm Alex. I love basketball and gaming."},
        {"role": "assistant", "content": "Hello Alex!"},
    ]
    (added,) = memory.add(said, user_id="alex", metadata={"source": "chat"})["results"]
    assert added == {"id": added["id"], "memory": "Hi, I'm Alex. I love basketball and gaming.", "event": "ADD"}
    assert memory.add(said, user_id="alex")["results"] == []
    (hit,) = memory.search("What do you know about me?", filters={"user_id": "alex"})["results"]
    assert (hit["memory"], hit["metadata"], hit["attributed_to"]) == (added["memory"], {"source": "chat"}, "user")


def test_a_language_model_puts_it_in_its_own_words(path: Path) -> None:
    def answer(prompt: Prompt) -> Any:
        if prompt.name == "facts":
            return {"facts": ["Anna wants it short.", "Anna wants it short."]}
        memories = [{"stream": 2, "kind": "observation", "text": "Anna loves sci-fi films.", "turns": [1]}]
        return {"memories": [{**each, "key": None, "replaces": [], "people": []} for each in memories]}

    llm = ScriptedLlm(answer)
    with eunoe.open(path, embedder="none", llm=llm, form=False) as store:
        memory = Memory(memory=store)
        assert texts(memory.add("I love sci-fi.", user_id="anna")) == ["Anna loves sci-fi films."]
        assert texts(memory.add("Keep it short.", user_id="anna", prompt="Look for wishes.")) == [
            "Anna wants it short."
        ]
        assert "Look for wishes." in llm.prompts[-1].system


def test_a_procedure_is_one_memory_of_the_agent(path: Path) -> None:
    with eunoe.open(
        path, embedder="none", llm=ScriptedLlm(["<think>Hm.</think>```text\n1. Built. 2. Deployed.\n```"]), form=False
    ) as store:
        memory = Memory(memory=store)
        (added,) = memory.add("Deploy it.", agent_id="ops", memory_type="procedural_memory")["results"]
        item = memory.get(added["id"])
        assert item is not None
        assert (item["memory"], item["metadata"]) == ("1. Built. 2. Deployed.", {"memory_type": "procedural_memory"})


def test_an_update_keeps_the_id_and_what_was_before(memory: Memory) -> None:
    id = keep(memory, "I moved to Rome.", metadata={"topic": "home", "sure": False})
    before = memory.get(id)
    assert memory.update(id, "I moved to Turin.") == {"message": "Memory updated successfully!"}
    memory.update(id, metadata={"sure": True})
    memory.update(memory_id=id, data="I moved to Oslo.", expiration_date="2099-01-01")
    memory.update(id, expiration_date=None)
    item = memory.get(id)
    assert before is not None
    assert item is not None
    assert (item["memory"], item["metadata"]) == ("I moved to Oslo.", {"topic": "home", "sure": True})
    assert (item["created_at"], item["expiration_date"]) == (before["created_at"], None)
    assert item["updated_at"] > before["updated_at"]
    assert texts(memory.get_all(filters=ANNA)) == texts(memory.search("Oslo", filters=ANNA)) == ["I moved to Oslo."]
    history = memory.history(id)
    words = ["I moved to Rome.", "I moved to Turin.", "I moved to Turin.", "I moved to Oslo.", "I moved to Oslo."]
    assert [(row["event"], row["old_memory"], row["new_memory"]) for row in history] == [
        (event, old, new) for event, old, new in zip(["ADD", *["UPDATE"] * 4], [None, *words], words, strict=False)
    ]
    assert {row["memory_id"] for row in history} == {id}
    assert [row["updated_at"] for row in history] == sorted(row["updated_at"] for row in history)


def test_a_deletion_leaves_a_row_and_no_words(memory: Memory, path: Path) -> None:
    id = keep(memory, "The code is swordfish.")
    memory.update(id, "The code is marlinspike.")
    assert memory.delete(id) == {"message": "Memory deleted successfully!"}
    assert memory.get(id) is None
    assert memory.get_all(filters=ANNA)["results"] == memory.search("code", filters=ANNA)["results"] == []
    (row,) = memory.history(id)
    assert (row["event"], row["is_deleted"], row["memory_id"]) == ("DELETE", True, id)
    assert row["old_memory"] is row["new_memory"] is None
    files = b"".join(file.read_bytes() for file in path.parent.iterdir() if file.is_file())
    assert b"swordfish" not in files
    assert b"marlinspike" not in files
    assert keep(memory, "The code is swordfish.") != id
    assert memory.entities() == [{"id": "anna", "type": "user", "total_memories": 1}]


def test_what_is_not_there_is_told(memory: Memory) -> None:
    id = keep(memory, "I like tea.")
    memory.delete(id)
    for unknown in (id, "7b0c9d0e-1111-4222-8333-444455556666", "x.y", "", None, 7):
        assert memory.get(unknown) is None  # type: ignore[arg-type]
        for change in (lambda id: memory.delete(id), lambda id: memory.update(id, "x")):
            with pytest.raises(ValueError, match="not found") as failure:
                change(unknown)
            assert isinstance(failure.value, NotFoundError)
    assert memory.history("7b0c9d0e-1111-4222-8333-444455556666") == []


def test_delete_all_takes_only_what_was_named(memory: Memory) -> None:
    for ids in ({"user_id": "anna"}, {"user_id": "anna", "run_id": "r1"}, {"user_id": "ben", "run_id": "r1"}):
        keep(memory, "I like tea.", **ids)
    with pytest.raises(ValueError, match="At least one filter is required"):
        memory.delete_all()
    with pytest.raises(ValueError, match="cannot be empty"):
        memory.delete_all(user_id=" ")
    assert memory.delete_all(user_id="anna", run_id="r2") == {"message": "Memories deleted successfully!"}
    assert len(memory.get_all(filters=ANNA)["results"]) == 2
    memory.delete_all(user_id="anna", run_id="r1")
    assert len(memory.get_all(filters=ANNA)["results"]) == 1
    memory.delete_all(user_id="anna")
    assert [each["user_id"] for each in memory.get_all(filters={"run_id": "r1"})["results"]] == ["ben"]


def test_reset_leaves_alone_what_no_user_agent_or_run_owns(path: Path) -> None:
    with eunoe.open(path, embedder="none", llm="none", form=False) as store:
        store.remember("project=atlas", "The kiln is in the cellar.")
        memory = Memory(memory=store)
        memory.delete(keep(memory, "I like tea."))
        keep(memory, "I like cake.")
        memory.reset()
        assert [str(scope) for scope in store.scopes()] == ["project=atlas"]


def test_what_has_expired_is_shown_on_demand(memory: Memory) -> None:
    keep(memory, "The sale ends today.", expiration_date="2001-01-01")
    id = keep(memory, "The sale goes on.", expiration_date="2099-12-31")
    assert texts(memory.get_all(filters=ANNA)) == texts(memory.search("sale", filters=ANNA)) == ["The sale goes on."]
    assert len(memory.get_all(filters=ANNA, show_expired=True)["results"]) == 2
    assert len(memory.search("sale", filters=ANNA, show_expired=True)["results"]) == 2
    memory.update(id, expiration_date="2001-01-01")
    assert memory.get_all(filters=ANNA)["results"] == []
    with pytest.raises(ValueError, match="YYYY-MM-DD"):
        keep(memory, "x", expiration_date="tomorrow")


def test_metadata_never_says_whose_memory_it_is(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    given = {"user_id": "eve", "agent_id": "eve", "run_id": "eve", "actor_id": "eve", "topic": "home"}
    with caplog.at_level(logging.WARNING):
        id = keep(memory, "I like tea.", metadata=given)
        memory.update(id, metadata=given)
    item = memory.get(id)
    assert item is not None
    assert (item["user_id"], item["metadata"]) == ("anna", {"topic": "home"})
    assert "eve" not in json.dumps(item)
    assert "user_id there is ignored" in caplog.text
    assert given["user_id"] == "eve"


def test_metadata_of_any_everyday_type_is_taken(memory: Memory) -> None:
    day, mark = date(2026, 5, 4), UUID(int=7)
    given = {"day": day, "mark": mark, "price": Decimal("1.10"), "pair": (1, "b"), "tags": {"b", "a"}, 7: {8: "deep"}}
    id = keep(memory, "I like tea.", metadata=given)
    memory.update(id, metadata={"seen": day})
    item = memory.get(id)
    assert item is not None
    assert item["metadata"] == {
        "day": "2026-05-04",
        "mark": str(mark),
        "price": "1.10",
        "pair": [1, "b"],
        "tags": ["a", "b"],
        "7": {"8": "deep"},
        "seen": "2026-05-04",
    }
    assert texts(memory.get_all(filters={**ANNA, "day": "2026-05-04"})) == ["I like tea."]


def test_a_field_called_memory_key_has_no_power_here(memory: Memory) -> None:
    for text in ("I like tea.", "I like cake."):
        keep(memory, text, metadata={"memory_key": "taste"})
    listed = memory.get_all(filters={**ANNA, "memory_key": "taste"})["results"]
    assert [each["metadata"] for each in listed] == [{"memory_key": "taste"}] * 2


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda memory: memory.add("x"), "VALIDATION_001"),
        (lambda memory: memory.add("x", user_id="a", memory_type="semantic_memory"), "VALIDATION_002"),
        (lambda memory: memory.add(123, user_id="a"), "VALIDATION_003"),
        (lambda memory: memory.add(None, user_id="a"), "VALIDATION_003"),
        (lambda memory: memory.add(["x"], user_id="a"), "VALIDATION_003"),
    ],
)
def test_refusals_have_the_codes_that_programs_look_at(memory: Memory, call: Any, code: str) -> None:
    with pytest.raises(ValidationError) as failure:
        call(memory)
    assert failure.value.error_code == code
    assert failure.value.suggestion
    assert isinstance(failure.value, EunoeError)


def test_an_error_is_also_the_one_that_a_program_imports_from_mem0(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = types.ModuleType("mem0.exceptions")
    theirs.ValidationError = type("ValidationError", (Exception,), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mem0.exceptions", theirs)
    with pytest.raises(theirs.ValidationError):
        memory.add("x")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"filters": {"user_id": "   "}}, "Invalid user_id.*cannot be empty"),
        ({"filters": {"user_id": "user 1"}}, "Invalid user_id.*cannot contain whitespace"),
        ({"user_id": "user\t1"}, "Invalid user_id.*cannot contain whitespace"),
        ({"filters": ANNA, "threshold": 1.5}, "Invalid threshold.*Must be between 0 and 1"),
        ({"filters": ANNA, "threshold": -0.5}, "Invalid threshold.*Must be between 0 and 1"),
        ({"filters": ANNA, "top_k": -5}, "Invalid top_k.*Must be a non-negative"),
        ({"filters": ANNA, "top_k": True}, "top_k must be a valid integer"),
        ({}, "filters must contain at least one of"),
        ({"filters": {"topic": "home"}}, "filters must contain at least one of"),
        ({"filters": {"user_id": None}}, "filters must contain at least one of"),
    ],
)
def test_a_search_is_checked_before_anything_is_read(memory: Memory, arguments: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        memory.search("tea", **arguments)


def test_blank_questions_unknown_arguments_and_bounds(memory: Memory) -> None:
    keep(memory, "I like tea.")
    for query in ("", "  ", "\n\t"):
        with pytest.raises(ValueError, match=r"Invalid query.*empty or whitespace-only"):
            memory.search(query, filters=ANNA)
    with pytest.raises(TypeError, match="uesr_id"):
        memory.search("tea", filters=ANNA, uesr_id="ben")
    assert memory.search("tea", filters=ANNA, top_k=0)["results"] == []
    assert memory.search("tea", filters=ANNA, threshold=1.0)["results"] in ([], memory.search("tea", **ANNA)["results"])
    with pytest.raises(ValueError, match="At least one of text, metadata, or expiration_date"):
        memory.update("x")
    with pytest.raises(NotImplementedError):
        memory.chat("hello")


def test_older_programs_are_understood(memory: Memory) -> None:
    for text in ("I like tea.", "I like cake.", "I like toast."):
        keep(memory, text, version="v2", output_format="v1.1")
    assert len(memory.search("like", user_id="anna", limit=2, version="v2")["results"]) == 2
    assert texts(memory.get_all(user_id="anna", limit=2)) == ["I like toast.", "I like cake."]
    assert memory.search("tea", user_id="ben", filters=ANNA)["results"] == []


def test_when_it_was_said_may_be_told(memory: Memory) -> None:
    id = keep(memory, "I like tea.", timestamp=1_700_000_000)
    other = keep(memory, "I like cake.", metadata={"created_at": "2020-05-05T05:00:00+05:00"})
    items = [memory.get(id), memory.get(other)]
    assert [item and item["created_at"] for item in items] == ["2023-11-14T22:13:20+00:00", "2020-05-05T00:00:00+00:00"]
    assert texts(memory.get_all(filters={**ANNA, "created_at": {"lt": "2021-01-01T00:00:00Z"}})) == ["I like cake."]
