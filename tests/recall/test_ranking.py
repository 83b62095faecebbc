from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eunoe
from eunoe.errors import InputError
from eunoe.index.stream import IndexEntry, StreamIndex
from eunoe.recall.query import NearWords, expand_words, read_question, without_names
from eunoe.recall.ranking import Candidate, find_candidates
from eunoe.recall.recipes import RECIPES, Recipe
from eunoe.recall.request import Filter
from eunoe.text.languages import ENGLISH

DAY = 86_400.0
START = 1_700_000_000.0
NOW = START + 400 * DAY


def said(seq: int, text: str, speaker: str = "Anna", session: str = "1", **more: Any) -> IndexEntry:
    entry = IndexEntry(
        seq, f"m{seq}", "message", text, time=START + seq * 60, session=session, speaker=speaker, role="user"
    )
    return entry._replace(**more)


def fact(seq: int, text: str, **more: Any) -> IndexEntry:
    return IndexEntry(seq, f"f{seq}", "fact", text, recorded=START)._replace(**more)


def made(*entries: IndexEntry) -> StreamIndex:
    index = StreamIndex()
    index.apply(entries, 1)
    return index


def ids(found: Sequence[Candidate]) -> list[str]:
    return [each.id for each in found]


def ask(index: StreamIndex, query: str, **more: Any) -> list[Candidate]:
    return find_candidates([index], query, now=NOW, **more)


def test_the_words_of_the_question_are_found() -> None:
    index = made(said(1, "I bought a kiln"), said(2, "lovely weather"), said(3, "glazing is fun"))
    assert ids(ask(index, "What did she buy, a kiln?"))[0] == "m1"


def test_scores_are_absolute() -> None:
    talk = ("the kiln reached 1200 degrees", "ok", "see you", *(f"tea number {n}?" for n in range(40)))
    index = made(*(said(n, words) for n, words in enumerate(talk)))
    related = ask(index, "How many degrees did the kiln reach?")
    unrelated = ask(index, "Which insurance covers dental surgery in the Kiln district?")
    assert related[0].score > 0.5 > unrelated[0].score > 0
    assert all(0 <= each.score <= 1 for each in related + unrelated)


def test_the_answer_is_found_beside_its_question() -> None:
    chat = ["Morning!", "Where are you moving to?", "Leipzig", "Nice one", "Got milk", "Yes", "Bye"]
    index = made(*(said(n, words, speaker="AB"[n % 2]) for n, words in enumerate(chat)))
    assert "m2" in ids(ask(index, "To which town is the move, where are they moving?"))[:2]


def test_sessions_do_not_lend_to_each_other() -> None:
    index = made(
        said(1, "Where are you moving to?", session="a"), said(2, "Leipzig", session="b"), said(3, "No", session="a")
    )
    assert "m2" not in ids(ask(index, "moving"))


def test_what_is_filtered_out_lends_nothing() -> None:
    index = made(said(1, "The kiln is broken", "Bo"), said(2, "oh no"), said(3, "poor thing"))
    assert "m2" in ids(ask(index, "kiln"))
    assert ask(index, "kiln", filter=Filter(speakers=frozenset({"Anna"}))) == []


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_filter_gives_what_an_index_without_the_rest_of_the_texts_would(data: st.DataObject) -> None:
    texts = data.draw(
        st.lists(st.sampled_from(["red kiln", "blue tea?", "kiln tea", "ok", "moss"]), min_size=1, max_size=8)
    )
    keep = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    labels = ["in" if kept else "out" for kept in keep]
    entries = [said(n, words, label=label) for n, (words, label) in enumerate(zip(texts, labels, strict=True))]
    filter = Filter(labels=frozenset({"in"}))
    whole = ask(made(*entries), "kiln tea", filter=filter)
    swapped = [e if e.label == "in" else e._replace(text="kiln tea red blue" * 3) for e in entries]
    other = ask(made(*swapped), "kiln tea", filter=filter)
    assert {each.id for each in whole} <= {e.id for e in entries if e.label == "in"}
    assert set(ids(whole)) == set(ids(other))


