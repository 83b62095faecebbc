"""Words and persons are previewed; only ids, or the token of a preview, remove; nothing removed is no success."""

from __future__ import annotations

import base64
import json

import pytest
from tests.support.mcp_client import ANNA, SECRET, Connect, call, refusal

from eunoe.errors import InputError
from eunoe.model.scope import Scope
from eunoe.server.mcp.tool import LIFETIME_SECONDS, Confirmation

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
async def test_a_correction_that_goes_with_what_it_corrects_is_told_of(connect: Connect, memory):
    old = memory.remember(ANNA, "Anna lives in Rome.").id
    new = memory.update(ANNA, old, "Anna lives in Oslo.").id
    async with connect() as client:
        result = await client.call_tool("forget", {"ids": [old]})
    assert f"Newer versions of what was named went too: {new}." in result.content[0].text


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
            f"{payload}.{'B' if signature[0] == 'A' else 'A'}{signature[1:]}",
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


@pytest.mark.anyio
async def test_words_find_what_has_them_and_nothing_that_is_merely_alike(connect: Connect, memory):
    cats = ["Anna has two cats.", "The CAT is called Mitzi.", "Her cat's food is in the shed."]
    others = ["Anna feeds kittens and dogs.", "The category is closed.", "Anna likes pets that purr.", "Anna bakes."]
    kept = [memory.remember(ANNA, text).id for text in (*cats, *others)]
    said = memory.observe("session=s1/user=anna", {"content": "My cat is ill.", "id": "m1"})[0].id
    other = memory.remember("agent=vet/user=anna", "A cat was here.", id=kept[-1]).id
    async with connect() as client:
        preview = await call(client, "forget", words="the cat")
        assert sorted(row["id"] for row in preview["memories"]) == sorted([*kept[:3], said, other])
        assert {row.get("scope") for row in preview["memories"]} == {
            None,
            "session=s1/user=anna",
            "agent=vet/user=anna",
        }
        assert set(preview["alike"]) <= set(kept[3:])
        assert (preview["count"], preview["token"].split("-")[0]) == (5, "5")
        memory.remember(ANNA, "A cat that came later.")
        done = await call(client, "forget", token=preview["token"])
    assert done["removed"] == 5
    assert texts(memory) == {*others, "A cat that came later."}


@pytest.mark.anyio
async def test_words_that_are_a_name_find_what_is_of_that_person(connect: Connect, memory):
    kept = memory.remember(ANNA, "He is tall.", people=["Bob"]).id
    said = memory.observe(ANNA, {"name": "Bob", "content": "I came.", "id": "m1"})[0].id
    memory.remember(ANNA, "Bobby is short.")
    async with connect() as client:
        assert {row["id"] for row in (await call(client, "forget", words="bob"))["memories"]} == {kept, said}


@pytest.mark.anyio
async def test_what_is_merely_alike_gets_no_token(connect: Connect, memory, three):
    async with connect() as client:
        assert "nothing was removed" in await refusal(client, "forget", words="secret number of Anna's account")
    assert len(texts(memory)) == 3


@pytest.mark.anyio
async def test_a_message_that_stays_is_named_and_offered(connect: Connect, memory):
    memory.observe("session=s1/user=anna", {"content": "My PIN is 4711.", "id": "m1"})
    source = {"source": ["@session=s1/user=anna#m1"], "source_scopes": ["session=s1/user=anna"]}
    kept = memory.remember(ANNA, "Anna's PIN is 4711.", **source).id
    async with connect() as client:
        result = await client.call_tool("forget", {"ids": [kept]})
        assert result.structured_content["held_by"] == {"session=s1/user=anna": ["m1"]}
        assert "stays and still says it: offer to forget it" in result.content[0].text
        assert "exports, backups" in result.content[0].text
        assert (await call(client, "forget", ids=["m1"]))["held_by"] == {}
