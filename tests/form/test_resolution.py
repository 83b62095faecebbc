"""What becomes of proposals: merged, kept beside, or put in the place of what is older, in every order of arrival."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from itertools import count, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.conversation import ANNA, DAY, TALK, Conversation, home, propose
from tests.support.records import stream_of

import eunoe
from eunoe.form.chunk import Proposal
from eunoe.model.scope import Scope
from eunoe.model.turn import Turn
from eunoe.records.insertion import VectorBatch, pack_vectors
from eunoe.records.revisions import unabsorbed
from eunoe.store.schema import Absorption


@pytest.fixture
def conversation(memory):
    return Conversation(memory)


def test_a_kept_atom_has_its_source_its_time_and_its_people(conversation):
    report = conversation.resolve(
        propose("Anna likes tea.", 3, 1, kind="observation", label="preference", people=("Anna",))
    )
    [atom] = conversation.open_atoms().values()
    assert report.stored == (atom.id,)
    assert (atom.kind, atom.label, atom.people) == ("observation", "preference", ("Anna",))
    assert atom.source == tuple(f"@{TALK}#m{day}" for day in (1, 3))
    assert atom.time == DAY + timedelta(days=3)
    assert (atom.valid_from, atom.valid_to, atom.metadata) == (None, None, {})
    talk, stream = (stream_of(conversation.store, scope).id for scope in (TALK, ANNA))
    assert (talk, stream) in conversation.links()


def test_a_speaker_is_found_by_the_name_of_the_user_unless_the_conversation_is_theirs(conversation):
    first, second, *others = conversation.turns
    conversation.turns = [replace(first, speaker="Annie", user="anna"), replace(second, speaker="Benny", user="ben")]
    conversation.turns += others
    conversation.resolve(
        propose("Annie likes tea.", 0, people=("Annie",)), propose("Benny has a cat.", 1, people=("Benny",))
    )
    people = {text: atom.people for text, atom in conversation.open_atoms().items()}
    assert people == {"Annie likes tea.": ("Annie",), "Benny has a cat.": ("Benny", "ben")}


@pytest.mark.parametrize(
    ("speaker", "user", "people"),
    [("", "anna", ("anna",)), ("Bob", "anna", ("Bob",)), ("Benny", "ben", ("Benny", "ben")), ("", "", ())],
)
def test_what_names_nobody_is_about_who_said_it(conversation, speaker, user, people):
    conversation.turns = [replace(conversation.turns[0], speaker=speaker, user=user), *conversation.turns[1:]]
    conversation.resolve(propose("Likes tea.", 0), propose("Drinks it black.", 0, key="tea"))
    assert {text: atom.people for text, atom in conversation.open_atoms().items()} == {
        "Likes tea.": people,
        "Drinks it black.": (),
    }


def test_a_memory_of_who_said_it_is_superseded_by_one_that_names_them_otherwise(conversation):
    conversation.turns = [replace(turn, user="anna") for turn in conversation.turns]
    [old] = conversation.resolve(propose("Lives in Rome.", 0)).stored
    conversation.resolve(propose("Lives in Paris.", 1, people=("Anna Rossi",), replaces=(old,)))
    assert list(conversation.open_atoms()) == ["Lives in Paris."]


def test_in_its_own_conversation_a_source_is_named_by_its_id_alone(conversation):
    conversation.resolve(propose("Anna likes tea."), target=TALK)
    assert conversation.open_atoms(TALK)["Anna likes tea."].source == ("m0",)
    talk = stream_of(conversation.store, TALK).id
    assert (talk, talk) not in conversation.links()


def test_exact_duplicates_are_merged_with_their_sources(conversation):
    [kept] = conversation.resolve(propose("Anna likes tea.", 0, people=("Anna",))).stored
    before = conversation.record(kept).version
    report = conversation.resolve(propose(" anna LIKES  tea", 5, people=("anna", "Ben")))
    assert (report.stored, report.merged) == ((), 1)
    record = conversation.record(kept)
    assert record.supports == ((f"@{TALK}#m0",), (f"@{TALK}#m5",))
    assert record.people == ("Anna", "Ben")
    assert record.version > before
    again = conversation.resolve(propose("Anna likes tea.", 5))
    assert (again.merged, conversation.record(kept)) == (1, record)


def test_duplicates_in_one_batch_are_merged(conversation):
    report = conversation.resolve(
        propose("Anna likes tea.", 0),
        propose("Anna likes tea", 1),
        propose("Anna really likes tea.", 2),
        propose("Ben runs.", 2),
    )
    assert (len(report.stored), report.merged) == (2, 2)
    assert len(conversation.record(report.stored[0]).supports) == 3


def test_a_fact_and_an_observation_are_two(conversation):
    assert (
        len(conversation.resolve(propose("Anna likes tea."), propose("Anna likes tea.", kind="observation")).stored)
        == 2
    )


def test_near_duplicates_among_those_found_ahead_are_merged(conversation):
    [kept] = conversation.resolve(propose("Anna really loves green tea in the morning.", 0)).stored
    text = "Anna loves green tea in the morning."
    assert conversation.resolve(propose(text, 1), similar={text: {"gone": 0.9, kept: 0.9}}).merged == 1
    assert len(conversation.record(kept).supports) == 2


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("Anna paid 30 euros for the concert ticket.", "Anna paid 35 euros for the concert ticket."),
        ("Anna will eat meat at the party.", "Anna will not eat meat at the party."),
        ("The meeting with the bank is on 3 May.", "The meeting with the bank is on 4 May."),
        ("At work Anna reports to Ben every week.", "At work Anna reports to Carla every week."),
    ],
)
def test_what_differs_in_a_number_a_name_or_a_no_is_never_merged(conversation, one, two):
    vectors = VectorBatch("m", 2, dict.fromkeys((one, two), b"\x00\x3c\x00\x00"))
    [kept] = conversation.resolve(propose(one, 0)).stored
    report = conversation.resolve(propose(two, 1), similar={two: {kept: 0.99}}, vectors=vectors)
    assert (len(report.stored), report.merged) == (1, 0)
    assert set(conversation.open_atoms()) == {one, two}


def test_vectors_find_near_duplicates_that_words_alone_do_not(conversation):
    one, two = "Anna drinks green tea each morning gladly", "Anna drinks green tea every morning happily"
    report = conversation.resolve(propose(one), propose(two))
    assert len(report.stored) == 2
    three, four = f"{one} there", f"{two} there"
    near = pack_vectors(np.array([[1, 0], [0.99, 0.14]], dtype=np.float32), [1, 1])
    vector_report = conversation.resolve(
        propose(three), propose(four), vectors=VectorBatch("m", 2, dict(zip((three, four), near, strict=True)))
    )
    assert (len(vector_report.stored), vector_report.merged) == (1, 1)


def test_a_memory_given_by_hand_does_not_come_to_rest_on_a_message(conversation):
    kept = conversation.memory.remember(ANNA, "Anna likes tea.")
    assert conversation.resolve(propose("Anna likes tea.", 2, people=("Anna",))).merged == 1
    atom = conversation.memory.get(ANNA, kept.id)
    assert (atom.source, atom.people) == ((), ("Anna",))
    conversation.memory.forget(TALK, ids=["m2"])
    assert conversation.memory.get(ANNA, kept.id).text == "Anna likes tea."


def test_a_new_value_closes_the_old_one_and_links_both(conversation):
    [paris] = conversation.resolve(home("Paris", 1)).stored
    report = conversation.resolve(home("Rome", 5))
    [rome] = report.stored
    assert report.superseded == 1
    before, after = conversation.memory.history(ANNA, rome)
    assert (before.id, before.superseded_by, after.supersedes) == (paris, rome, paris)
    assert before.valid_to == after.valid_from == DAY + timedelta(days=5)
    assert before.valid_from == DAY + timedelta(days=1)
    assert list(conversation.open_atoms()) == ["Anna lives in Rome."]
    found = conversation.memory.recall(ANNA, "Where does Anna live?", as_of=DAY + timedelta(days=3))
    assert [hit.text for hit in found] == ["Anna lives in Paris."]


def test_what_comes_late_is_history_and_overrides_nothing(conversation):
    conversation.resolve(home("Rome", 10))
    report = conversation.resolve(home("Paris", 2))
    assert (len(report.stored), report.superseded) == (1, 0)
    assert conversation.resolve(home("Bern", 5)).superseded == 0
    assert list(conversation.open_atoms()) == ["Anna lives in Rome."]
    versions = conversation.memory.history(ANNA, report.stored[0])
    assert [version.text.split()[-1] for version in versions] == ["Paris.", "Bern.", "Rome."]
    assert [version.valid_to for version in versions] == [DAY + timedelta(days=day) for day in (5, 10)] + [None]
    assert [version.supersedes for version in versions[1:]] == [version.id for version in versions[:2]]
    assert [version.superseded_by for version in versions[:2]] == [version.id for version in versions[1:]]
    found = conversation.memory.recall(ANNA, "Where does Anna live?", as_of=DAY + timedelta(days=6))
    assert [hit.text for hit in found] == ["Anna lives in Bern."]


CITIES = ("Paris", "Rome", "Bern")


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(CITIES), st.booleans()), min_size=1, max_size=7), st.randoms())
def test_the_living_one_is_the_newest_by_time_in_every_order_of_arrival(tmp_path_factory, moves, chance):
    offers = [home(city, day) for day, (city, _) in enumerate(moves)]
    arrivals = [(offer, together) for offer, (_, together) in zip(offers, moves, strict=True)]
    chance.shuffle(arrivals)
    batches: list[list[Proposal]] = []
    for offer, together in arrivals:
        batches[-1].append(offer) if together and batches else batches.append([offer])
    with eunoe.open(tmp_path_factory.mktemp("late") / "memory.db", embedder="none") as memory:
        conversation = Conversation(memory, days=len(moves))
        for batch in batches:
            conversation.resolve(*batch)
        [(text, atom)] = conversation.open_atoms().items()
        assert text == offers[-1].text
        versions = memory.history(ANNA, atom.id)
        assert {version.text for version in versions} == {offer.text for offer in offers}
        everything = memory.list(ANNA, limit=1000, retired=True, exact=True).items
        assert sorted(item.id for item in everything) == sorted(version.id for version in versions)
        assert versions[-1].id == atom.id
        sources = {source for version in versions for source in version.source}
        assert sources == {f"@{TALK}#m{day}" for day in range(len(moves))}
        for version in versions:
            assert version.valid_to is None or version.valid_from <= version.valid_to


def test_messages_without_a_time_count_in_the_order_of_the_log(memory):
    conversation = Conversation(memory, days=0)
    memory.observe(TALK, [{"role": "user", "content": f"message {n}", "id": f"m{n}"} for n in range(3)])
    conversation.turns = [Turn(f"m{n}", f"message {n}") for n in range(3)]
    conversation.resolve(home("Rome", 2))
    conversation.resolve(home("Paris", 0))
    assert list(conversation.open_atoms()) == ["Anna lives in Rome."]


def test_the_same_key_of_other_people_is_another_matter(conversation):
    report = conversation.resolve(
        propose("Anna's car is red.", 0, key="car", people=("Anna",)),
        propose("Ben's car is blue.", 1, key="Car", people=("Ben",)),
        propose("Anna's car is green.", 2, key="CAR", people=("anna",)),
    )
    assert report.superseded == 1
    assert set(conversation.open_atoms()) == {"Ben's car is blue.", "Anna's car is green."}


def test_what_the_model_says_is_replaced_is_closed(conversation):
    conversation.resolve(propose("Anna owns a cat.", 0), propose("Anna has two birds.", 0), propose("Carl sings.", 0))
    ids = tuple(atom.id for atom in conversation.open_atoms().values())
    report = conversation.resolve(propose("The cat and the birds are gone.", 4, replaces=ids))
    assert (report.superseded, len(report.stored)) == (2, 1)
    assert set(conversation.open_atoms()) == {"Carl sings.", "The cat and the birds are gone."}
    versions = conversation.memory.history(ANNA, report.stored[0])
    assert {version.text for version in versions} == {
        "Anna owns a cat.",
        "Anna has two birds.",
        "The cat and the birds are gone.",
    }
    assert {version.superseded_by for version in versions[:2]} == set(report.stored)


def test_a_category_for_a_key_closes_nothing(conversation):
    texts = ["Anna likes tea.", "Anna likes running.", "Anna prefers short answers.", "Anna hates loud music."]
    texts += ["Anna is allergic to nuts."]
    for day, text in enumerate(texts):
        assert conversation.resolve(propose(text, day, key="anna/preference")).superseded == 0
    assert conversation.resolve(*(propose(f"{text} So she said.", 9, key="anna/preference") for text in texts))
    assert conversation.open_atoms().keys() >= set(texts)


def test_an_unrelated_sentence_replaces_nothing(conversation):
    stored = conversation.resolve(
        home("Paris", 0), propose("Anna is allergic to nuts.", 1), propose("Anna owns a cat.", 2)
    ).stored
    report = conversation.resolve(propose("Anna went for a walk.", 5, key="anna/home", replaces=stored))
    assert (report.superseded, len(conversation.open_atoms())) == (0, 4)


def test_what_else_a_closed_memory_says_stays_with_a_mark(conversation):
    with_eva = "Anna: I live in Turin with my wife Eva."
    rules = {"key": "anna/home", "author": "extractive", "people": ("Anna",)}
    [old] = conversation.resolve(propose(with_eva, 1, **rules)).stored
    report = conversation.resolve(propose("Anna: We moved to Rome.", 5, **rules))
    assert (len(report.stored), report.superseded) == (2, 1)
    marked = f"{with_eva} (until 2024-05-06)"
    assert set(conversation.open_atoms()) == {"Anna: We moved to Rome.", marked}
    assert next(hit.text for hit in conversation.memory.recall(ANNA, "Who is Anna's wife?")) == marked
    context = conversation.memory.context(TALK, "Who is my wife?").text
    assert "Eva" in context
    assert "Eva.\n" not in context.replace("</", "\n")
    atom = conversation.open_atoms()[marked]
    assert (atom.source, atom.people) == ((old, report.stored[0]), ("Anna",))
    assert atom.metadata == {"author": "extractive"}
    conversation.resolve(propose("Anna: We moved to Bern.", 8, **rules))
    assert set(conversation.open_atoms()) == {"Anna: We moved to Bern.", marked}


@pytest.mark.parametrize("gone", ["m1", "m5"])
def test_what_stayed_with_a_mark_falls_with_either_message(conversation, gone):
    conversation.resolve(home("Turin with her wife Eva", 1))
    conversation.resolve(home("Rome", 5))
    assert len(conversation.open_atoms()) == 2
    assert conversation.memory.forget(TALK, ids=[gone], verify=True).verified
    left = "Anna lives in Rome." if gone == "m1" else "Anna lives in Turin with her wife Eva."
    assert list(conversation.open_atoms()) == [left]


def test_a_mark_that_was_forgotten_does_not_come_back(conversation):
    conversation.resolve(home("Turin with her wife Eva", 1))
    conversation.resolve(home("Rome", 5))
    [marked] = [atom for text, atom in conversation.open_atoms().items() if "until" in text]
    conversation.memory.forget(ANNA, ids=[marked.id])
    conversation.resolve(home("Turin with her wife Eva", 2))
    assert list(conversation.open_atoms()) == ["Anna lives in Rome."]


def test_words_that_are_known_leave_what_else_the_older_say(conversation):
    conversation.resolve(home("Turin with her wife Eva", 1), propose("Anna lives in Rome.", 2))
    conversation.resolve(home("Rome", 5))
    assert set(conversation.open_atoms()) == {
        "Anna lives in Rome.",
        "Anna lives in Turin with her wife Eva. (until 2024-05-06)",
    }


def test_a_late_proposal_replaces_nothing_newer(conversation):
    [new] = conversation.resolve(propose("Anna sold the boat.", 9)).stored
    report = conversation.resolve(propose("Anna wants to buy a boat.", 3, replaces=(new,)))
    assert (report.superseded, list(conversation.open_atoms())) == (0, ["Anna sold the boat."])
    assert conversation.memory.get(ANNA, report.stored[0]).superseded_by == new


def test_words_that_are_known_close_what_they_replace(conversation):
    conversation.resolve(home("Paris", 1), propose("Anna lives in Rome.", 2))
    report = conversation.resolve(home("Rome", 3))
    assert (report.stored, report.merged, report.superseded) == ((), 1, 1)
    [atom] = conversation.open_atoms().values()
    assert (atom.text, atom.metadata) == ("Anna lives in Rome.", {"memory_key": "anna/home"})
    assert conversation.memory.history(ANNA, atom.id)[0].text == "Anna lives in Paris."
    conversation.resolve(home("Bern", 4))
    assert list(conversation.open_atoms()) == ["Anna lives in Bern."]


def test_a_pinned_memory_is_closed_only_by_hand(conversation):
    [paris] = conversation.resolve(home("Paris", 1)).stored
    conversation.memory.pin(ANNA, paris)
    report = conversation.resolve(home("Rome", 5, replaces=(paris,)))
    assert (len(report.stored), report.superseded) == (1, 0)
    assert set(conversation.open_atoms()) == {"Anna lives in Paris.", "Anna lives in Rome."}
    conversation.resolve(home("Bern", 6))
    assert set(conversation.open_atoms()) == {"Anna lives in Paris.", "Anna lives in Bern."}


def test_nothing_crosses_scopes(conversation):
    ben = Scope(agent="cook", user="ben")
    [paris] = conversation.resolve(home("Paris", 1)).stored
    report = conversation.resolve(
        home("Rome", 5, replaces=(paris,)),
        home("Paris", 6),
        target=ben,
        similar={"Anna lives in Paris.": {paris: 1.0}},
    )
    assert (len(report.stored), report.merged) == (2, 0)
    atom = conversation.memory.get(ANNA, paris)
    assert (atom.retired, atom.source) == (None, (f"@{TALK}#m1",))
    assert list(conversation.open_atoms(ben)) == ["Anna lives in Paris."]


def test_a_message_cannot_be_replaced(conversation):
    conversation.resolve(
        propose("Anna wrote.", 1, replaces=("m0",)), target=TALK, similar={"Anna wrote.": {"m0": 1.0, "m1": 1.0}}
    )
    assert conversation.record("m0", TALK).retired is None


def test_what_was_forgotten_stays_away(conversation):
    [kept] = conversation.resolve(propose("Anna likes tea.", 0)).stored
    conversation.memory.forget(ANNA, ids=[kept])
    report = conversation.resolve(propose("anna likes TEA", 1), propose("Anna likes tea.", 2, kind="observation"))
    assert (report.stored, report.refused) == ((), 2)
    assert conversation.open_atoms() == {}


def test_forgetting_what_was_said_once_leaves_what_was_said_at_other_times(conversation):
    for city, day in (("Paris", 1), ("Rome", 5), ("Bern", 3)):
        conversation.resolve(home(city, day))
    report = conversation.memory.forget(TALK, ids=["m3"], verify=True)
    assert (len(report.atoms), report.verified) == (1, True)
    [rome] = conversation.open_atoms().values()
    before, after = conversation.memory.history(ANNA, rome.id)
    assert (before.text, after.text) == ("Anna lives in Paris.", "Anna lives in Rome.")
    assert (before.superseded_by, after.supersedes) == (rome.id, before.id)
    assert before.valid_to == after.valid_from == DAY + timedelta(days=5)


def test_forgetting_what_replaced_several_opens_them_again(conversation):
    stored = conversation.resolve(
        home("Paris", 0), propose("Anna is based in Bern.", 1), propose("Anna lived in Oslo.", 2)
    ).stored
    conversation.resolve(home("Rome", 8, replaces=stored[1:]))
    assert list(conversation.open_atoms()) == ["Anna lives in Rome."]
    conversation.memory.forget(TALK, ids=["m8"])
    assert [atom.id for atom in conversation.open_atoms().values()] == list(stored)
    assert {atom.valid_to for atom in conversation.open_atoms().values()} == {None}
    assert [len(conversation.memory.history(ANNA, id)) for id in stored] == [1, 1, 1]


@settings(max_examples=25)
@given(st.lists(st.sampled_from(CITIES), min_size=2, max_size=6), st.data())
def test_what_is_left_after_forgetting_is_one_line_of_history(tmp_path_factory, cities, data):
    with eunoe.open(tmp_path_factory.mktemp("gap") / "memory.db", embedder="none") as memory:
        conversation = Conversation(memory, days=len(cities))
        for day in data.draw(st.permutations(range(len(cities)))):
            conversation.resolve(home(cities[day], day))
        gone = data.draw(st.sets(st.integers(0, len(cities) - 1), min_size=1, max_size=len(cities) - 1))
        memory.forget(TALK, ids=[f"m{day}" for day in gone])
        living = list(conversation.open_atoms().values())
        everything = memory.list(ANNA, limit=1000, retired=True, exact=True).items
        assert len(living) == (1 if everything else 0)
        for atom in living:
            versions = memory.history(ANNA, atom.id)
            assert {version.id for version in versions} == {item.id for item in everything}
            assert versions[-1] == atom
            assert [version.superseded_by for version in versions[:-1]] == [version.id for version in versions[1:]]
        named = {source for item in everything for source in item.source}
        assert named.isdisjoint({f"@{TALK}#m{day}" for day in gone})


def test_what_rests_on_no_message_that_is_there_is_refused(conversation):
    conversation.memory.forget(TALK, ids=["m4"])
    report = conversation.resolve(
        propose("Anna left.", 4), propose("Anna came.", 4, 5), Proposal(0, "fact", "Anna flew.", ("m99",))
    )
    assert report.refused == 2
    assert conversation.open_atoms()["Anna came."].source == (f"@{TALK}#m5",)
    assert conversation.resolve(propose(" ")).refused == 1


def test_merged_and_superseded_observations_stay_absorbed(conversation):
    [paris] = conversation.resolve(home("Paris", 1, kind="observation")).stored
    stream = stream_of(conversation.store, ANNA).id
    with conversation.store.writing():
        conversation.store.save([Absorption(stream, paris, 1)])
    conversation.resolve(home("Paris", 2, kind="observation"))
    [rome] = conversation.resolve(home("Rome", 5, kind="observation")).stored
    with conversation.store.reading():
        assert conversation.store.load(Absorption, stream=stream) == [Absorption(stream, paris, 1)]
        assert [record.id for record in unabsorbed(conversation.store, stream)] == [rome]


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_remembering_with_a_key_follows_the_time_that_is_given(memory, order):
    cities = [("Paris", "2020-01-01"), ("Rome", "2022-01-01"), ("Bern", "2024-01-01")]
    for place in order:
        city, start = cities[place]
        memory.remember("user=anna", f"Anna lives in {city}.", valid_from=start, metadata={"memory_key": "home"})
    [living] = memory.list("user=anna", exact=True).items
    assert living.text == "Anna lives in Bern."
    versions = memory.history("user=anna", living.id)
    assert [version.text.split()[-1] for version in versions] == ["Paris.", "Rome.", "Bern."]
    assert [version.valid_to for version in versions[:2]] == [version.valid_from for version in versions[1:]]


FACTS = {
    "home": "Anna lives in Turin.",
    "job": "Anna works as a nurse.",
    "employer": "Anna works at Gradenigo.",
    "tea": "Anna likes tea.",
    "running": "Anna likes running.",
    "nuts": "Anna is allergic to nuts.",
    "milk": "Anna is allergic to milk.",
    "dog": "Anna's dog is called Rex.",
    "cat": "Anna has a cat.",
    "sister": "Anna's sister Lea lives in Milan.",
    "colour": "Anna's favourite colour is green.",
    "food": "Anna's favourite food is pizza.",
    "phone": "Anna's phone number is 555-0101.",
    "trip": "Anna plans a trip to Norway in August.",
    "answers": "Anna prefers short answers.",
}
"""Live facts, each under a memory key of its own name and under one that all of them share."""
SENTENCES = {
    "Anna moved to Rome.": {"home"},
    "Anna now works as a teacher.": {"job"},
    "Anna's favourite colour is blue.": {"colour"},
    "Anna's phone number is 555-0199.": {"phone"},
    "Anna's dog is called Bruno.": {"dog"},
    "Anna does not like tea.": {"tea"},
    "Anna likes opera.": set(),
    "Anna went for a walk in Turin.": set(),
    "Anna is tired.": set(),
    "Anna's brother lives in Paris.": set(),
    "Anna has a parrot.": set(),
    "Anna is allergic to dust.": set(),
    "Anna's favourite book is Emma.": set(),
    "Anna wants to learn Spanish.": set(),
    "Anna met Lea in Milan.": set(),
    "All that was known is replaced.": set(),
    "Nothing is true any more.": set(),
    "OK.": set(),
    "Anna sold her bike in Turin.": set(),
    "Anna ate pizza with the nurse.": set(),
}
"""What a model says, and the facts that it is about."""
WAYS = ("category", "stolen key", "all replaced", "key and all replaced", "true key")
NUMBERS = count()
LIES = list(product(SENTENCES, WAYS))


@pytest.fixture(scope="module")
def anna(tmp_path_factory):
    path = tmp_path_factory.mktemp("lies") / "memory.db"
    with eunoe.open(path, embedder="none", form=False) as memory:
        yield Conversation(memory)


@pytest.mark.parametrize("category", [False, True], ids=["own keys", "one category"])
@pytest.mark.parametrize(("sentence", "way"), LIES)
def test_no_live_fact_is_closed_that_the_sentence_is_not_about(anna, sentence, way, category):
    chance, scope = random.Random(f"{sentence} {way}"), Scope(agent="cook", user=f"anna{next(NUMBERS)}")
    keys = {name: "anna/preference" if category else f"anna/{name}" for name in FACTS}
    facts = [propose(text, 0, key=keys[name], people=("Anna",)) for name, text in FACTS.items()]
    ids = anna.resolve(*facts, target=scope).stored
    assert len(anna.open_atoms(scope)) == len(FACTS)
    about = SENTENCES[sentence]
    key = {
        "category": "anna/preference",
        "stolen key": f"anna/{chance.choice(sorted(set(FACTS) - about))}",
        "key and all replaced": f"anna/{chance.choice(sorted(FACTS))}",
        "true key": next((keys[name] for name in about), ""),
    }.get(way, "")
    replaces = ids if "all replaced" in way else ()
    anna.resolve(propose(sentence, 5, key=key, people=("Anna",), replaces=replaces), target=scope)
    closed = {name for name, text in FACTS.items() if text not in anna.open_atoms(scope)}
    assert closed <= about
    assert sentence in anna.open_atoms(scope)
    if way == "true key" or replaces:
        assert closed == about