def test_the_speaker_named_comes_first() -> None:
    words = "I adopted a dog"
    index = made(said(1, words, "Tamsin Oakes", "a"), said(2, "well", session="b"), said(3, words, "Bo Calloway", "c"))
    assert ids(ask(index, "What did Bo adopt?"))[0] == "m3"
    assert ids(ask(index, "What did Tam adopt?"))[0] == "m1"
    reasons = {reason.name: reason.detail for reason in ask(index, "What did Bo adopt?")[0].reasons}
    assert reasons["speaker"] == "bo"
    assert reasons["lexical"] == "adopt"


def speaker_told(index: StreamIndex, query: str) -> set[str]:
    return {reason.detail for each in ask(index, query) for reason in each.reasons if reason.name == "speaker"}


def test_a_short_form_names_a_speaker_if_it_is_capitalised_and_can_mean_no_other() -> None:
    words = "I planted a rose"
    index = made(
        said(1, words, "Rosemary", "a"), said(2, words, "Tamsin", "b"), said(3, words, "Tamara", "c"), said(4, words)
    )
    assert speaker_told(index, "What did Rose plant?") == {"rose"}
    assert speaker_told(index, "Which rose did they plant?") == set()
    assert speaker_told(index, "What did Tam plant?") == set()
    assert speaker_told(index, "What did Ro plant?") == set()
    assert ids(ask(index, "Who planted what, Rosem?"))[0] == "m1"


def test_names_of_speakers_are_left_out_of_what_is_embedded() -> None:
    index = made(said(1, "hi", "Tamsin Oakes"), said(2, "hi", "Bo"))
    assert without_names("What did Tamsin's cat and Bo eat?", [index]) == "What did cat and eat?"
    assert without_names("Tamsin?", [index]) == "Tamsin?"
    assert without_names("a cat", []) == "a cat"


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("how do users log in", {"users": 1.0, "login": 1.0}),
        ("Who was logged in to the API?", {"login": 1.0, "api": 1.0}),
        ("what is logged in production", {"logged": 1.0, "production": 1.0}),
        ("which request timed out", {"request": 1.0, "timeout": 1.0}),
        ("how are old rows cleaned up", {"old": 1.0, "rows": 1.0, "cleaned": 0.4}),
        ("how do customers check out", {"customers": 1.0, "check": 0.4}),
    ],
)
def test_a_verb_counts_little_where_the_word_behind_it_changes_its_meaning(
    question: str, words: dict[str, float]
) -> None:
    assert {word.label: word.weight for word in read_question(question, [ENGLISH], 0.0).words} == words


def test_a_date_in_the_question_counts() -> None:
    index = made(
        *(said(n, "we went to the lake", time=START + n * 30 * DAY, session=str(n)) for n in range(6)),
    )
    assert ids(ask(index, "Who went to the lake on 13 January 2024?"))[0] == "m2"
    assert "date" in {reason.name for reason in ask(index, "lake on 13 January 2024")[0].reasons}


def test_when_wants_a_time() -> None:
    index = made(said(1, "my sister got married", session="a"), said(2, "my sister got married yesterday", session="b"))
    assert ids(ask(index, "When did the sister get married?"))[0] == "m2"


def test_vectors_find_what_words_do_not() -> None:
    near, far = np.array([1, 0, 0], np.float32), np.array([0, 1, 0], np.float32)
    index = made(fact(1, "Tom had shingles", vector=near), fact(2, "Ida sells boats", vector=far))
    found = ask(index, "illness", query_vector=np.array([0.9, 0.1, 0], np.float32))
    assert ids(found)[0] == "f1"
    assert found[0].reasons[0].name == "dense"
    assert found[0].reasons[0].detail == "cosine 0.99"


class Near:
    """Words of like meaning, as they are told."""

    def __init__(self, **near: list[tuple[str, float]]) -> None:
        self.near = near

    def similar_words(self, words: Sequence[str]) -> list[NearWords]:
        return [tuple(self.near.get(word, ())) for word in words]


def test_a_near_word_counts_by_how_near_it_is_and_the_word_itself_in_full() -> None:
    near = Near(illness=[("shingles", 0.8), ("shingle", 0.5), ("illness", 0.4)], boat=[("ship", 0.7)])
    words = read_question("ERR_42 illness boat", (), NOW).words
    expanded = expand_words(words, frozenset({ENGLISH}), near)
    fits = {word.label: forms for word, forms in zip(words, expanded, strict=True)}
    assert fits["illness"] == {"shingl": 0.8, "ill": 1.0}
    assert fits["boat"] == {"ship": 0.7, "boat": 1.0}
    assert fits["err_42"] == {"err_42": 1.0}
    index = made(fact(1, "shingles"), fact(2, "illness"), fact(3, "ship"), fact(4, "tea"))
    assert ids(ask(index, "illness boat", synonyms=near))[0] == "f2"
    assert set(ids(ask(index, "illness boat", synonyms=near))) == {"f1", "f2", "f3"}


