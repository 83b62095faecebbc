# ruff: noqa: RUF001
"""Extraction by rule: whose words go where, within the limits, in the words they were said in."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eunoe
from eunoe.form.chunk import Proposal
from eunoe.form.extractive import extract_extractively
from eunoe.form.statements import find_memory_key
from eunoe.form.turns import TurnReader
from eunoe.model.scope import Scope
from eunoe.model.stream import PRESETS, Target
from eunoe.model.turn import Turn
from eunoe.text.sentences import word_count


def user(name: str = "anna", **changes: Any) -> Target:
    return Target("user", Scope(agent="cook", user=name), PRESETS["user"].changed(**changes), name)


def session(**changes: Any) -> Target:
    return Target("session", Scope(agent="cook", session="s1", user="anna"), PRESETS["session"].changed(**changes))


def shard(name: str = "bread", **changes: Any) -> Target:
    return Target("agent", Scope(agent="cook", shard=name), PRESETS["agent"].changed(**changes))


def talk(*lines: str) -> list[Turn]:
    """Turns out of "Anna: ..."; "Cook" is the agent, "Tool" a tool."""
    made = []
    for number, line in enumerate(lines):
        speaker, _, text = line.partition(": ")
        role = {"Cook": "assistant", "Tool": "tool"}.get(speaker, "user")
        made.append(Turn(f"m{number}", text, role, speaker, speaker.lower() if role == "user" else ""))
    return made


def extract_by_rules(targets: list[Target], turns: list[Turn]) -> list[Proposal]:
    return extract_extractively(targets, TurnReader().read(turns))


def texts(proposals: list[Proposal]) -> list[str]:
    return [proposal.text for proposal in proposals]


CHAT = talk(
    "Anna: Hi! How are you?",
    "Cook: Hello Anna, I'm fine. What can I do for you?",
    "Anna: I moved to Rome in May. It's hot here, haha.",
    "Cook: How lovely! You should try the ice cream.",
    "Anna: I'm allergic to peanuts, by the way.",
    "Cook: Thanks for telling me. Do you have children?",
    "Anna: Yes, two kids.",
    "Anna: Thanks a lot!",
)


def test_what_a_user_says_of_themselves_is_kept_in_their_words() -> None:
    found = extract_by_rules([user()], CHAT)
    assert texts(found) == [
        "Anna: I moved to Rome in May.",
        "Anna: I'm allergic to peanuts, by the way.",
        "Anna: Yes, two kids. (asked: Do you have children?)",
    ]


def test_each_proposal_names_its_turns_its_label_its_key_and_its_people() -> None:
    first, second, third = extract_by_rules([user()], CHAT)
    assert (first.sources, first.label, first.key) == (("m2",), "fact", "anna/home")
    assert (second.sources, second.label, second.key) == (("m4",), "preference", "anna/allergy to peanut")
    assert third.sources == ("m6", "m5")
    assert {proposal.kind for proposal in (first, second, third)} == {"observation"}
    assert first.people == ("Anna",)
    assert {proposal.target for proposal in (first, second, third)} == {0}


def test_small_talk_leaves_nothing_behind() -> None:
    chat = talk(
        "Anna: Hello there!", "Cook: Hi!", "Anna: haha ok", "Anna: Thank you so much.", "Anna: Can you help me?"
    )
    assert extract_by_rules([user(), shard()], chat) == []


def test_nobody_gets_what_another_said() -> None:
    chat = talk("Anna: I'm allergic to peanuts.", "Ben: I live in Oslo.", "Cook: I live in the cloud and love tea.")
    found = extract_by_rules([user("anna"), user("ben"), user("cleo")], chat)
    assert [(one.target, one.text) for one in found] == [
        (0, "Anna: I'm allergic to peanuts."),
        (1, "Ben: I live in Oslo."),
    ]


def test_a_session_keeps_what_was_decided_and_planned_by_all() -> None:
    chat = talk(
        "Anna: We decided to serve lamb at the party.",
        "Ben: I'm flying in on Friday at 3pm.",
        "Anna: I like the colour green.",
    )
    found = extract_by_rules([session()], chat)
    assert texts(found) == ["Anna: We decided to serve lamb at the party.", "Ben: I'm flying in on Friday at 3pm."]


def test_a_minimum_is_met_with_what_is_nearly_worth_it_and_not_with_noise() -> None:
    chat = talk("Anna: The soup was nice.", "Anna: Tom made a soup with beans for all of us.", "Cook: Good to hear!")
    stream = user(observation_extraction_min=1)
    assert texts(extract_by_rules([stream], chat)) == ["Anna: Tom made a soup with beans for all of us."]
    assert extract_by_rules([user()], chat) == []
    assert extract_by_rules([stream], chat[:1]) == []


def test_advice_of_the_agent_is_no_instruction() -> None:
    found = extract_by_rules([session(fact_extraction_min=0)], talk("Cook: Always use cold butter for the crust."))
    assert found == []


def test_a_shard_takes_what_is_about_its_subject() -> None:
    chat = talk(
        "Anna: Sourdough bread needs twelve hours at 20 degrees.",
        "Anna: The tram to the harbour costs 3 euros.",
        "Cook: Rye bread keeps for 7 days in a linen bag.",
    )
    found = extract_by_rules([shard("bread")], chat)
    assert texts(found) == [
        "Sourdough bread needs twelve hours at 20 degrees.",
        "Rye bread keeps for 7 days in a linen bag.",
    ]
    assert {one.people for one in found} == {()}


def test_nothing_private_reaches_a_shard() -> None:
    chat = talk(
        "Anna: My bread allergy was diagnosed in 2019.",
        "Anna: I bake bread at 12 Mill Lane.",
        "Cook: Anna bakes bread every Sunday at 9.",
        "Cook: Your bread order of 3 May costs 12 euros.",
        "Anna: Write to bread@anna.example for 3 loaves.",
        "Anna: Tom bakes bread and he was ill in 2020.",
        "Ben: Ich backe Brot, bread for 20 people.",
    )
    assert extract_by_rules([shard("bread")], chat) == []


def test_the_prompt_of_a_shard_says_what_it_is_about_and_what_not() -> None:
    target = shard("x", extraction_prompt="Opening hours of shops. Nothing on prices.")
    chat = talk(
        "Anna: The shop in the harbour opens at 9 on Sundays.", "Anna: The prices went up by 20 percent in May."
    )
    assert texts(extract_by_rules([target], chat)) == ["The shop in the harbour opens at 9 on Sundays."]


def test_a_long_sentence_is_cut_openly_and_within_its_words() -> None:
    chat = talk("Anna: I moved to Rome in May with Tom, " + "because the rent was far too high, " * 9 + "you know.")
    (found,) = extract_by_rules([user()], chat)
    assert found.text.startswith("Anna: I moved to Rome in May with Tom")
    assert found.text.endswith("…")
    assert word_count(found.text) <= PRESETS["user"].observation_max_words


def test_of_two_values_of_one_key_the_later_counts() -> None:
    chat = talk("Anna: I live in Rome.", "Anna: Sorry, old news. I moved to Milan.")
    assert texts(extract_by_rules([user()], chat)) == ["Anna: I moved to Milan."]


def test_what_is_said_twice_is_kept_once() -> None:
    chat = talk("Anna: I love green tea with mint.", "Anna: I really love green tea with mint!")
    assert len(extract_by_rules([user()], chat)) == 1


def test_a_secret_stays_in_the_log() -> None:
    chat = talk(
        "Cook: What is your password?", "Anna: Hunter 22.", "Anna: My PIN is 4711.", "Anna: My api key is ab12."
    )
    assert extract_by_rules([user(), session(), shard("password")], chat) == []


def test_a_question_of_ones_own_is_no_context_for_what_follows() -> None:
    (found,) = extract_by_rules([user()], talk("Anna: Where was I? I moved to Rome in May."))
    assert found.text == "Anna: I moved to Rome in May."


def test_longer_talk_may_leave_more_behind_up_to_eight_times() -> None:
    places = [f"Anna: In {1900 + n} my cousin number {n} bought house {n * 7} on Hill {n}." for n in range(100)]
    assert len(extract_by_rules([user()], talk(*places[:30]))) == 24
    assert 24 < len(extract_by_rules([user()], talk(*places, *places))) < 100
    assert len(extract_by_rules([user()], talk(*places, *(f"Tool: {'x' * 9000}" for _ in range(60))))) == 100


def test_what_may_change_is_kept_apart_from_what_stays() -> None:
    found = extract_by_rules([user()], talk("Anna: I'm allergic to peanuts and I live in Turin."))
    assert [(one.text, one.key) for one in found] == [
        ("Anna: I'm allergic to peanuts", "anna/allergy to peanut"),
        ("Anna: I live in Turin.", "anna/home"),
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "I live in Turin and have a nut allergy.",
        "Anna is allergic to nuts and lives in Turin.",
        "I live in Turin; Tom stays.",
        "I love coffee and my sister Ida.",
    ],
)
def test_a_sentence_that_says_more_than_its_value_has_no_key(sentence: str) -> None:
    assert find_memory_key("Anna", sentence) == ""


def test_an_allergy_is_kept_whatever_else_is_said() -> None:
    events = [f"Anna: In {1900 + n} my cousin number {n} bought house {n * 7} on Hill {n}." for n in range(20)]
    found = extract_by_rules(
        [user(observation_extraction_max=1)], talk(*events, "Anna: I am allergic to penicillin.", *events)
    )
    assert [one.text for one in found] == ["Anna: I am allergic to penicillin."]


def test_fields_that_are_not_asked_for_stay_empty() -> None:
    chat = talk("Anna: I moved to Rome in May.", "Anna: From now on use metric units.")
    assert {one.kind for one in extract_by_rules([user(extraction_fields=["fact"])], chat)} == {"fact"}
    both = extract_by_rules([user(extraction_fields=["fact", "observation"])], chat)
    assert [(one.kind, one.label) for one in both] == [("fact", "fact"), ("observation", "instruction")]


@pytest.mark.parametrize(
    "text", ["", "   ", "```\nI live = in(Rome)\n```", "{'i': 'live', 'in': ['rome']}", "?!?", "🙂"]
)
def test_a_turn_without_a_statement_is_passed_over(text: str) -> None:
    assert extract_by_rules([user()], [Turn("m", text, "user", "Anna", "anna")]) == []


def test_other_languages_are_understood_too() -> None:
    chat = talk(
        "Anna: Ich bin nach Berlin gezogen. Wie geht's dir?", "Ben: J'habite à Lyon.", "Cleo: 我住在上海。你好！"
    )
    found = extract_by_rules([user("anna"), user("ben"), user("cleo")], chat)
    assert [one.key for one in found] == ["anna/home", "ben/home", "cleo/home"]


TALKS = {
    "a week with an assistant": """
