"""What becomes of proposals: merged, kept beside, or put in the place of what is older, in every order of arrival."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from eunoe.records.rows import supports
from hypothesis import given, settings
from hypothesis import strategies as st

import eunoe
from eunoe.form.proposal import Proposal
from eunoe.form.resolution import settle
from eunoe.model.presets import PRESETS
from eunoe.model.report import FormReport
from eunoe.model.scope import Scope
from eunoe.model.stream import Target
from eunoe.model.time import to_micros
from eunoe.model.turn import Turn
from eunoe.records.insertion import VectorBatch, pack_vectors

TALK = Scope(agent="cook", session="s1", user="anna")
ANNA = Target("user", Scope(agent="cook", user="anna"), PRESETS["user"], "anna")
DAY = datetime(2024, 5, 1, tzinfo=UTC)
NOW = to_micros(datetime(2025, 1, 1, tzinfo=UTC))


class Desk:
    """A memory with a conversation of one message a day, and proposals made from it."""

    def __init__(self, memory, days=30):
        self.memory = memory
        self.store = memory._engine.store
        messages = [
            {"role": "user", "content": f"message {n}", "id": f"m{n}", "time": DAY + timedelta(days=n)}
            for n in range(days)
        ]
        memory.observe(TALK, messages)
        self.turns = [Turn(f"m{n}", f"message {n}", time=DAY + timedelta(days=n)) for n in range(days)]

    def settle(self, *proposals, target=ANNA, near=None, vectors=None, conversation=TALK, turns=None):
        with self.store.writing():
            return settle(
                self.store,
                conversation,
                target,
                proposals,
                self.turns if turns is None else turns,
                near or {},
                vectors or VectorBatch(),
                NOW,
            )

    def living(self, scope=ANNA.scope):
        return {item.text: item for item in self.memory.list(scope, limit=1000).items if not hasattr(item, "role")}

    def row(self, id, scope=ANNA.scope):
        with self.store.reading():
            stream = self.store.stream(str(scope))
            return self.store.by_id(stream.id, [id])[0]


@pytest.fixture
def desk(memory):
    return Desk(memory)


def said(text, *days, kind="fact", **fields):
    return Proposal(0, kind, text, tuple(f"m{day}" for day in days or (0,)), **fields)


def home(city, day, **fields):
    return said(f"Anna lives in {city}.", day, key="anna/home", **fields)


def test_a_kept_atom_has_its_source_its_time_and_its_people(desk):
    report = desk.settle(said("Anna likes tea.", 3, 1, kind="observation", label="preference", people=("Anna",)))
    [atom] = desk.living().values()
    assert report.stored == (atom.id,)
    assert (atom.kind, atom.label, atom.people) == ("observation", "preference", ("Anna",))
    assert atom.source == tuple(f"@{TALK}#m{day}" for day in (1, 3))
    assert atom.time == DAY + timedelta(days=3)
    assert (atom.valid_from, atom.valid_to, atom.metadata) == (None, None, {})
    with desk.store.reading():
        talk, stream = (desk.store.stream(str(scope)) for scope in (TALK, ANNA.scope))
        assert desk.store.books.resting_on(talk.id) == [stream]


def test_in_its_own_conversation_a_source_is_named_by_its_id_alone(desk):
    desk.settle(said("Anna likes tea."), target=Target("session", TALK, PRESETS["session"]))
    assert desk.living(TALK)["Anna likes tea."].source == ("m0",)
    with desk.store.reading():
        talk = desk.store.stream(str(TALK))
        assert talk.id not in [stream.id for stream in desk.store.books.resting_on(talk.id)]


def test_exact_duplicates_are_merged_with_their_sources(desk):
    [kept] = desk.settle(said("Anna likes tea.", 0, people=("Anna",))).stored
    before = desk.row(kept).version
    report = desk.settle(said(" anna LIKES  tea", 5, people=("anna", "Ben")))
    assert (report.stored, report.merged) == ((), 1)
    row = desk.row(kept)
    assert supports(row) == [(f"@{TALK}#m0",), (f"@{TALK}#m5",)]
    assert json.loads(row.people) == ["Anna", "Ben"]
    assert row.version > before
    again = desk.settle(said("Anna likes tea.", 5))
    assert (again.merged, desk.row(kept)) == (1, row)


def test_duplicates_in_one_batch_are_merged(desk):
    report = desk.settle(
        said("Anna likes tea.", 0), said("Anna likes tea", 1), said("Anna really likes tea.", 2), said("Ben runs.", 2)
    )
    assert (len(report.stored), report.merged) == (2, 2)
    assert len(supports(desk.row(report.stored[0]))) == 3


def test_a_fact_and_an_observation_are_two(desk):
    assert len(desk.settle(said("Anna likes tea."), said("Anna likes tea.", kind="observation")).stored) == 2


def test_near_duplicates_among_those_found_ahead_are_merged(desk):
    [kept] = desk.settle(said("Anna really loves green tea in the morning.", 0)).stored
    text = "Anna loves green tea in the morning."
    assert desk.settle(said(text, 1), near={text: ["gone", kept]}).merged == 1
    assert len(supports(desk.row(kept))) == 2


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("Anna paid 30 euros for the concert ticket.", "Anna paid 35 euros for the concert ticket."),
        ("Anna will eat meat at the party.", "Anna will not eat meat at the party."),
        ("The meeting with the bank is on 3 May.", "The meeting with the bank is on 4 May."),
        ("At work Anna reports to Ben every week.", "At work Anna reports to Carla every week."),
    ],
)
def test_what_differs_in_a_number_a_name_or_a_no_is_never_merged(desk, one, two):
    vectors = VectorBatch("m", 2, dict.fromkeys((one, two), b"\x00\x3c\x00\x00"))
    [kept] = desk.settle(said(one, 0)).stored
    report = desk.settle(said(two, 1), near={two: [kept]}, vectors=vectors)
    assert (len(report.stored), report.merged) == (1, 0)
    assert set(desk.living()) == {one, two}


def test_vectors_find_near_duplicates_that_words_alone_do_not(desk):
    import numpy as np

    one, two = "Anna drinks green tea each morning gladly", "Anna drinks green tea every morning happily"
    report = desk.settle(said(one), said(two))
    assert len(report.stored) == 2
    three, four = f"{one} there", f"{two} there"
    near = pack_vectors(np.array([[1, 0], [0.99, 0.14]], dtype=np.float32), [1, 1])
    desk2 = desk.settle(
        said(three), said(four), vectors=VectorBatch("m", 2, dict(zip((three, four), near, strict=True)))
    )
    assert (len(desk2.stored), desk2.merged) == (1, 1)


def test_a_memory_given_by_hand_does_not_come_to_rest_on_a_message(desk):
    kept = desk.memory.remember(ANNA.scope, "Anna likes tea.")
    assert desk.settle(said("Anna likes tea.", 2, people=("Anna",))).merged == 1
    atom = desk.memory.get(ANNA.scope, kept.id)
    assert (atom.source, atom.people) == ((), ("Anna",))
    desk.memory.forget(TALK, ids=["m2"])
    assert desk.memory.get(ANNA.scope, kept.id).text == "Anna likes tea."


def test_a_new_value_closes_the_old_one_and_links_both(desk):
    [paris] = desk.settle(home("Paris", 1)).stored
    report = desk.settle(home("Rome", 5))
    [rome] = report.stored
    assert report.superseded == 1
    before, after = desk.memory.history(ANNA.scope, rome)
    assert (before.id, before.superseded_by, after.supersedes) == (paris, rome, paris)
    assert before.valid_to == after.valid_from == DAY + timedelta(days=5)
    assert before.valid_from == DAY + timedelta(days=1)
    assert list(desk.living()) == ["Anna lives in Rome."]
    found = desk.memory.recall(ANNA.scope, "Where does Anna live?", as_of=DAY + timedelta(days=3))
    assert [hit.text for hit in found] == ["Anna lives in Paris."]


def test_what_comes_late_is_history_and_overrides_nothing(desk):
    desk.settle(home("Rome", 10))
    report = desk.settle(home("Paris", 2))
    assert (len(report.stored), report.superseded) == (1, 0)
    assert desk.settle(home("Bern", 5)).superseded == 0
    assert list(desk.living()) == ["Anna lives in Rome."]
    versions = desk.memory.history(ANNA.scope, report.stored[0])
    assert [version.text.split()[-1] for version in versions] == ["Paris.", "Bern.", "Rome."]
    assert [version.valid_to for version in versions] == [DAY + timedelta(days=day) for day in (5, 10)] + [None]
    assert [version.supersedes for version in versions[1:]] == [version.id for version in versions[:2]]
    assert [version.superseded_by for version in versions[:2]] == [version.id for version in versions[1:]]
    found = desk.memory.recall(ANNA.scope, "Where does Anna live?", as_of=DAY + timedelta(days=6))
    assert [hit.text for hit in found] == ["Anna lives in Bern."]


def test_late_words_that_stand_in_the_history_are_not_repeated(desk):
    desk.settle(home("Paris", 2))
    [rome] = desk.settle(home("Rome", 10)).stored
    report = desk.settle(home("Paris", 3))
    assert (report.stored, report.merged) == ((), 1)
    assert len(desk.memory.history(ANNA.scope, rome)) == 2


def test_what_was_said_again_since_is_not_overridden_by_what_was_said_between(desk):
    desk.settle(home("Paris", 2))
    desk.settle(home("Paris", 9))
    desk.settle(home("Rome", 5))
    assert list(desk.living()) == ["Anna lives in Paris."]


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
        desk = Desk(memory, days=len(moves))
        for batch in batches:
            desk.settle(*batch)
        [(text, atom)] = desk.living().items()
        assert text == offers[-1].text
        versions = memory.history(ANNA.scope, atom.id)
        assert {version.text for version in versions} == {offer.text for offer in offers}
        everything = memory.list(ANNA.scope, limit=1000, retired=True).items
        assert sorted(item.id for item in everything) == sorted(version.id for version in versions)
        assert versions[-1].id == atom.id
        sources = {source for version in versions for source in version.source}
        assert sources == {f"@{TALK}#m{day}" for day in range(len(moves))}
        for version in versions:
            assert version.valid_to is None or version.valid_from <= version.valid_to


def test_messages_without_a_time_count_in_the_order_of_the_log(memory):
    desk = Desk(memory, days=0)
    memory.observe(TALK, [{"role": "user", "content": f"message {n}", "id": f"m{n}"} for n in range(3)])
    desk.turns = [Turn(f"m{n}", f"message {n}") for n in range(3)]
    desk.settle(home("Rome", 2))
    desk.settle(home("Paris", 0))
    assert list(desk.living()) == ["Anna lives in Rome."]


def test_the_same_key_of_other_people_is_another_matter(desk):
    report = desk.settle(
        said("Anna's car is red.", 0, key="car", people=("Anna",)),
        said("Ben's car is blue.", 1, key="Car", people=("Ben",)),
        said("Anna's car is green.", 2, key="CAR", people=("anna",)),
    )
    assert report.superseded == 1
    assert set(desk.living()) == {"Ben's car is blue.", "Anna's car is green."}


def test_what_the_model_says_is_replaced_is_closed(desk):
    desk.settle(said("Anna owns a cat.", 0), said("Ben feeds birds.", 0), said("Carl sings.", 0))
    ids = {text: atom.id for text, atom in desk.living().items()}
    report = desk.settle(
        said("The cat and the birds are gone.", 4, replaces=(ids["Anna owns a cat."], ids["Ben feeds birds."]))
    )
    assert (report.superseded, len(report.stored)) == (2, 1)
    assert set(desk.living()) == {"Carl sings.", "The cat and the birds are gone."}
    versions = desk.memory.history(ANNA.scope, report.stored[0])
    assert {version.text for version in versions} == {
        "Anna owns a cat.",
        "Ben feeds birds.",
        "The cat and the birds are gone.",
    }
    assert {version.superseded_by for version in versions[:2]} == set(report.stored)


def test_a_late_proposal_replaces_nothing_newer(desk):
    [new] = desk.settle(said("Anna sold the boat.", 9)).stored
    report = desk.settle(said("Anna wants to buy a boat.", 3, replaces=(new,)))
    assert (report.superseded, list(desk.living())) == (0, ["Anna sold the boat."])
    assert desk.memory.get(ANNA.scope, report.stored[0]).superseded_by == new


def test_words_that_are_known_close_what_they_replace(desk):
    desk.settle(home("Paris", 1), said("Anna lives in Rome.", 2))
    report = desk.settle(home("Rome", 3))
    assert (report.stored, report.merged, report.superseded) == ((), 1, 1)
    [atom] = desk.living().values()
    assert (atom.text, atom.metadata) == ("Anna lives in Rome.", {"memory_key": "anna/home"})
    assert desk.memory.history(ANNA.scope, atom.id)[0].text == "Anna lives in Paris."
    desk.settle(home("Bern", 4))
    assert list(desk.living()) == ["Anna lives in Bern."]


def test_a_pinned_memory_is_closed_only_by_hand(desk):
    [paris] = desk.settle(home("Paris", 1)).stored
    desk.memory.pin(ANNA.scope, paris)
    report = desk.settle(home("Rome", 5, replaces=(paris,)))
    assert (len(report.stored), report.superseded) == (1, 0)
    assert set(desk.living()) == {"Anna lives in Paris.", "Anna lives in Rome."}
    desk.settle(home("Bern", 6))
    assert set(desk.living()) == {"Anna lives in Paris.", "Anna lives in Bern."}


def test_nothing_crosses_scopes(desk):
    ben = Target("user", Scope(agent="cook", user="ben"), PRESETS["user"], "ben")
    [paris] = desk.settle(home("Paris", 1)).stored
    report = desk.settle(
        home("Rome", 5, replaces=(paris,)),
        home("Paris", 6),
        target=ben,
        near={"Anna lives in Paris.": [paris]},
    )
    assert (len(report.stored), report.merged) == (2, 0)
    atom = desk.memory.get(ANNA.scope, paris)
    assert (atom.retired, atom.source) == (None, (f"@{TALK}#m1",))
    assert list(desk.living(ben.scope)) == ["Anna lives in Paris."]


def test_a_message_cannot_be_replaced(desk):
    session = Target("session", TALK, PRESETS["session"])
    desk.settle(said("Anna wrote.", 1, replaces=("m0",)), target=session, near={"Anna wrote.": ["m0", "m1"]})
    assert desk.row("m0", TALK).retired is None


def test_what_was_forgotten_stays_away(desk):
    [kept] = desk.settle(said("Anna likes tea.", 0)).stored
    desk.memory.forget(ANNA.scope, ids=[kept])
    report = desk.settle(said("anna likes TEA", 1), said("Anna likes tea.", 2, kind="observation"))
    assert (report.stored, report.refused) == ((), 2)
    assert desk.living() == {}


def test_forgetting_what_was_said_once_leaves_what_was_said_at_other_times(desk):
    for city, day in (("Paris", 1), ("Rome", 5), ("Bern", 3)):
        desk.settle(home(city, day))
    report = desk.memory.forget(TALK, ids=["m3"], verify=True)
    assert (len(report.atoms), report.verified) == (1, True)
    [rome] = desk.living().values()
    before, after = desk.memory.history(ANNA.scope, rome.id)
    assert (before.text, after.text) == ("Anna lives in Paris.", "Anna lives in Rome.")
    assert (before.superseded_by, after.supersedes) == (rome.id, before.id)
    assert before.valid_to == after.valid_from == DAY + timedelta(days=5)


def test_forgetting_the_last_value_brings_the_one_before_back(desk):
    desk.settle(home("Paris", 1))
    desk.settle(home("Rome", 5))
    desk.memory.forget(TALK, ids=["m5"])
    [paris] = desk.living().values()
    assert (paris.text, paris.valid_to, paris.superseded_by) == ("Anna lives in Paris.", None, "")
    assert desk.memory.history(ANNA.scope, paris.id) == [paris]
    assert [hit.text for hit in desk.memory.recall(ANNA.scope, "Where does Anna live?")] == ["Anna lives in Paris."]
    assert desk.settle(home("Rome", 7)).refused == 1


def test_forgetting_what_replaced_several_opens_them_again(desk):
    stored = desk.settle(home("Paris", 0), said("Ben feeds birds.", 1), said("Anna owns a cat.", 2)).stored
    desk.settle(home("Rome", 8, replaces=stored[1:]))
    assert list(desk.living()) == ["Anna lives in Rome."]
    desk.memory.forget(TALK, ids=["m8"])
    assert [atom.id for atom in desk.living().values()] == list(stored)
    assert {atom.valid_to for atom in desk.living().values()} == {None}
    assert [len(desk.memory.history(ANNA.scope, id)) for id in stored] == [1, 1, 1]


@settings(max_examples=25)
@given(st.lists(st.sampled_from(CITIES), min_size=2, max_size=6), st.data())
def test_what_is_left_after_forgetting_is_one_line_of_history(tmp_path_factory, cities, data):
    with eunoe.open(tmp_path_factory.mktemp("gap") / "memory.db", embedder="none") as memory:
        desk = Desk(memory, days=len(cities))
        for day in data.draw(st.permutations(range(len(cities)))):
            desk.settle(home(cities[day], day))
        gone = data.draw(st.sets(st.integers(0, len(cities) - 1), min_size=1, max_size=len(cities) - 1))
        memory.forget(TALK, ids=[f"m{day}" for day in gone])
        living = list(desk.living().values())
        everything = memory.list(ANNA.scope, limit=1000, retired=True).items
        assert len(living) == (1 if everything else 0)
        for atom in living:
            versions = memory.history(ANNA.scope, atom.id)
            assert {version.id for version in versions} == {item.id for item in everything}
            assert versions[-1] == atom
            assert [version.superseded_by for version in versions[:-1]] == [version.id for version in versions[1:]]
        named = {source for item in everything for source in item.source}
        assert named.isdisjoint({f"@{TALK}#m{day}" for day in gone})


def test_what_rests_on_no_message_that_is_there_is_refused(desk):
    desk.memory.forget(TALK, ids=["m4"])
    report = desk.settle(said("Anna left.", 4), said("Anna came.", 4, 5), Proposal(0, "fact", "Anna flew.", ("m99",)))
    assert report.refused == 2
    assert desk.living()["Anna came."].source == (f"@{TALK}#m5",)
    assert desk.settle(said(" ")).refused == 1


def test_merged_and_superseded_observations_stay_absorbed(desk):
    [paris] = desk.settle(home("Paris", 1, kind="observation")).stored
    with desk.store.writing():
        stream = desk.store.stream(str(ANNA.scope))
        desk.store.books.absorb(stream.id, [paris], 1)
    desk.settle(home("Paris", 2, kind="observation"))
    [rome] = desk.settle(home("Rome", 5, kind="observation")).stored
    with desk.store.reading():
        assert desk.store.books.absorbed(stream.id) == {paris: 1}
        assert [row.id for row in desk.store.books.unabsorbed(stream.id)] == [rome]


def test_no_proposals_change_nothing(desk):
    assert desk.settle() == FormReport()
    assert desk.memory.scopes() == [TALK]


def test_a_step_that_is_undone_leaves_nothing(desk):
    def fail():
        with desk.store.writing():
            settle(desk.store, TALK, ANNA, [home("Rome", 1)], desk.turns, {}, VectorBatch(), NOW)
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        fail()
    assert desk.living() == {}


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_remembering_with_a_key_follows_the_time_that_is_given(memory, order):
    cities = [("Paris", "2020-01-01"), ("Rome", "2022-01-01"), ("Bern", "2024-01-01")]
    for place in order:
        city, start = cities[place]
        memory.remember("user=anna", f"Anna lives in {city}.", valid_from=start, metadata={"memory_key": "home"})
    [living] = memory.list("user=anna").items
    assert living.text == "Anna lives in Bern."
    versions = memory.history("user=anna", living.id)
    assert [version.text.split()[-1] for version in versions] == ["Paris.", "Rome.", "Bern."]
    assert [version.valid_to for version in versions[:2]] == [version.valid_from for version in versions[1:]]