def test_ties_go_by_id() -> None:
    index = made(*(fact(n, "same words", id=name) for n, name in enumerate("dbeac")))
    assert ids(ask(index, "same words", limit=3)) == ["a", "b", "c"]


@pytest.mark.parametrize("vector", [None, np.array([0.6, 0.8], np.float32)])
def test_a_fact_scores_the_same_among_facts_and_beside_talk(vector: Any) -> None:
    default = RECIPES["default"]
    blend, bare = (replace(each, feedback=0.0, size_penalty=0.0) for each in (default.blend, default.lexical_blend))
    plain = Recipe(name="plain", blend=blend, lexical_blend=bare)
    axes = np.eye(2, dtype=np.float32)
    index = made(
        said(1, "the red kiln is hot", vector=axes[0]),
        said(2, "and the chimney?", vector=axes[1]),
        fact(3, "a red kiln", vector=axes[0]),
        fact(4, "the chimney is red", vector=axes[1]),
    )
    beside = {each.id: each.score for each in ask(index, "red kiln", recipe=plain, query_vector=vector)}
    facts = Filter(kinds=frozenset({"fact"}))
    among = {each.id: each.score for each in ask(index, "red kiln", recipe=plain, query_vector=vector, filter=facts)}
    assert among == {name: pytest.approx(beside[name], abs=1e-6) for name in ("f3", "f4")}


@pytest.mark.parametrize("vector", [None, np.array([1, 0], np.float32)])
def test_only_what_others_add_is_said_of_neighbours_and_sessions(vector: Any) -> None:
    away = None if vector is None else -vector
    chat = ["Ida sells boats", "Dentist at five", "Milk", "Bread", "See you"]
    turns = [said(n, words, vector=away if n else vector) for n, words in enumerate(chat)]
    for session in ("1", ""):
        index = made(*(turn._replace(session=session) for turn in turns))
        found = {each.id: each for each in ask(index, "boats", query_vector=vector)}
        told = {name: {(reason.name, reason.detail) for reason in each.reasons} for name, each in found.items()}
        assert told["m0"] == {("lexical", "boats")} | ({("dense", "cosine 1.00")} if vector is not None else set())
        assert told["m1"] == {("neighbour", "")} | ({("session", "")} if session else set())
        assert told.get("m4") == ({("session", "")} if session else None)
        assert found["m0"].score > found["m1"].score > found["m2"].score


def test_several_streams_are_ranked_on_one_scale() -> None:
    one = made(fact(1, "the kiln is blue"), fact(2, "tea"))
    two = made(*(fact(n, f"kiln number {n} and much more about other things") for n in range(5)))
    found = find_candidates([one, two], "which colour, is the kiln blue?", now=NOW, limit=20)
    assert (found[0].stream, found[0].id) == (0, "f1")
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    alone = {each.id: each.score for each in find_candidates([one], "which colour, is the kiln blue?", now=NOW)}
    assert alone["f1"] > found[0].score, "there is less to choose from"


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_gives_scores_and_reasons(name: str) -> None:
    vector = np.array([1, 0], np.float32)
    index = made(fact(1, "red kiln", vector=vector), fact(2, "blue tea", vector=np.array([0, 1], np.float32)))
    found = ask(index, "red kiln", query_vector=vector, recipe=RECIPES[name])
    assert ids(found)[0] == "f1"
    assert 0 < found[0].score <= 1
    assert found[0].reasons
    assert {reason.name for each in found for reason in each.reasons} <= {"lexical", "dense", "graph"}


def test_reciprocal_ranks_count_from_one() -> None:
    vector = np.array([1, 0], np.float32)
    index = made(fact(1, "red kiln", vector=vector), fact(2, "red", vector=np.array([1, 1], np.float32)))
    found = ask(index, "red kiln", query_vector=vector, recipe=RECIPES["rrf"])
    assert [each.score for each in found] == pytest.approx([1.0, 61 / 62])