+ I just got back from Lisbon yesterday, totally jet lagged lol.
+ My brother Tomás lives there with his two kids, Inês and Rui.
+ On Thursday I have a dentist appointment at 3pm.
+ Please never schedule anything before 9:30.
+ I'm a nurse at the children's hospital.
+ My daughter Lia is 8.
- Could you remind me what the capital of Mongolia is?
- My kid asked.
- I am so tired today.
- If I had a million dollars I'd buy a boat.
- The wifi password is hunter2banana
+ I'm allergic to penicillin, in case you ever fill a form for me.
""",
    "a day at work": """
+ Use pytest, not unittest.
+ And always run ruff before committing.
+ Don't touch the migrations folder, Carla owns that.
+ We store money as integer cents everywhere, never floats.
+ Let's go with option B, the idempotency key in the header.
- I want you to fix it.
- Traceback (most recent call last):
- File "app/invoice.py", line 42, in total
- I prefer the second one.
+ we switched from poetry to uv last month
+ My editor is neovim.
- lgtm, ship it
""",
    "a group that goes skiing": """
+ I booked the chalet in Laax for Feb 14-18, it's 8 beds.
+ The total is 1920 CHF, so please pay me by January 20.
+ my girlfriend Sofie might join, will know next week
- agreed!
+ update: Sofie is coming
+ decision: we cook on Saturday.
+ I changed my mind, we eat out on Saturday instead.
- is there wifi?
""",
    "German": """
