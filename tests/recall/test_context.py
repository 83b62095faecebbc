"""Context: both layers, who may see what, the budget, the cache, and that nothing in memory stops a reply."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.steps import steps_of

import eunoe
from eunoe.errors import EmbedderError, InputError, StoreError
from eunoe.hosts.memory_tool import tool
from eunoe.model.arguments import parse_time
from eunoe.recall.context import parse_lookup_request
from eunoe.recall.recalled_context import shown_threshold
from eunoe.recall.recipes import RECIPES
from eunoe.recall.static_context import StaticContext, StaticContextCache, StreamSection
from eunoe.store.schema import StreamLink
from eunoe.text.sentences import token_count

ANNA = "agent=cook/user=anna"
HERE = "agent=cook/session=s1/user=anna"
GROUP = "agent=cook/session=g1"
SHARD = "agent=cook/shard=recipes"
NOW = "2024-05-07T12:00"


def said(memory, scope, *texts, **fields):
    return memory.observe(scope, [{"role": "user", "content": text, **fields} for text in texts])


def linked(memory, session, stream=ANNA):
    """What forming notes when a memory of `stream` rests on a message of `session`."""
    store = steps_of(memory)
    with store.writing():
        source, target = (store.create_stream(eunoe.Scope.parse(scope)) for scope in (session, stream))
        store.save([StreamLink(source.id, target.id)])


@pytest.fixture
def cook(path):
    """An agent with a shard, a user and a session, each with something to say."""
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        memory.streams.configure(SHARD, extraction_prompt="Recipes.")
        memory.remember(SHARD, "Salt the water early.", time="2024-05-04T12:00")
        memory.summaries.write(ANNA, "Anna is a vet in Rome.")
        memory.remember(ANNA, "Anna would rather have tea.", kind="observation", time="2024-05-06T12:00")
        memory.remember(HERE, "They plan a dinner for Friday.", time="2024-05-07T11:00")
        yield memory


def test_the_static_layer_has_every_stream_in_its_place(cook):
    root = ElementTree.fromstring(cook.context(HERE, now=NOW).text)
    assert root.find("CollectiveMemory/MemoryShard").get("name") == "recipes"
    assert "Salt the water early. (2024-05-04, 3 days ago)" in root.findtext("CollectiveMemory/MemoryShard")
    assert "Anna is a vet in Rome." in root.findtext("UserMemory")
    assert "Anna would rather have tea. (2024-05-06, 1 day ago)" in root.findtext("UserMemory")
    assert "They plan a dinner for Friday. (2024-05-07, 1 hour ago)" in root.findtext("CurrentConversation")
    assert root.find("RetrievedMemories") is None


def test_windows_hold_the_latest_oldest_first(cook):
    cook.streams.configure(HERE, fact_buffer_max=2, observation_buffer_max=1)
    for number in range(4):
        cook.remember(HERE, f"fact {number}")
        cook.remember(HERE, f"seen {number}", kind="observation")
    text = ElementTree.fromstring(cook.context(HERE).text).findtext("CurrentConversation")
    assert [word for word in ("fact 1", "fact 2", "fact 3", "seen 2", "seen 3") if word in text] == [
        "fact 2",
        "fact 3",
        "seen 3",
    ]
    assert text.index("fact 2") < text.index("fact 3")


def test_what_is_absorbed_superseded_ended_or_inactive_is_not_shown(cook):
    old = cook.remember(HERE, "The dinner is for six.")
    cook.update(HERE, old.id, "The dinner is for eight.")
    cook.remember(HERE, "The oven is broken.", valid_to="2024-05-01")
    cook.streams.configure(SHARD, is_active=False)
    text = cook.context(HERE, now=NOW).text
    assert "eight" in text
    assert "six" not in text
    assert "oven" not in text
    assert "Salt" not in text


def test_a_message_brings_back_what_bears_on_it_from_every_layer(cook):
    said(cook, HERE, "My dog Bruno ate the cake.", *(f"filler {number}" for number in range(6)))
    said(cook, "agent=cook/session=s0/user=anna", "Bruno the dog is four.")
    linked(cook, "agent=cook/session=s0/user=anna")
    cook.streams.configure(SHARD, fact_buffer_max=1)
    cook.remember(SHARD, "No chocolate for a dog.")
    cook.remember(SHARD, "The latest fact fills the window.")
    context = cook.context(HERE, "What do you know of a dog?", limit=3)
    assert sorted(hit.text for hit in context.hits) == [
        "Bruno the dog is four.",
        "My dog Bruno ate the cake.",
        "No chocolate for a dog.",
    ]
    assert "- anna: My dog Bruno ate the cake." in context.text


def test_what_the_agent_has_before_it_already_is_not_repeated(cook):
    said(cook, HERE, "The cake is for Friday.", "one", "two", "three", "four", "Which cake shall we bake on Friday?")
    cook.remember(ANNA, "The cake must be vegan.", kind="observation")
    context = cook.context(HERE, "Which cake shall we bake on Friday?")
    assert [hit.text for hit in context.hits if "cake" in hit.text] == ["The cake is for Friday."]
    assert context.text.count("The cake must be vegan.") == 1
    assert {"two", "three", "four"}.isdisjoint(hit.text for hit in context.hits)


def test_what_a_summary_says_word_for_word_is_not_repeated(cook):
    said(cook, HERE, "I hate phone calls.", "I hate phone calls. Write to me.", *"abcd")
    cook.remember("agent=cook/session=s0/user=anna", "Phone calls cost a lot.")
    for summary in (
        "I hate phone calls.",
        "2024-05-07: anna: I hate phone calls. (asked: May I call?)\nAnna is a vet.",
    ):
        cook.summaries.write(ANNA, summary)
        assert [hit.text for hit in cook.context(HERE, "What about phone calls?").hits] == [
            "I hate phone calls. Write to me."
        ]
    cook.summaries.write(ANNA, "I hate phone calls. She is a vet. Write to me.")
    assert cook.context(HERE, "What about phone calls?").hits == ()


@pytest.fixture
def chatty():
    """A small memory of everyday talk, with vectors."""
    with eunoe.open(":memory:", llm="none", form=False) as memory:
        said(
            memory, HERE, "The wifi password is hunter2banana.", "I take metformin twice a day.", "We moved to Leipzig."
        )
        said(
            memory,
            HERE,
            "My sister Lea lives in Oslo.",
            "My car is a red Volvo.",
            "I play the cello.",
            "Petra is my boss.",
        )
        said(memory, HERE, "one", "two", "three", "four")
        yield memory


@pytest.mark.parametrize(
    "message", ["How do I invert a matrix in numpy?", "What is the capital of Australia?", "Summarise the Iliad."]
)
def test_a_question_that_nothing_bears_on_recalls_nothing(chatty, message):
    context = chatty.context(HERE, message)
    assert context.query == message
    assert context.hits == ()
    assert "Retrieved" not in context.text
    assert chatty.look_up(HERE, message) == []
    assert tool(chatty, HERE).call({"query": message}) == "No relevant memories found."


@pytest.mark.parametrize(
    ("message", "word"),
    [
        ("What is the wifi password?", "hunter2banana"),
        ("Which medicine do I take?", "metformin"),
        ("Where does my sister live?", "Oslo"),
        ("Which instrument do I play?", "cello"),
        ("Who is my boss?", "Petra"),
    ],
)
def test_a_question_that_something_bears_on_recalls_it(chatty, message, word):
    assert word in chatty.context(HERE, message).text
    assert word in tool(chatty, HERE).call({"query": message})


def test_what_follows_the_best_needs_far_less_than_the_best():
    def told(*scores, recipe="default", read=False):
        return list(scores[: shown_threshold(RECIPES[recipe], read).count_passing(scores)])

    assert told(0.6, 0.02, 0.001) == [0.6, 0.02]
    assert told(0.08, 0.02, 0.001) == []
    assert told(0.08, 0.001, recipe="thorough", read=True) == [0.08, 0.001]
    assert told(0.04, 0.001, recipe="thorough", read=True) == []
    assert told(0.08, 0.02, recipe="thorough") == []
    assert told(0.04, 0.001, -0.2, recipe="dense") == [0.04, 0.001, -0.2]
    assert told() == []


@pytest.mark.parametrize("recipe", ["default", "thorough"])
def test_a_message_that_was_kept_already_does_not_speak_for_its_session(chatty, recipe):
    for message, answer in (
        ("Summarise the Iliad.", []),
        ("Where does my sister live?", ["My sister Lea lives in Oslo."]),
    ):
        for _ in range(2):
            hits = chatty.context(HERE, message, recipe=recipe).hits
            assert [hit.text for hit in hits][:1] == answer
            said(chatty, HERE, message)


@pytest.mark.parametrize("session", ["", "evening"])
@pytest.mark.parametrize("after", [[], [{"role": "assistant", "content": "..."}], ["Well?", "Hm.", "So?"]])
def test_nor_does_one_in_a_session_of_its_own_or_with_more_after_it(session, after):
    message, here = "How do I boil an egg?", "user=anna"
    talk = ["My sister lives in Oslo.", "Grandma's cake needs two lemons.", "The train leaves at seven.", *"abcd"]
    with eunoe.open(":memory:", llm="none", form=False) as memory:
        said(memory, here, *talk, session=session)
        plain = memory.context(here, message)
        said(memory, here, message, session=session)
        memory.observe(here, [{**each, "session": session} if isinstance(each, dict) else each for each in after])
        kept = memory.context(here, f"{message}\n")
        spoken = memory.recall(here, message)
    assert all(hit.score < 0.5 for hit in (*plain.hits, *kept.hits))
    assert any(hit.score > 0.5 for hit in spoken if hit.text in talk[:3])


def test_the_message_is_no_part_of_what_was_said_before_it(chatty):
    said(chatty, HERE, "Where is the cello?", "And the red Volvo?")
    chatty.observe(HERE, {"role": "assistant", "content": "..."})
    assert chatty.context(HERE, "And the red Volvo?").query == "And the red Volvo?\nWhere is the cello?"


def test_the_same_words_said_long_ago_are_not_the_message(chatty):
    said(chatty, HERE, "And the red Volvo?", *"efgh")
    assert chatty.context(HERE, "And the red Volvo?").query == "And the red Volvo?\nh"
    assert chatty.context(HERE, "Who is my boss?").hits[0].text == "Petra is my boss."


@pytest.mark.parametrize(
    ("message", "best"),
    [
        ("Who said good night to us?", "Good night everyone!"),
        ("Who wrote the Iliad?", "Who wrote the Iliad?"),
        ("Who wrote the Iliad?", "Homer wrote the Iliad."),
    ],
)
def test_what_cannot_be_told_does_not_let_in_what_follows_it(message, best):
    here = "thread=t/user=anna"
    talk = ["Ben sent a letter on Monday.", "Grandma's cake needs two lemons.", "Ben left."]
    with eunoe.open(":memory:", llm="none", form=False) as memory:
        memory.summaries.write("user=anna", "Homer wrote the Iliad. Anna is a vet.")
        said(memory, here, *talk, session="one")
        said(memory, here, best, *"abcd", session="two")
        found = memory.recall(here, message, limit=30)
        assert found[0].score > 0.5
        assert best == message or found[0].text == best  # what only asks tells nothing, and comes after what may
        assert any(hit.score > 0.005 for hit in found if hit.text in talk)
        assert memory.context(here, message).hits == ()


@pytest.mark.parametrize(
    ("beside", "message", "recalled"),
    [
        ("Bella!", "Where do I live?", []),  # what stands in the static part has every word of it
        ("Bella!", "What is my dog called?", ["Bella!"]),
        ("Seven!", "How many dogs live with me?", ["Seven!"]),
        ("Third floor!", "Where do I live?", []),
        ("Third floor!", "Which floor do I live on?", ["Third floor!"]),
    ],
)
def test_what_stands_beside_an_answer_in_the_static_part_is_recalled_if_it_may_add_to_it(beside, message, recalled):
    here, later = "agent=cook/session=s1/user=anna", "agent=cook/session=s2/user=anna"
    with eunoe.open(":memory:", llm="none", form=False) as memory:
        for role, text in (("user", "I live in Berlin with my dog."), ("assistant", "I see."), ("user", beside)):
            memory.observe(here, {"role": role, "content": text})
        memory.form(here)
        context = memory.context(later, message)
    assert "I live in Berlin with my dog." in context.static
    assert [hit.text for hit in context.hits] == recalled
    assert ("Retrieved" in context.text) == bool(recalled)


def test_a_stream_that_holds_nothing_yet_costs_no_vectors():
    with eunoe.open(":memory:", llm="none", form=False) as memory:
        said(memory, "agent=cook/session=s0/user=anna", "The cat was sick on the rug again.", "Off to bed.")
        best = memory.context(HERE, "Which pet is unwell?").hits[0]
    assert best.text == "The cat was sick on the rug again."
    assert "dense" in {reason.name for reason in best.reasons}


def test_messages_without_a_word_that_tells_anything_are_not_recalled(cook):
    reactions = ("Cute!", "ok", "That is so lovely.", "👍")
    for number, text in enumerate(reactions):
        said(cook, HERE, f"My beagle Bruno has toy number {number}.")
        cook.observe(HERE, {"role": "assistant", "content": text})
    said(cook, HERE, *"abcd")
    context = cook.context(HERE, "Which toys has my beagle Bruno?")
    for hits in (context.hits, cook.look_up(HERE, "Which toys has my beagle Bruno?")):
        texts = [hit.text for hit in hits]
        assert len([text for text in texts if "beagle" in text]) == 4
        assert set(texts).isdisjoint(reactions)


def test_a_fact_that_quotes_a_recalled_message_is_folded_into_it(cook):
    cook.streams.configure(ANNA, fact_buffer_max=0)
    receipts = said(cook, HERE, "I think the Bordeaux was corked, sadly.", *"abcd", speaker="Anna")
    source = f"@{eunoe.Scope.parse(HERE)}#{receipts[0].id}"
    cook.remember(ANNA, "Anna: the Bordeaux was corked", source=[source], source_scopes=HERE)
    cook.remember(ANNA, "Anna dislikes Bordeaux by now.", source=[source], source_scopes=HERE)
    texts = [hit.text for hit in cook.context(HERE, "Was the Bordeaux corked?").hits]
    assert sorted(texts) == ["Anna dislikes Bordeaux by now.", "I think the Bordeaux was corked, sadly."]


def test_the_same_words_are_recalled_once_whatever_stands_between_them(cook):
    words = ("My dog Bruno bites.", "The dog bites cats.", "My dog Bruno bites.", "A dog bites.", "My dog Bruno bites.")
    for number, text in enumerate(words):
        said(cook, HERE, text, id=f"m{number}")
    said(cook, HERE, *"abcd")
    texts = [hit.text for hit in cook.context(HERE, "Which dog bites, my Bruno?").hits]
    assert sorted(texts) == sorted(set(words))


def test_what_one_session_learns_reaches_the_next_and_nobody_else(cook):
    earlier = "agent=cook/session=first/user=anna"
    said(
        cook,
        earlier,
        "I am allergic to peanuts.",
        "The weather was odd.",
        "My cousin Otto sells kites in Ghent.",
        "Bye.",
    )
    assert cook.form(earlier).messages == 4
    assert "peanuts" in cook.context(HERE).static
    assert "Ghent" in cook.context(HERE, "Where does Otto sell kites?").text
    assert "The weather was odd." in cook.context(HERE, "How was the odd weather?").text
    stranger = cook.context("agent=cook/session=s1/user=ben", "Where does Otto sell kites, and the odd weather?").text
    assert not [word for word in ("peanuts", "Ghent", "weather") if word in stranger]


def test_where_there_is_no_room_for_a_message_the_fact_that_quotes_it_is_told(cook):
    cook.streams.configure(ANNA, fact_buffer_max=0)
    receipts = said(cook, HERE, "The Bordeaux was corked, " + "and so on and on, " * 25, *"abcd", speaker="Anna")
    source = [f"@{eunoe.Scope.parse(HERE)}#{receipts[0].id}"]
    cook.remember(ANNA, "The Bordeaux was corked", source=source, source_scopes=HERE)
    [hit] = cook.context(HERE, "Was the Bordeaux corked?", tokens=150).hits
    assert hit.text == "The Bordeaux was corked"


def test_system_prompts_and_recalled_memory_are_not_shown_again(cook):
    cook.observe(HERE, {"role": "system", "content": "You are a cook who loves walnuts."})
    said(cook, HERE, '<MemoryContext description="x">old walnuts</MemoryContext> Walnuts, please.', *"abcd")
    context = cook.context(HERE, "walnuts?", format="json")
    assert [each["text"] for each in json.loads(context.text)["retrieved_memories"]] == ["Walnuts, please."]


def test_a_stream_without_recall_is_left_out_of_it(cook):
    cook.streams.configure(SHARD, fact_rag_enabled=False, fact_buffer_max=0)
    cook.remember(SHARD, "Truffles keep for a week.")
    assert cook.context(HERE, "How long do truffles keep?").hits == ()
    cook.streams.configure(SHARD, fact_rag_enabled=True)
    assert len(cook.context(HERE, "How long do truffles keep?").hits) == 1


def test_a_scope_no_preset_knows_still_recalls_its_own_log(memory):
    said(memory, "discussion=d1", "The kiln is at 900 degrees.", *"abcd")
    assert memory.context("discussion=d1", "How hot is the kiln?").hits[0].text == "The kiln is at 900 degrees."


@pytest.mark.remote
@pytest.mark.parametrize("scope", ["user=anna", "agent=cook", "project=x/user=anna", "discussion=d1"])
def test_what_is_no_conversation_has_no_window(memory, scope):
    memory.observe(scope, "I am allergic to peanuts.")
    question = "What am I allergic to?"
    assert "allergic to peanuts" in memory.context(scope, question).text
    memory.observe(scope, question)
    assert [hit.text for hit in memory.context(scope, question).hits] == ["I am allergic to peanuts."]
    session = f"session=s1/{scope}"
    memory.observe(session, "My ring weighs 9 grams.")
    assert "grams" not in memory.context(session, "How much does my ring weigh?").text


def test_other_keys_are_never_left_out(cook):
    cook.remember("tenant=b/agent=cook/user=anna", "Anna of tenant b likes squid.")
    assert "squid" not in cook.context("tenant=a/agent=cook/session=s1/user=anna", "squid?").text
    assert "squid" not in cook.context(HERE, "squid?").text
    assert "squid" in cook.context("tenant=b/agent=cook/session=s1/user=anna", "squid?").text


@pytest.mark.parametrize(
    ("session", "seen"),
    [
        ("agent=cook/session=old/user=anna", True),
        ("agent=cook/session=old/user=ben", False),
        ("agent=waiter/session=old/user=anna", False),
        ("agent=cook/session=old/tenant=x/user=anna", False),
        ("agent=cook/user=anna/project=p", False),
    ],
)
def test_earlier_sessions_are_this_users_own_with_this_agent(cook, session, seen):
    said(cook, session, "The password of the cellar is swordfish.")
    linked(cook, session)
    assert ("swordfish" in cook.context(HERE, "the password of the cellar").text) is seen


@pytest.mark.parametrize("formed", [True, False])
def test_an_earlier_session_is_recalled_whatever_was_formed_from_it(cook, formed):
    old = "agent=cook/session=old/user=ben"
    said(cook, old, "I take metformin twice a day.", "The cellar door jams.")
    if formed:
        cook.form(old)
    now = "agent=cook/session=new/user=ben"
    assert "metformin" in cook.context(now, "Which medicine do I take?").text
    assert "The cellar door jams." in cook.context(now, "What is it with the cellar door?").text
    assert "cellar" not in cook.context(GROUP, "What is it with the cellar door?", users=["ben", "cid"]).text
    cook.forget(old, everything=True)
    assert "metformin" not in cook.context(now, "Which medicine do I take?").text


def test_an_earlier_session_is_recalled_after_it_moved(cook):
    old = "agent=cook/session=old"
    said(cook, old, "The cellar door jams.", user="ben")
    out = io.StringIO()
    cook.admin.export([old], out)
    with eunoe.open(":memory:", embedder="none", llm="none", form=False) as other:
        other.admin.import_(out.getvalue().splitlines())
        assert [str(scope) for scope in other.scopes()] == [old]
        context = other.context("agent=cook/session=new/user=ben", "What is it with the cellar door?")
        assert "The cellar door jams." in context.text


def test_a_session_is_nobodys_own_once_another_user_joined(cook):
    old, now = "agent=cook/session=old", "agent=cook/session=new/user=ben"
    said(cook, old, "The cellar door jams.", user="ben")
    assert "jams" in cook.context(now, "What is it with the cellar door?").text
    said(cook, old, "Does it?", user="cid")
    for user in ("ben", "cid"):
        assert (
            "jams" not in cook.context(f"agent=cook/session=new/user={user}", "What is it with the cellar door?").text
        )


def test_at_most_twenty_earlier_sessions_are_searched_the_latest_ones(cook):
    for number in range(25):
        session = f"agent=cook/session=old{number:02}/user=anna"
        said(cook, session, f"Cellar password number {number:02}.")
        linked(cook, session)
    hits = cook.context(HERE, "cellar password", limit=50).hits
    assert sorted(hit.text[-3:-1] for hit in hits) == [f"{number:02}" for number in range(5, 25)]


def private(memory):
    memory.streams.configure(ANNA, fact_buffer_max=1)
    memory.remember(ANNA, "Anna's PIN is 4711.")
    memory.remember(ANNA, "Anna's window holds this one.")
    memory.remember("agent=cook/user=ben", "Ben's PIN is 0815.")


@pytest.mark.parametrize("format", ["xml", "markdown", "json", "messages"])
def test_a_group_sees_nobodys_own_memory(cook, format):
    private(cook)
    said(cook, "agent=cook/session=s0/user=anna", "My PIN is 4711, says Anna.")
    linked(cook, "agent=cook/session=s0/user=anna")
    text = cook.context(GROUP, "Which PIN does Anna have?", users=["anna", "ben"], format=format).text
    assert "Salt the water early." in text
    assert not [word for word in ("4711", "0815", "vet", "window") if word in text]
    alone = cook.context(GROUP, "Which PIN does Anna have?", users=["anna"], format=format).text
    assert "4711" in alone
    assert "0815" not in alone


def test_whoever_joins_ends_what_a_cache_held_for_one(cook):
    private(cook)
    said(cook, GROUP, "Hello cook.", user="anna")
    assert "4711" in cook.context(GROUP, "Anna's PIN", users=["anna"]).text
    assert "vet" in cook.context(GROUP, "Anna's PIN", users=["anna"]).text
    said(cook, GROUP, "Hi, Ben here.", user="ben")
    for users in ((), ("anna",), ("ben",)):
        text = cook.context(GROUP, "Anna's PIN", users=users).text
        assert not [word for word in ("4711", "0815", "vet") if word in text]


def test_where_nobody_says_who_asks_nobodys_own_memory_is_shown(cook):
    private(cook)
    said(cook, GROUP, "Hello cook.", user="anna")
    for text in (cook.context(GROUP, "Anna's PIN").text, tool(cook, GROUP).call({"query": "Anna's PIN"})):
        assert not [word for word in ("4711", "vet") if word in text]
    assert "4711" in cook.context(GROUP, "Anna's PIN", users=["anna"]).text
    assert not [hit for hit in cook.look_up(GROUP, "PIN", users=["ben"]) if "PIN" in hit.text]


def test_a_user_in_the_scope_does_not_make_a_group_one_user(cook):
    private(cook)
    said(cook, GROUP, "Hello cook.", user="anna")
    assert "0815" not in cook.context(f"{GROUP}/user=ben", "Which PIN do I have?").text
    assert "4711" in cook.context(f"{GROUP}/user=anna", "Which PIN do I have?").text


def test_whoever_joins_a_session_sees_what_belongs_to_it_and_nothing_else_of_the_user(cook):
    private(cook)
    said(cook, HERE, "The dinner needs a cake.", *"abcd")
    context = cook.context(HERE, "Which cake does the dinner need, and Anna's PIN?", users=["ben"])
    assert "They plan a dinner for Friday." in context.static
    assert "The dinner needs a cake." in context.text
    assert not [word for word in ("4711", "0815", "vet", "window") if word in context.text]


def test_a_thread_that_others_joined_shows_nothing_of_the_users_session_around_it(cook):
    thread = "agent=cook/session=s1/thread=t1/user=anna"
    cook.remember(HERE, "The dinner is a surprise for Ben.")
    for users, seen in (((), True), (("ben",), False)):
        assert ("surprise" in cook.context(thread, "What is the dinner?", users=users).text) is seen


def test_someone_beside_a_user_without_sessions_sees_nothing_of_theirs(cook):
    said(cook, ANNA, "My PIN is 4711.", *"abcd")
    assert "4711" in cook.context(ANNA, "the PIN").text
    assert cook.context(ANNA, "the PIN", users=["ben"]).hits == ()
    assert cook.look_up(ANNA, "the PIN", users=["ben"]) == []


@pytest.mark.parametrize("format", ["xml", "markdown", "json", "messages"])
def test_sources_are_named_on_request_but_only_visible_ones(cook, format):
    source = ["m-own", "@agent=cook/session=g9#m-group"]
    cook.remember(ANNA, "Anna fishes.", source=source, source_scopes="agent=cook/session=g9")
    said(cook, HERE, "A trout was caught.", id="m-said")
    said(cook, HERE, *"abcd")
    plain = cook.context(HERE, "Which trout was caught?", format=format).text
    named = cook.context(HERE, "Which trout was caught?", format=format, sources=True).text
    assert not [id for id in ("m-own", "m-said", "m-group") if id in plain]
    assert [id for id in ("m-own", "m-said", "m-group") if id in named] == ["m-own", "m-said"]


@pytest.mark.parametrize("format", ["xml", "markdown", "messages"])
def test_the_static_part_opens_the_text_and_stays_the_same_from_turn_to_turn(cook, format):
    statics = []
    for turn in range(4):
        said(cook, HERE, f"Tell me more about salt, part {turn}.")
        context = cook.context(HERE, f"salt and water {turn}", tokens=300, format=format)
        assert context.text.startswith(context.static)
        statics.append(context.static)
    assert statics[0]
    assert len(set(statics)) == 1


def test_ages_stand_still_for_five_minutes_and_no_longer(cook):
    first = cook.context(HERE, now="2024-05-07T12:00").static
    assert "1 hour ago" in first
    said(cook, HERE, "Something happens in between.")
    assert cook.context(HERE, now="2024-05-07T12:04:59").static == first
    assert "2 hours ago" in cook.context(HERE, now="2024-05-07T13:00").static


def test_a_change_is_seen_at_once_in_this_process_and_from_another(cook, path):
    assert "Pepper" not in cook.context(HERE).text
    cook.remember(SHARD, "Pepper late.")
    assert "Pepper late." in cook.context(HERE).text
    with eunoe.open(path, embedder="none", form=False) as other:
        other.summaries.write(ANNA, "Anna moved to Turin.")
    assert "Turin" in cook.context(HERE).text
    cook.streams.configure(SHARD, fact_buffer_max=1)
    assert "Salt" not in cook.context(HERE).text


def test_what_is_forgotten_is_gone_from_the_cache_too(cook):
    kept = cook.remember(ANNA, "Anna's PIN is 4711.")
    assert "4711" in cook.context(HERE).text
    assert len(cook._engine.contexts.static_contexts) == 1
    cook.forget(ANNA, kept.id)
    assert len(cook._engine.contexts.static_contexts) == 0
    assert "4711" not in cook.context(HERE, "PIN").text


def test_the_cache_is_bounded_and_written_only_when_something_changed():
    statics, written = StaticContextCache(), []

    def write(parts, clock):
        written.append(clock)
        return StaticContext(str(len(written)))

    def body(key, stamp, now, summary):
        return statics.get(key, stamp, now, lambda: [StreamSection("user", "anna", summary)], write).body

    now = parse_time(NOW)
    assert [body("a", 1, now, "x") for _ in range(3)] == ["1"] * 3
    assert body("a", 2, now + timedelta(seconds=9), "x") == "1"
    assert body("a", 3, now + timedelta(seconds=9), "y") == "2"
    assert body("a", 3, now + timedelta(seconds=300), "y") == "3"
    assert written == [now, now, now + timedelta(seconds=300)]
    for number in range(500):
        body(number, 1, now, "x")
    assert len(statics) <= 128


words = st.lists(st.sampled_from(["dog", "cake", "Rome", "salt", "犬は好き", "<b>", "-->"]), max_size=6).map(" ".join)


@settings(max_examples=60)
@given(st.sampled_from(["xml", "markdown", "json", "messages"]), words, st.integers(1, 700), st.booleans())
def test_no_context_exceeds_its_budget(laden, format, message, budget, sources):
    context = laden.context(HERE, message, tokens=budget, format=format, sources=sources)
    assert context.tokens == token_count(context.text) <= budget
    assert context.faults == ()
    if format != "json":
        assert context.text.startswith(context.static)


@pytest.fixture(scope="module")
def laden(tmp_path_factory):
    """A memory with more than any budget holds."""
    path = tmp_path_factory.mktemp("laden") / "memory.db"
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        for shard in ("recipes", "wine <&> cheese"):
            memory.streams.configure({"agent": "cook", "shard": shard}, extraction_prompt="All.")
            facts = [f"The dog of guest {number} <likes> cake & salt -->" for number in range(40)]
            memory.remember_many({"agent": "cook", "shard": shard}, facts)
            memory.summaries.write(
                {"agent": "cook", "shard": shard}, "Salt is a mineral. Cakes need little of it. " * 30
            )
        memory.remember_many(ANNA, [{"text": f"犬は好きです {number}", "kind": "observation"} for number in range(30)])
        memory.summaries.write(ANNA, "Anna lives in Rome. " * 40)
        said(memory, HERE, *(f"In Rome the dog {number} ate " + "cake " * (number % 40) for number in range(200)))
        yield memory


def test_without_a_message_the_static_layer_has_the_whole_budget(laden):
    for arguments in ({"message": ""}, {"message": "the dog", "recall": "off"}):
        context = laden.context(HERE, tokens=500, **arguments)
        assert context.tokens > 450
        assert context.hits == ()


def test_a_message_with_a_cut_sign_is_answered_like_any_other(cook):
    assert "walnuts" in said_and_asked(cook, "I never eat walnuts.", "Who eats walnuts \ud83d")
    assert "walnuts" in tool(cook, HERE).call({"query": "walnuts \ud83d"})
    with pytest.raises(InputError, match="the message must be text, not bytes"):
        cook.context(HERE, b"walnuts")
    with pytest.raises(InputError, match="surrogatepass"):
        said(cook, HERE, "cut \ud83d")


def said_and_asked(memory, text, message):
    said(memory, HERE, text, *"abcd")
    return memory.context(HERE, message).text


def test_of_a_very_long_message_the_beginning_and_the_end_are_looked_up(cook):
    message = f"Mend this log of the kiln: {'x1 ' * 700_000}Why is the oven cold?"
    context = cook.context(HERE, message)
    assert len(context.query) <= 2001
    assert context.query.startswith("Mend this log of the kiln: x1")
    assert context.query.endswith("x1 Why is the oven cold?")
    assert parse_lookup_request(eunoe.Scope.parse(HERE), [message], (), (), 5).queries == (context.query,)


def test_limits(laden):
    assert len(laden.context(HERE, "the dog in Rome").hits) == 10
    assert len(laden.context(HERE, "the dog in Rome", limit=3).hits) == 3
    assert len(laden.context(HERE, "the dog in Rome", limit=3, tokens=3000).hits) == 3


def broken(error):
    def raises(*_, **__):
        raise error

    return raises


FAULTS = [StoreError("disk: secret words"), EmbedderError("secret words"), KeyError("secret words"), RecursionError()]


@pytest.mark.parametrize("error", FAULTS, ids=lambda error: type(error).__name__)
def test_a_fault_in_recall_costs_only_recall(cook, monkeypatch, caplog, error):
    monkeypatch.setattr("eunoe.recall.context.recall_for_message", broken(error))
    context = cook.context(HERE, "Which tea?")
    assert "Anna is a vet in Rome." in context.text
    assert context.hits == ()
    assert context.faults == (f"recall: {type(error).__name__}",)
    assert cook.status().faults == {"recall": 1}
    assert [record.name for record in caplog.records] == ["eunoe"]


@pytest.mark.parametrize("error", FAULTS, ids=lambda error: type(error).__name__)
def test_a_fault_in_the_static_layer_leaves_recall(cook, monkeypatch, error):
    said(cook, HERE, "My dog is called Bruno.", *"abcd")
    monkeypatch.setattr("eunoe.recall.context.read_sections", broken(error))
    context = cook.context(HERE, "What is the dog called?")
    assert [hit.text for hit in context.hits] == ["My dog is called Bruno."]
    assert context.static == ""
    assert context.faults == (f"static: {type(error).__name__}",)


def test_if_it_is_unknown_who_is_present_nothing_is_shown(cook, monkeypatch):
    monkeypatch.setattr("eunoe.recall.context.find_audience", broken(StoreError("gone")))
    context = cook.context(HERE, "What is the dog called?")
    assert (context.text, context.tokens, context.hits) == ("", 0, ())
    assert context.faults == ("static: StoreError",)


def test_a_fault_while_a_reason_is_looked_for_leaves_an_empty_context(memory, monkeypatch):
    memory.remember(ANNA, "Anna is a vet.")
    empty = memory.context("user=anna")
    assert (empty.text, len(empty.notes)) == ("", 1)
    monkeypatch.setattr("eunoe.recall.context.empty_context_notes", broken(StoreError("gone")))
    context = memory.context("user=anna")
    assert (context.text, context.notes, context.faults) == ("", (), ("static: StoreError",))


def test_a_damaged_summary_does_not_stop_the_reply(cook):
    store = steps_of(cook)
    with store.writing():
        row = store.stream(eunoe.Scope.parse(ANNA))
        store.connection.execute("UPDATE summaries SET revision = 'nonsense' WHERE stream = ?", (row.id,))
        store.advance(row.id)
    context = cook.context(HERE, "Which tea does Anna like?")
    assert "Salt" in context.text
    assert "tea" in context.text


def test_what_was_recalled_is_counted_once_and_only_that(cook):
    said(cook, HERE, "My dog is called Bruno.", *"abcd")
    [hit] = cook.context(HERE, "What is the dog called?").hits
    static = cook.list(SHARD).items[0]
    assert cook.admin.access_counts(HERE, [hit.id])[hit.id].times == 1
    assert cook.admin.access_counts(SHARD, [static.id])[static.id].times == 0


def test_an_incognito_session_reads_and_leaves_no_count(cook):
    cook.streams.configure(ANNA, fact_buffer_max=0)
    kept = cook.remember(ANNA, "Anna's dog is called Bruno.")
    cook.streams.set_incognito("agent=cook/session=secret/user=anna")
    context = cook.context("agent=cook/session=secret/user=anna", "What is the dog called?")
    assert [hit.id for hit in context.hits] == [kept.id]
    assert cook.look_up("agent=cook/session=secret/user=anna", "the dog")
    assert cook.admin.access_counts(ANNA, [kept.id])[kept.id].times == 0


def test_the_tool_keeps_the_group_rule(cook):
    private(cook)
    group = tool(cook, GROUP, users=["anna", "ben"])
    assert "PIN" not in group.call({"query": "Anna's PIN", "memory_types": ["user"]})
    assert "4711" in tool(cook, GROUP, users=["anna"]).call({"query": "Anna's PIN"})


def test_a_fault_behind_the_tool_is_told_without_details(cook, monkeypatch):
    monkeypatch.setattr("eunoe.recall.context.find_audience", broken(RuntimeError("secret words")))
    answer = tool(cook, HERE).call({"query": "tea"})
    assert answer == "The memory cannot be searched at the moment (an unexpected fault). Answer without it."