def test_a_question_of_stop_words_only_is_looked_up_as_it_is() -> None:
    assert ids(ask(made(fact(1, "to be or not to be"), fact(2, "tea")), "to be"))[0] == "f1"


def test_identifiers_are_found_exactly() -> None:
    index = made(fact(1, "ERR_42 in src/a/b.py"), fact(2, "ERR_43 in src/a/c.py"), fact(3, "mail anna.b@example.org"))
    assert ids(ask(index, "ERR_42"))[0] == "f1"
    assert ids(ask(index, "what is src/a/c.py for?"))[0] == "f2"
    assert ids(ask(index, "anna.b@example.org"))[0] == "f3"


@pytest.mark.parametrize("order", list(permutations(("src/a/b.py", "src/a/c.py", "src/b/a.py"))))
def test_an_identifier_outweighs_all_that_its_neighbours_lend(order: tuple[str, ...]) -> None:
    turns = [f"we edited {path} today" for path in order]
    with eunoe.open(":memory:", embedder="static") as memory:
        memory.observe("user=anna", [*turns, "nothing"])
        best, *others = memory.recall("user=anna", "src/a/b.py")
    assert best.text == "we edited src/a/b.py today"
    assert ("exact", "src/a/b.py") in {(reason.name, reason.detail) for reason in best.reasons}
    assert "exact" not in {reason.name for other in others for reason in other.reasons}


def test_amounts_and_dates_are_no_identifiers() -> None:
    index = made(said(1, "I paid 3.50 at 7pm on 2024-05-07 for the well-known thing and/or 2 more"))
    (found,) = ask(index, "Who paid 3.50 and/or 2 at 7pm on 2024-05-07 for the well-known thing?")
    assert "exact" not in {reason.name for reason in found.reasons}


def test_of_an_identifier_the_longest_part_met_is_told() -> None:
    index = made(fact(1, "ERR_BP17 after the restart, no art at the party"), fact(2, "see bp17"))
    found = {each.id: each.reasons for each in ask(index, "What is ERR_BP17, the art party?")}
    assert found["f1"][0].detail == "err_bp17, art, party"
    assert found["f2"][0].detail == "bp17"


def test_reasons_hold_after_the_index_has_moved_on() -> None:
    vector = np.array([1, 0], np.float32)
    for recipe in RECIPES.values():
        index = made(said(1, "the red kiln", vector=vector), said(2, "tea", vector=vector))
        early, late = (ask(index, "red kiln", query_vector=vector, recipe=recipe) for _ in range(2))
        told = [each.reasons for each in early]
        index.apply([said(1, "nothing of it", vector=-vector), said(0, "red kiln"), said(2, "")], 2)
        assert [each.reasons for each in late] == told


def test_what_ended_or_was_retired_is_out_unless_asked_for() -> None:
    index = made(
        fact(1, "lives in Ulm", valid_from=START, valid_to=START + 10 * DAY, retired=START + 20 * DAY),
        fact(2, "lives in Bonn", valid_from=START + 10 * DAY, recorded=START + 20 * DAY),
        fact(3, "lives in error", retired=START + DAY),
    )
    assert ids(ask(index, "lives")) == ["f2"]
    assert ids(ask(index, "lives", filter=Filter(as_of=START + 5 * DAY))) == ["f1"]
    assert ids(ask(index, "lives", filter=Filter(as_of=START + 15 * DAY))) == ["f2"]
    assert ids(ask(index, "lives", filter=Filter(known_at=START + 15 * DAY))) == ["f1"]
    assert ids(ask(index, "lives", filter=Filter(known_at=START + 25 * DAY))) == ["f2"]


def test_the_old_truth_stands_until_the_new_one_begins() -> None:
    moves = NOW + 30 * DAY
    index = made(
        fact(1, "lives in Ulm", valid_from=START, valid_to=moves, retired=NOW - DAY),
        fact(2, "lives in Bonn", valid_from=moves, recorded=NOW - DAY),
    )
    assert set(ids(ask(index, "lives"))) == {"f1", "f2"}
    assert ids(find_candidates([index], "lives", now=moves)) == ["f2"]