+ Ich wohne seit März in Köln.
+ Meine Tochter Lia ist vier.
+ Ich nehme jeden Tag Ramipril.
+ Antworte bitte immer auf Deutsch.
- Ich bin heute so müde.
- Danke dir!
""",
    "French": """
+ Je suis infirmière à Lyon.
+ J'ai deux enfants.
+ Réponds toujours en français.
- Je suis fatiguée.
- Merci beaucoup !
""",
    "Spanish": """
+ Tengo dos hijos.
+ Soy celíaca.
+ Responde siempre en español.
- Estoy cansado.
""",
    "Italian": """
+ Ho due figli.
+ Sono celiaco.
+ Rispondi sempre in italiano.
- Sono stanco.
""",
    "Portuguese": """
+ Tenho dois filhos.
+ Sou enfermeira.
+ Responda sempre em português.
- Estou cansada.
""",
}


@pytest.mark.parametrize("lines", TALKS.values(), ids=TALKS.keys())
def test_of_real_talk_the_lines_with_a_plus_are_kept_and_no_others(lines: str) -> None:
    said = lines.strip().splitlines()
    kept = [line[2:] for line in said if line.startswith("+")]
    found = extract_by_rules([user(observation_extraction_max=50)], talk(*(f"Anna: {line[2:]}" for line in said)))
    assert texts(found) == [f"Anna: {line}" for line in kept]


def test_what_takes_something_back_stays_with_what_it_takes_back() -> None:
    meat = "I stopped eating meat in March, so restaurants should be vegetarian."
    assert texts(extract_by_rules([user()], talk(f"Anna: {meat} Fish is ok though."))) == [
        f"Anna: {meat} Fish is ok though."
    ]
    (short,) = extract_by_rules([user()], talk("Anna: I'm vegetarian. Except for fish."))
    assert (short.text, short.key) == ("Anna: I'm vegetarian. Except for fish.", "anna/diet")


@pytest.mark.parametrize(
    ("lines", "whole"),
    [
        (["Anna: I'm vegetarian. Fish is ok though."], "Anna: I'm vegetarian. Fish is ok though."),
        (
            ["Anna: My landlady is Mrs Haugen. She has a cat called Admiral."],
            "Anna: My landlady is Mrs Haugen. She has a cat called Admiral.",
        ),
        (["Cook: Where do you live?", "Anna: Rome."], "Anna: Rome. (asked: Where do you live?)"),
        (["Anna: I'm vegetarian."], "Anna: I'm vegetarian."),
    ],
)
def test_what_just_fits_is_kept_whole(lines: list[str], whole: str) -> None:
    assert whole in texts(extract_by_rules([user(observation_max_words=word_count(whole))], talk(*lines)))
    assert whole not in texts(extract_by_rules([user(observation_max_words=word_count(whole) - 1)], talk(*lines)))


def test_a_value_that_may_change_takes_no_other_statement_along() -> None:
    found = extract_by_rules([user()], talk("Anna: I live in Rome. But my sister Ida lives in Oslo with her two kids."))
    assert texts(found) == ["Anna: I live in Rome.", "Anna: But my sister Ida lives in Oslo with her two kids."]


def test_sentences_of_one_kind_that_follow_each_other_are_one_memory() -> None:
    chat = talk("Anna: I play chess with friends. I play cards with colleagues.", "Anna: I play golf with neighbours.")
    found = extract_by_rules([user(observation_extraction_max=2)], chat)
    assert texts(found) == [
        "Anna: I play chess with friends. I play cards with colleagues.",
        "Anna: I play golf with neighbours.",
    ]


def test_what_answers_a_question_goes_before_what_was_said_unasked() -> None:
    chat = talk(
        "Cook: What do you do on Sundays?",
        "Anna: I play chess with friends.",
        "Anna: I play cards with colleagues.",
    )
    found = extract_by_rules([user(observation_extraction_max=1)], chat)
    assert texts(found) == ["Anna: I play chess with friends."]


def test_what_somebody_else_wrote_is_not_the_speakers() -> None:
    assert extract_by_rules([user()], talk("Anna: > I hate tea\n> I live in Rome.\nMe neither!")) == []


def test_a_document_of_a_hundred_thousand_sentences_hides_nothing_the_speaker_says() -> None:
    filler = "The pump of unit 7 was tested in May. " * 50_000
    found = extract_by_rules([user()], talk(f"Anna: {filler} I'm allergic to penicillin. {filler}"))
    assert "Anna: I'm allergic to penicillin." in texts(found)


@pytest.mark.parametrize(
    ("older", "newer", "left"),
    [
        ("I love coffee.", "I don't like coffee anymore.", 1),
        ("I'm allergic to nuts.", "I'm not allergic to nuts.", 1),
        ("I take metformin twice a day.", "I stopped taking metformin.", 1),
        ("Always answer in German.", "Always answer in English.", 1),
        ("My son is 8 years old.", "My son is 9 years old.", 1),
        ("Call me Beni.", "My name is Benjamin.", 2),
    ],
)
def test_the_newer_of_two_contradictions_is_left(older: str, newer: str, left: int) -> None:
    with eunoe.open(":memory:", llm="none", form=False) as memory:
        for number, said in enumerate((older, newer), 1):
            scope = f"agent=cook/session=s{number}/user=anna"
            memory.observe(scope, {"role": "user", "content": said, "time": f"2024-0{number}-01"})
            memory.form(scope)
        kept = [atom.text for atom in memory.list("agent=cook/user=anna", exact=True).items]
    assert kept == [f"anna: {said}" for said in (older, newer)][-left:]


def test_what_else_a_contradicted_sentence_says_is_left_too() -> None:
    with eunoe.open(":memory:", llm="none", form=False) as memory:
        for number, said in enumerate(("I love coffee and my sister Ida.", "I don't like coffee anymore."), 1):
            scope = f"agent=cook/session=s{number}/user=anna"
            memory.observe(scope, {"role": "user", "content": said, "time": f"2024-0{number}-01"})
            memory.form(scope)
        newer, rest = [atom.text for atom in memory.list("agent=cook/user=anna", exact=True).items]
    assert newer == "anna: I don't like coffee anymore."
    assert "my sister Ida" in rest
    assert rest.endswith("(until 2024-02-01)")


SAID = st.one_of(
    st.text(max_size=120),
    st.sampled_from(
        ["I live in Rome.", "Where do you live?", "Two.", "My sister Ida has 3 cats. She is 40.", "ok", "我喜欢茶。"]
    ),
)
TURNS = st.lists(
    st.tuples(SAID, st.sampled_from(["user", "assistant", "tool", "other"]), st.sampled_from(["anna", "ben"])),
    max_size=12,
).map(
    lambda rows: [
        Turn(f"m{n}", text, role, who, who if role == "user" else "") for n, (text, role, who) in enumerate(rows)
    ]
)


@settings(max_examples=100, deadline=None)
@given(TURNS, st.integers(1, 30))
def test_whatever_is_said_the_limits_hold(turns: list[Turn], most: int) -> None:
    targets = [
        user("anna", observation_max_words=most),
        session(fact_max_words=most, observation_max_words=most),
        shard(),
    ]
    found = extract_by_rules(targets, turns)
    ids = {turn.id: turn for turn in turns}
    for one in found:
        assert one.text.strip()
        assert word_count(one.text) <= (most if one.target < 2 else 35)
        assert set(one.sources) <= set(ids)
        assert one.target != 0 or ids[one.sources[0]].user == "anna"
    for place, (least, most_items) in enumerate([(0, 4), (0, 3), (0, 5)]):
        assert least <= sum(one.target == place for one in found) <= most_items


def test_a_question_of_another_user_is_not_kept_in_a_users_memory() -> None:
    said = talk(
        "Pooja: Where did you grow up, zanzibar?", "Anna: Leipzig.", "Cook: And where do you live?", "Anna: Rome."
    )
    (found,) = extract_by_rules([user()], said)
    assert (found.text, found.sources) == ("Anna: Rome. (asked: And where do you live?)", ("m3", "m2"))


def test_an_answer_to_another_user_that_stands_on_its_own_is_kept_alone() -> None:
    said = talk("Pooja: Where did you grow up, zanzibar?", "Anna: In Leipzig near the old brewery until 1999.")
    (found,) = extract_by_rules([user(fact_extraction_min=1)], said)
    assert (found.text, found.sources) == ("Anna: In Leipzig near the old brewery until 1999.", ("m1",))


def test_a_key_is_of_the_speaker_and_not_of_the_user_whose_conversation_it_is() -> None:
    said = [Turn("m1", "I live in Rome.", user="anna"), Turn("m2", "I live in Oslo.", speaker="Bob", user="anna")]
    assert [proposal.key for proposal in extract_by_rules([user()], said)] == ["anna/home", "bob/home"]


@pytest.mark.parametrize("said", ["Hi, I live in Turin.", "Eva and I live in Turin."])
def test_a_clause_that_says_nothing_is_no_memory_of_its_own(said: str) -> None:
    found = extract_by_rules([user()], talk(f"Anna: {said}"))
    assert texts(found) == [f"Anna: {said}"]


def test_no_instruction_is_lost_for_want_of_room() -> None:
    orders = [f"Anna: Always add {thing} to the soup." for thing in ("salt", "oil", "beans", "leeks", "corn", "rice")]
    found = extract_by_rules([user(observation_extraction_max=2)], talk(*orders))
    assert len(found) == 6
