"""The tools of the default profile: what they say, how little their list costs, what they remove."""

from __future__ import annotations

import base64
import json

import pytest
from mcp.shared.exceptions import MCPError
from tests.support.mcp_client import ANNA, SECRET, Connect, call, refusal

from eunoe.errors import InputError
from eunoe.model.scope import Scope
from eunoe.server.mcp.tool import LIFETIME_SECONDS, Confirmation
from eunoe.text.sentences import token_count

MAX_LIST_TOKENS = 1500
ANNOTATIONS = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}


def tokens_of(result) -> int:
    """Of all that a model may be shown, by the stricter of two estimates."""
    text = result.model_dump_json(by_alias=True, exclude_none=True, exclude={"meta"})
    return max(token_count(text), len(text) // 4)


@pytest.mark.parametrize("mode", ["auto", "legacy"], indirect=True)
@pytest.mark.anyio
async def test_the_list_of_tools_is_short_and_complete(connect: Connect):
    async with connect() as client:
        listed = await client.list_tools()
    assert [tool.name for tool in listed.tools] == ["remember", "recall", "context", "get", "list", "update", "forget"]
    assert tokens_of(listed) < MAX_LIST_TOKENS
    for tool in listed.tools:
        assert tool.title
        assert set(tool.annotations.model_dump(by_alias=True, exclude_none=True)) == ANNOTATIONS
        assert tool.output_schema["required"]
        assert tool.input_schema["properties"]["scope"]["description"] == "default user=anna"
    assert [tool.name for tool in listed.tools if tool.annotations.destructive_hint] == ["forget"]
    read_only = [tool.name for tool in listed.tools if tool.annotations.read_only_hint]
    assert read_only == ["recall", "context", "get", "list"]


@pytest.mark.parametrize("mode", ["auto", "legacy"], indirect=True)
@pytest.mark.anyio
async def test_what_is_remembered_is_recalled_listed_and_read(connect: Connect, memory):
    async with connect() as client:
        kept = await call(client, "remember", text="Anna is allergic to peanuts.", label="health", people=["Anna"])
        assert kept["outcome"] == "stored"
        again = await call(client, "remember", text="Anna is allergic to peanuts.")
        assert again == {"id": kept["id"], "outcome": "duplicate"}
        found = await call(client, "recall", query="What must Anna not eat? peanuts")
        listed = await call(client, "list")
        (whole,) = (await call(client, "get", ids=[kept["id"]]))["memories"]
        known = await call(client, "context", message="May I offer Anna peanuts?")
    assert found["memories"][0]["id"] == listed["memories"][0]["id"] == kept["id"]
    assert found["memories"][0]["score"] > 0
    assert whole["text"] == "Anna is allergic to peanuts."
    assert whole["people"] == ["Anna"]
    assert "allergic to peanuts" in known["text"]
    assert memory.get(ANNA, kept["id"]).label == "health"


@pytest.mark.anyio
async def test_an_update_keeps_the_old_version(connect: Connect, memory):
    old = memory.remember(ANNA, "Anna lives in Paris.").id
    async with connect() as client:
        new = await call(client, "update", id=old, text="Anna lives in Rome.")
        assert new["outcome"] == "superseded"
        assert "no memory" in await refusal(client, "update", id="elsewhere", text="Anna lives in Rome.")
    assert [version.text for version in memory.history(ANNA, old)] == ["Anna lives in Paris.", "Anna lives in Rome."]


@pytest.mark.anyio
async def test_what_was_forgotten_comes_back_only_on_purpose(connect: Connect, memory):
    memory.forget(ANNA, memory.remember(ANNA, "Anna smokes.").id)
    async with connect() as client:
        assert "forgotten" in await refusal(client, "remember", text="Anna smokes.")
        assert (await call(client, "remember", text="Anna smokes.", again=True))["outcome"] == "stored"


@pytest.mark.anyio
async def test_a_users_scope_means_everything_within_unless_it_is_to_be_exact(connect: Connect, memory):
    memory.observe("session=s1/user=anna", ["The tower is 300 m high."])
    memory.observe("session=s1/user=bob", ["The tower of Bob is small."])
    memory.remember(ANNA, "Anna climbed the tower.")
    async with connect() as client:
        for name, asked in (("recall", {"query": "tower"}), ("list", {})):
            assert len((await call(client, name, **asked, exact=True))["memories"]) == 1
            found = (await call(client, name, **asked))["memories"]
            (said,) = [row for row in found if row["kind"] == "message"]
            assert len(found) == 2
            assert said["scope"] == "session=s1/user=anna"
        for scope in (said["scope"], "user=anna"):
            (whole,) = (await call(client, "get", ids=[said["id"]], scope=scope))["memories"]
            assert whole["text"] == "The tower is 300 m high."
        assert "no memory" in await refusal(client, "get", ids=[said["id"]], exact=True)
        assert "no memory" in await refusal(client, "forget", ids=[said["id"]], exact=True)
        assert (await call(client, "forget", ids=[said["id"]]))["removed"] == 1
    assert [str(item.scope) for item in memory.list("user=bob").items] == ["session=s1/user=bob"]


@pytest.mark.anyio
async def test_everything_within_an_agent_is_said_in_so_many_words(connect: Connect, memory):
    memory.remember("agent=cook/user=ben", "Ben likes garlic.")
    async with connect(within=None) as client:
        found = await client.call_tool("recall", {"query": "garlic", "scope": "agent=cook"})
        assert "write agent=cook/*" in found.content[0].text
        (row,) = (await call(client, "recall", query="garlic", scope="agent=cook/*"))["memories"]
        assert row["scope"] == "agent=cook/user=ben"


@pytest.mark.parametrize("max_tokens", [200, 500, 2000])
@pytest.mark.parametrize("text", ["word " * 300, "東京タワー" * 200, '"<&>\n' * 200])
@pytest.mark.anyio
async def test_answers_keep_to_their_budget_and_a_cursor_leads_through_all(connect, memory, max_tokens, text):
    ids = {memory.remember(ANNA, f"{number} tower {text}").id for number in range(12)}
    async with connect() as client:
        for name, arguments in (("recall", {"query": "tower"}), ("list", {"limit": 5})):
            seen, cursor = [], ""
            while True:
                result = await client.call_tool(name, {**arguments, "max_tokens": max_tokens, "cursor": cursor})
                assert not result.is_error, result.content[0].text
                assert tokens_of(result) <= max_tokens
                seen += [row["id"] for row in result.structured_content["memories"]]
                if not (cursor := result.structured_content.get("cursor", "")):
                    break
            assert len(seen) == len(set(seen)), name
            assert set(seen) == ids, name


@pytest.mark.parametrize("text", ["0123456789" * 2000, "東京" * 4000, '"<&>\n' * 900])
@pytest.mark.anyio
async def test_get_gives_the_whole_text_in_parts(connect: Connect, memory, text):
    ids = [memory.remember(ANNA, "short one").id, memory.remember(ANNA, text.strip()).id]
    ids.append(memory.remember(ANNA, "the last").id)
    texts, cursor = dict.fromkeys(ids, ""), ""
    async with connect() as client:
        while True:
            result = await client.call_tool("get", {"ids": ids, "cursor": cursor})
            assert tokens_of(result) <= 2000
            for row in result.structured_content["memories"]:
                texts[row["id"]] += row["text"]
            if not (cursor := result.structured_content.get("cursor", "")):
                break
    assert list(texts.values()) == ["short one", text.strip(), "the last"]


@pytest.mark.anyio
async def test_a_context_keeps_to_its_budget(connect: Connect, memory):
    for number in range(60):
        memory.remember(ANNA, f'{number}. Anna said "yes" & <no> about the tower of {number} <b>. ' * 3)
    async with connect() as client:
        for max_tokens in (200, 1000, 2000):
            result = await client.call_tool("context", {"message": "the tower", "max_tokens": max_tokens})
            assert tokens_of(result) <= max_tokens
            assert "tower" in result.structured_content["text"] or max_tokens == 200


@pytest.mark.anyio
async def test_nothing_found_is_said(connect: Connect):
    async with connect() as client:
        result = await client.call_tool("recall", {"query": "anything"})
        assert result.structured_content["memories"] == []
        assert "Nothing found in user=anna" in result.content[0].text
        assert "nothing is stored in user=anna yet" in (await call(client, "context"))["text"]


@pytest.mark.anyio
async def test_what_a_key_may_not_call_is_not_listed(connect: Connect, memory):
    for rights, names in (
        (("read",), ["recall", "context", "get", "list"]),
        (("write",), ["remember", "update"]),
        (("read", "forget"), ["recall", "context", "get", "list", "forget"]),
        ((), []),
    ):
        async with connect(rights=rights) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == names
            hidden = {"remember", "forget", "recall"} - set(names)
            for name in hidden:
                with pytest.raises(MCPError, match="Unknown tool"):
                    await client.call_tool(name, {"text": "x", "query": "x", "ids": ["x"]})
    assert not memory.scopes()


@pytest.mark.anyio
async def test_a_server_without_a_default_scope_asks_for_one(connect: Connect):
    async with connect(default=None, within=None) as client:
        (tool, *_) = (await client.list_tools()).tools
        assert "scope" in tool.input_schema["required"]
        assert "scope is missing" in await refusal(client, "remember", text="Anna likes tea.")
        assert (await call(client, "remember", text="Anna likes tea.", scope="user=anna"))["outcome"] == "stored"


@pytest.mark.anyio
async def test_structured_content_and_text_say_the_same(connect: Connect, memory):
    memory.remember(ANNA, "Anna likes <b>tea</b> & milk.")
    async with connect() as client:
        result = await client.call_tool("recall", {"query": "tea"})
    (row,) = result.structured_content["memories"]
    assert row["text"] == "Anna likes <b>tea</b> & milk."
    assert f'id="{row["id"]}"' in result.content[0].text
    assert "Anna likes &lt;b&gt;tea&lt;/b&gt; &amp; milk." in result.content[0].text
    assert json.dumps(result.structured_content)


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