def test_an_update_to_come_hides_nothing_yet() -> None:
    with eunoe.open(":memory:") as memory:
        old = memory.remember("user=anna", "Anna lives in Ulm.").id
        memory.update("user=anna", old, "Anna lives in Bonn.", valid_from="2999-01-01")
        assert {hit.text for hit in memory.recall("user=anna", "Where does Anna live?")} == {
            "Anna lives in Ulm.",
            "Anna lives in Bonn.",
        }
        (then,) = memory.recall("user=anna", "Where does Anna live?", as_of="2999-01-02")
        assert then.text == "Anna lives in Bonn."


@pytest.mark.parametrize("name", ["ZOË Weiß", "zoë weiss", "Zoe\u0308 Weiß ", " ZOE\u0308 WEISS"])
def test_names_are_filtered_by_however_they_are_written(name: str) -> None:
    index = made(said(1, "kiln", "Zoë Weiß"), said(2, "kiln", "Zoe Weiss"), fact(3, "kiln", people=("Bo", "ZOË WEISS")))
    assert set(ids(ask(index, "kiln", filter=Filter(speakers=frozenset({name}))))) == {"m1"}
    assert set(ids(ask(index, "kiln", filter=Filter(people=frozenset({name}))))) == {"m1", "f3"}


entries = st.builds(
    said,
    st.integers(0, 12),
    st.sampled_from(["red kiln", "blue tea?", "kiln tea", "ok", "Wann? Ja, die Häuser", "moss in 2021", ""]),
    st.sampled_from(["Bo", "Ida", "User", "Assistant"]),
    st.sampled_from(["1", "2"]),
)


@given(st.lists(st.lists(entries, max_size=5), max_size=8))
@settings(max_examples=80, deadline=None)
def test_deltas_end_where_a_fresh_index_does(changes: list[list[IndexEntry]]) -> None:
    index, held = StreamIndex(), {}
    for version, new in enumerate(changes, 1):
        held |= {entry.seq: entry for entry in new}
        index.apply(new, version)
    fresh = made(*(held[seq] for seq in sorted(held)))
    assert index.rows == fresh.rows
    for query in ("kiln tea", "When did Bo see the Häuser?", "What did the user say in 2021?"):
        left, right = (find_candidates([each], query, now=NOW, limit=50) for each in (index, fresh))
        assert ids(left) == ids(right)
        assert [each.score for each in left] == pytest.approx([each.score for each in right])


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=60))
@settings(deadline=None)
def test_no_question_is_too_odd(query: str) -> None:
    index = made(said(1, "kiln \x00 \ud800 tea"), fact(2, query))
    assert all(0 < each.score <= 1 for each in ask(index, query))


def test_a_vector_of_the_wrong_length_is_refused() -> None:
    with eunoe.open(":memory:", embedder="static") as memory:
        assert memory.recall("user=anna", "tea", vector=[1.0, 0.0]) == []
        memory.remember("user=anna", "Anna drinks tea.")
        with pytest.raises(InputError, match=r"2 dimensions.* 256"):
            memory.recall("user=anna", "tea", vector=[1.0, 0.0])
        assert memory.recall("user=anna", "tea", vector=np.ones(256))


def test_a_turn_that_takes_up_words_of_the_best_comes_before_one_that_does_not() -> None:
    filler = [said(seq, f"Something about subject{seq} again.", session=f"s{seq}") for seq in range(10, 70)]
    best = said(1, "My hobby is falconry, I train a peregrine.", session="a")
    echo = said(3, "A peregrine hobby is costly.", session="b")
    plain = said(2, "A wooden hobby is costly.", session="c")
    found = ask(made(best, plain, echo, *filler), "What hobby is falconry?")
    assert ids(found)[:3] == ["m1", "m3", "m2"]
    assert "feedback" in {reason.name for reason in found[1].reasons}


def test_what_is_left_out_by_its_number_is_not_found_and_lends_nothing() -> None:
    index = made(said(1, "where is the kiln?"), said(2, "over there"), said(3, "a kiln needs bricks", session="2"))
    assert set(ids(ask(index, "where is the kiln?"))) == {"m1", "m2", "m3"}
    assert ids(ask(index, "where is the kiln?", filter=Filter(excluded=frozenset({1, 99})))) == ["m3"]
    assert set(ids(ask(index, "where is the kiln?"))) == {"m1", "m2", "m3"}
