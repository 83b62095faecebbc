"""Words and persons are previewed; only ids, or the token of a preview, remove; nothing removed is no success."""

from __future__ import annotations

import base64
import json

import pytest
from tests.support.mcp_client import ANNA, SECRET, Connect, call, refusal

from eunoe.errors import InputError
from eunoe.model.scope import Scope
from eunoe.server.mcp.confirmation import LIFETIME_SECONDS, Confirmation

BOB = Scope(user="bob")


def texts(memory) -> set[str]:
    return {item.text for item in memory.list(ANNA).items}


@pytest.fixture
def three(memory):
    """Three memories of Anna, by their ids."""
    said = ["Anna's PIN is 4711.", "Anna's bank is in Rome.", "Anna likes tea."]
    return {memory.remember(ANNA, text).id: text for text in said}


@pytest.mark.anyio
async def test_words_only_preview_and_the_token_removes_what_was_shown(connect: Connect, memory, three):
    async with connect() as client:
        result = await client.call_tool("forget", {"words": "PIN"})
        preview = result.structured_content
        assert preview["removed"] == 0
        assert "Nothing was removed" in result.content[0].text
        assert len(texts(memory)) == 3
        shown = {row["id"] for row in preview["memories"]}
        kept = memory.remember(ANNA, "Anna's other PIN is 4712.").id
        done = await call(client, "forget", token=preview["token"])
    assert set(done["ids"]) == shown
    assert done["removed"] == len(shown)
    assert memory.get(ANNA, kept).text in texts(memory)
    assert not texts(memory) & {three[id] for id in shown}


@pytest.mark.anyio
async def test_ids_remove_at_once(connect: Connect, memory, three):
    first, *rest = three
    async with connect() as client:
        assert (await call(client, "forget", ids=[first]))["removed"] == 1
    assert texts(memory) == {three[id] for id in rest}


@pytest.mark.anyio
async def test_nothing_removed_is_never_success(connect: Connect, memory, three):
    others = memory.remember(BOB, "Bob likes coffee.").id
    async with connect() as client:
        for arguments in ({"ids": ["unknown"]}, {"ids": [others]}, {"person": "Nobody"}, {"ids": []}, {}):
            assert await refusal(client, "forget", **arguments)
        assert "exactly one" in await refusal(client, "forget", ids=list(three), words="PIN")
        assert "no argument" in await refusal(client, "forget", everything=True)
    assert len(texts(memory)) == 3
    assert memory.get(BOB, others)


@pytest.mark.anyio
async def test_words_that_match_nothing_give_no_token(connect: Connect, memory):
    async with connect() as client:
        assert "nothing was removed" in await refusal(client, "forget", words="PIN")


@pytest.mark.anyio
async def test_a_person_is_previewed_too(connect: Connect, memory):
    memory.observe(ANNA, [{"role": "user", "name": "Bob", "content": "I am Bob."}, {"content": "I am Anna."}])
    memory.remember(ANNA, "Bob is tall.", people=["Bob"])
    async with connect() as client:
        preview = await call(client, "forget", person="bob")
        assert preview["count"] == 2
        assert len(texts(memory)) == 3
        memory.remember(ANNA, "Bob is loud.", people=["Bob"])
        assert "changed since" in await refusal(client, "forget", token=preview["token"])
        assert len(texts(memory)) == 4
        preview = await call(client, "forget", person="bob")
        assert (await call(client, "forget", token=preview["token"]))["removed"] == 3
    assert texts(memory) == {"I am Anna."}


@pytest.mark.anyio
async def test_the_preview_of_a_person_counts_what_forgetting_them_removes(connect: Connect, memory):
    """Messages that name nobody are the user's to whom the scope belongs."""
    memory.observe(
        ANNA,
        [
            {"role": "user", "content": "I like tea."},
            {"role": "assistant", "content": "Noted."},
            {"role": "user", "name": "Bob", "content": "I do not."},
            {"role": "user", "content": "I am ANNA.", "metadata": {"user": "Anna"}},
        ],
    )
    memory.update(ANNA, memory.remember(ANNA, "Anna is tall.", people=["ANNA"]).id, "Anna is very tall.")
    async with connect() as client:
        preview = await call(client, "forget", person=" anna ")
        done = await call(client, "forget", token=preview["token"])
    assert preview["count"] == done["removed"] == 4
    assert texts(memory) == {"Noted.", "I do not."}


@pytest.mark.anyio
async def test_forged_tokens_are_refused(connect: Connect, memory, three):
    ids = list(three)
    async with connect() as client:
        token = (await call(client, "forget", words="PIN"))["token"]
        payload, _, signature = token.partition(".")
        other = base64.urlsafe_b64encode(json.dumps([9e9, {"ids": ids}]).encode()).decode().rstrip("=")
        forged = [
            f"{other}.{signature}",
            f"{payload}.{signature[:-2]}AA",
            payload,
            f"{payload}.",
            "." + signature,
            "é." + signature,
            "x" * 50_000,
            Confirmation(b"another secret").create("tests", ANNA, {"ids": ids}),
            Confirmation(SECRET).create("somebody else", ANNA, {"ids": ids}),
            Confirmation(SECRET).create("tests", BOB, {"ids": ids}),
            Confirmation(SECRET, lambda: 0.0).create("tests", ANNA, {"ids": ids}),
        ]
        for each in forged:
            assert "not valid" in await refusal(client, "forget", token=each)
        assert "not valid" in await refusal(client, "forget", token=token, scope="user=anna/session=1")
    assert len(texts(memory)) == 3


def test_a_token_works_in_another_process_until_it_expires():
    token = Confirmation(SECRET, lambda: 1000.0).create("key", ANNA, {"ids": ["a"]})
    assert Confirmation(SECRET, lambda: 1000.0 + LIFETIME_SECONDS).read("key", ANNA, token) == {"ids": ["a"]}
    with pytest.raises(InputError, match="5 minutes"):
        Confirmation(SECRET, lambda: 1001.0 + LIFETIME_SECONDS).read("key", ANNA, token)
